// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// maxProgram is the largest hook program that is read.
const maxProgram = 32 << 20

const programAlarm = "binary/" // alarms about programs

// program is a hook program that entries of ours name. It belongs to the watching goroutine.
type program struct {
	path  string
	hash  string // as it was at the start, or when a person installed or upgraded it; "" = not seen yet
	now   string // as it was last seen, or why it cannot be run
	told  string // the last alarm's "now", "" = none since the start
	stamp view.Info
	real  string
}

// retain has the programs watched that entries name, and returns those that no entry names any more. The caller holds mu.
func (w *hookWatch) retain() (gone []*program) {
	named := make(map[string]bool)
	for _, f := range w.files {
		for _, p := range f.programs {
			named[p] = true
			if w.programs[p] == nil && len(w.programs) < maxPrograms && len(p) <= maxPathText {
				w.programs[p] = &program{path: p}
				w.dirty[p] = true
				w.wake()
			}
		}
	}
	for path, p := range w.programs {
		if !named[path] {
			delete(w.programs, path)
			gone = append(gone, p)
		}
	}
	return gone
}

// expect takes programs as they are now for what they must be: a person has just installed them.
func (w *hookWatch) expect(paths []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		if prog := w.programs[p]; prog != nil {
			prog.hash = ""
			w.dirty[p] = true
			w.wake()
		}
	}
}

// upgraded has a program looked at once more: what it is now may have just been announced.
func (w *hookWatch) upgraded(path string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.programs[path] != nil {
		w.dirty[path] = true
		w.wake()
	}
}

// lookAtProgram compares a program with what it was. One that cannot be run is wrong however it was.
func (w *hookWatch) lookAtProgram(ctx context.Context, p *program) bool {
	now, ok := w.state(ctx, p)
	if !ok {
		return false
	}
	d := w.d
	usable := len(now) == 2*sha256.Size
	if usable && now != p.hash && d.settings.isUpgrade(p.path, now, d.now()) {
		p.hash = now // the announcement is on record
	}
	stands := d.alarms.has(p.alarm())
	e := &audit.Entry{Record: record.Record{Agent: claude.Name, Detail: map[string]string{"path": d.path(p.path), "sha256": now}}}
	switch wrong := !usable || p.hash != "" && now != p.hash; {
	case wrong && now != p.told && (p.told != "" || p.hash != "" || !stands):
		e.Record.Kind = record.TamperBinary
		if p.hash != "" {
			e.Record.Detail["was"] = p.hash
		}
		d.raise(e, p.alarm(), true)
		if !w.record(ctx, e) {
			return false
		}
		p.told = now
	case !wrong && stands:
		if !w.settled(ctx, p, e) {
			return false
		}
		p.told = ""
	}
	if p.hash == "" && usable {
		p.hash = now
	}
	p.now = now
	return true
}

// unwatched ends the alarm about a program that no entry names any more.
func (w *hookWatch) unwatched(ctx context.Context, p *program) {
	if w.d.alarms.has(p.alarm()) {
		w.settled(ctx, p, &audit.Entry{Record: record.Record{Agent: claude.Name, Detail: map[string]string{
			"path": w.d.path(p.path), "why": "no entry names it any more",
		}}})
	}
}

// settled records that nothing is wrong with a program any more.
func (w *hookWatch) settled(ctx context.Context, p *program, e *audit.Entry) bool {
	e.Record.Kind = record.ConfigSettings
	e.State = []audit.StateOp{{Key: alarmPrefix + p.alarm()}}
	if !w.record(ctx, e) {
		return false
	}
	w.d.alarms.clear(p.alarm())
	return true
}

// state returns the hash of a program, or why it cannot be run; false if that could not be told.
func (w *hookWatch) state(ctx context.Context, p *program) (string, bool) {
	r := w.d.pool.Reader(ctx)
	real := resolved(r, p.path)
	info, err := r.Lstat(real)
	switch {
	case errors.Is(err, view.ErrBusy):
		return "", false
	case errors.Is(err, fs.ErrNotExist):
		return hashAbsent, true
	case err != nil:
		return "unreadable", true
	case info.Mode.Perm()&0o111 == 0:
		return "not executable", true
	case info == p.stamp && real == p.real && len(p.now) == 2*sha256.Size:
		return p.now, true
	}
	data, err := r.ReadFile(real, maxProgram)
	switch {
	case errors.Is(err, view.ErrBusy):
		return "", false
	case err != nil:
		return "unreadable", true
	}
	p.stamp, p.real = info, real
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), true
}

func (p *program) alarm() string { return programAlarm + pathKey(p.path) }
