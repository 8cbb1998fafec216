// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
)

// settingsEntry is the record of a judged change of settings. An accepted one ends the file's alarm, a refused one raises
// it: the file stays changed for the next session.
func (d *Daemon) settingsEntry(x *exchange) *audit.Entry {
	c := x.settings
	x.note("path", d.path(c.path))
	x.note("sha256", c.hash)
	x.noteText(d, "source", x.ev.Source)
	x.noteText(d, "why", c.why)
	if x.verdict.Decision == event.Deny {
		x.who, x.basis = "rule:"+x.verdict.Rule, "proved"
	}
	if c.letGo {
		x.note(detailLetGo, "1")
		x.durable = append(x.durable, func() { d.sessions.goes(x.sess, d.now()) })
	}
	r := d.baseRecord(x)
	r.Kind, r.ID = c.kind, x.callID
	r.Decision = d.decision(x)
	e := &audit.Entry{Record: r}
	key, value, apply := d.settings.plan(c)
	e.State = append(e.State, d.settings.forgotten()...)
	if key != "" {
		e.State = append(e.State, audit.StateOp{Key: key, Value: value})
	}
	x.durable = append(x.durable, apply)
	alarm := "settings/" + pathKey(c.path)
	switch c.kind {
	case record.ConfigSettings:
		e.State = append(e.State, audit.StateOp{Key: alarmPrefix + alarm})
		x.durable = append(x.durable, func() { d.alarms.clear(alarm) })
	case record.TamperPolicy: // nothing can undo it, so it only tells
		d.raise(e, "policy/"+pathKey(c.path), false)
	default:
		d.raise(e, alarm, true)
	}
	d.addAnalysis(e, x)
	return e
}

// readSettings takes the settings files that a new session runs with for the base of their later changes. A session that
// goes on (compacted, cleared) still runs with what it had.
func (d *Daemon) readSettings(ctx context.Context, x *exchange, e *audit.Entry) {
	changed := 0
	var kept []audit.StateOp
	r := d.pool.Reader(ctx)
	paths := d.settingsPaths(x)
	d.hookWatch.add(paths...)
	for _, path := range paths {
		data, hash, err := readSettingsFile(r, path)
		if err != nil {
			continue // no base: every change of it is refused
		}
		key, value, other := d.settings.adopt(path, data, hash)
		if key != "" {
			kept = append(kept, audit.StateOp{Key: key, Value: value})
		}
		if other {
			changed++
		}
	}
	e.State = slices.Concat(e.State, d.settings.forgotten(), kept)
	if changed > 0 {
		x.note("settings_changed_between_sessions", strconv.Itoa(changed))
	}
}

// settingsFiler is an adapter that knows which settings files its agent reads.
type settingsFiler interface {
	// SettingsFiles returns the absolute paths of the settings files of ev's session. homes are the home directories that
	// it may have, root is the project that its directory is in, "" if in none.
	SettingsFiles(ev *event.Event, homes []string, root string) []string
}

// settingsPaths are the settings files of a session; none if its adapter does not know.
func (d *Daemon) settingsPaths(x *exchange) []string {
	f, ok := x.adapter.(settingsFiler)
	if !ok {
		return nil
	}
	root := ""
	if filepath.IsAbs(x.ev.Cwd) {
		root = d.projectRoot(x.ev.Cwd)
	}
	return f.SettingsFiles(x.ev, d.homes, root)
}

// projectRoot is the nearest directory at or above cwd that holds .git; "" if there is none.
func (d *Daemon) projectRoot(cwd string) string {
	r := d.pool.Reader(d.workCtx)
	dir := filepath.Clean(cwd)
	for range 64 {
		if _, err := r.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
	return ""
}
