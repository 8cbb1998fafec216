// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// look looks at what is marked. What could not be told, or not be recorded, stays marked; look is false then.
func (w *hookWatch) look(ctx context.Context) bool {
	var dirty []string
	w.mu.Lock()
	for p := range w.dirty {
		dirty = append(dirty, p)
		w.dirty[p] = false
	}
	w.mu.Unlock()
	slices.Sort(dirty)
	done := true
	each := func(look func(path string) bool) {
		for _, p := range dirty {
			if !look(p) {
				done = false
				w.mark(p)
			}
		}
	}
	each(func(p string) bool {
		w.mu.Lock()
		f := w.files[p]
		w.mu.Unlock()
		return f == nil || w.lookAt(ctx, f)
	})
	each(func(p string) bool { // after the files, which say what is expected of programs
		w.mu.Lock()
		prog := w.programs[p]
		w.mu.Unlock()
		return prog == nil || w.lookAtProgram(ctx, prog)
	})
	w.mu.Lock()
	for _, p := range dirty {
		if !w.dirty[p] {
			delete(w.dirty, p)
		}
	}
	programs := w.retain()
	w.mu.Unlock()
	for _, p := range programs {
		w.unwatched(ctx, p)
	}
	if done && !w.swept {
		w.swept = true
		w.sweep(ctx)
	}
	w.d.m.HooksRemoved(w.lost())
	return done
}

// sweep ends alarms from before the start whose file or program is not known any more: nothing else would.
func (w *hookWatch) sweep(ctx context.Context) {
	known := make(map[string]bool)
	w.mu.Lock()
	for _, f := range w.files {
		if f.Lost != "" {
			known[hooksAlarm+pathKey(f.Path)] = true
		}
	}
	for _, p := range w.programs {
		known[p.alarm()] = true
	}
	w.mu.Unlock()
	for _, key := range slices.Concat(w.d.alarms.staying(hooksAlarm), w.d.alarms.staying(programAlarm)) {
		if known[key] {
			continue
		}
		e := &audit.Entry{
			Record: record.Record{Kind: record.ConfigSettings, Agent: claude.Name, Detail: map[string]string{"why": "what an alarm was about is not known any more"}},
			State:  []audit.StateOp{{Key: alarmPrefix + key}},
		}
		if w.record(ctx, e) {
			w.d.alarms.clear(key)
		}
	}
}

// mark has paths looked at again.
func (w *hookWatch) mark(paths ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		w.dirty[p] = true
	}
}

// lost counts the settings files with something wrong.
func (w *hookWatch) lost() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		if f.Lost != "" {
			n++
		}
	}
	return n
}

// wired reports whether any file has entries of ours: else there is nothing that could be switched off.
func (w *hookWatch) wired() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.files {
		if len(f.Want) > 0 {
			return true
		}
	}
	return false
}

// lookAt compares one settings file with what it was.
func (w *hookWatch) lookAt(ctx context.Context, f *wiredFile) bool {
	d := w.d
	data, hash, err := readSettingsFile(d.pool.Reader(ctx), f.Path)
	if errors.Is(err, view.ErrBusy) {
		return false
	}
	var now wiring
	if err == nil && data != nil {
		now, err = readWiring(data, d.places.HookSocket)
	}
	w.mu.Lock()
	was := *f
	w.mu.Unlock()
	next := was
	next.looked = true
	detail := map[string]string{"path": d.path(f.Path), "sha256": hash}
	announced := hash != "" && d.settings.isAnnounced(f.Path, hash, d.now())
	switch {
	case announced, hash != "" && hash == was.Accepted:
		next.Accepted, next.Lost, next.Want, next.programs = hash, "", now.entries, now.programs
		if hash != was.Accepted {
			w.expect(now.programs)
		}
	default:
		if next.Lost = w.wrong(&was, &now, data != nil, err); next.Lost == "" {
			next.Want, next.programs = now.entries, now.programs
		}
	}
	away := !was.looked && len(was.Want) > 0 && next.Lost != "" && was.Lost == ""
	if next.Lost == was.Lost && (next.Lost != "" || maps.Equal(next.Want, was.Want) && next.Accepted == was.Accepted) {
		w.put(f, &next)
		return true
	}
	e := &audit.Entry{Record: record.Record{Agent: claude.Name, Detail: detail}}
	key := hooksAlarm + pathKey(f.Path)
	if next.Lost != "" {
		e.Record.Kind = record.TamperHooksRemoved
		detail["why"] = next.Lost
		stays := true
		if away {
			// Perhaps a person took them out, whom nobody could ask. It is told, and is then how things are.
			detail["while"] = "no daemon ran"
			if err == nil && len(now.entries) == 0 && !now.off {
				next.Want, next.programs, next.Lost, stays = nil, nil, "", false
			}
		}
		d.raise(e, key, stays)
	} else {
		e.Record.Kind = record.ConfigSettings
		detail["entries"] = strconv.Itoa(len(next.Want))
		if was.Lost != "" {
			detail["hooks"] = "back"
		}
		e.State = append(e.State, audit.StateOp{Key: alarmPrefix + key})
	}
	e.State = append(e.State, w.stored(&next)...)
	if !w.record(ctx, e) {
		return false
	}
	if e.Record.Kind == record.ConfigSettings {
		d.alarms.clear(key)
	}
	w.put(f, &next)
	return true
}

// wrong says what is wrong with a file, in our own words; "" for nothing.
func (w *hookWatch) wrong(f *wiredFile, now *wiring, there bool, err error) string {
	wanted := len(f.Want)+len(now.entries) > 0
	lacks := now.lacks(f.Want)
	switch {
	case wanted && err != nil:
		return "the file cannot be read as settings"
	case wanted && !there:
		return "the file is gone"
	case len(lacks) > 0:
		return "our entries are gone or changed: " + strings.Join(lacks, ", ")
	case wanted && now.unloading:
		return "an entry in the file keeps the agent from loading it"
	case now.off && (wanted || w.wired()):
		return "disableAllHooks is true"
	}
	return ""
}

// put takes over what was found out about a file, unless it was forgotten meanwhile.
func (w *hookWatch) put(f, next *wiredFile) {
	w.mu.Lock()
	defer w.mu.Unlock()
	next.used = f.used
	*f = *next
}

// stored is a file's state. One without anything to keep is taken off, and one whose path must not be at rest never put on.
func (w *hookWatch) stored(f *wiredFile) []audit.StateOp {
	if w.d.path(f.Path) != f.Path {
		return nil
	}
	op := audit.StateOp{Key: wiredPrefix + pathKey(f.Path)}
	if len(f.Want) > 0 || f.Lost != "" {
		op.Value, _ = json.Marshal(f) // strings only: cannot fail
	}
	return []audit.StateOp{op}
}

// record appends a record; it is tried again if the log takes none.
func (w *hookWatch) record(ctx context.Context, e *audit.Entry) bool {
	ctx, cancel := context.WithTimeout(ctx, w.d.limits.write)
	defer cancel()
	_, err := w.d.log.Append(ctx, e)
	return err == nil
}

// resolved is where a path leads, or itself if that cannot be told.
func resolved(r view.Reader, path string) string {
	if at, err := r.Resolve(path); err == nil {
		return at
	}
	return path
}
