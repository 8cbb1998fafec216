// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"maps"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

const (
	wiredPrefix = "wired/" // in the log's state
	hooksAlarm  = "hooks/" // alarms about files

	maxWired    = 256 // settings files that are watched
	maxPrograms = 16  // hook programs that are watched

	watchQuiet = 200 * time.Millisecond // writers work in several steps
	watchLimit = time.Second            // but are waited for no longer
	watchPoll  = time.Minute            // for file systems that tell of no changes
)

// watchParents says whether watching a directory costs no more than one descriptor. Elsewhere it takes one for each file, so
// that home directories are not watched: there a directory that is replaced is seen by its own watch, or within a minute.
const watchParents = runtime.GOOS == "linux"

// hookWatch watches the settings files that hold our entries, or that can switch them off, and the programs that the entries
// run. What goes without a person's word is an alarm.
type hookWatch struct {
	d *Daemon

	mu       sync.Mutex
	files    map[string]*wiredFile // by path
	programs map[string]*program   // by path
	dirty    map[string]bool       // true for paths to be looked at, false for those that are being looked at
	clock    uint64
	nudge    chan struct{}

	// Of the watching goroutine alone.
	swept    bool                // alarms from before the start were sorted out
	followed map[string]bool     // directories
	concerns map[string][]string // paths by the names whose change may concern them
}

// wiredFile is one settings file. What is exported is kept in the log's state.
type wiredFile struct {
	Path     string            `json:"path"`
	Want     map[string]string `json:"want"`               // event by fingerprint: the entries that must be there
	Accepted string            `json:"accepted,omitempty"` // hash of the bytes that a person announced last
	Lost     string            `json:"lost,omitempty"`     // what is wrong and was told; "" = nothing

	programs []string
	looked   bool // since the start
	used     uint64
}

func newHookWatch(d *Daemon, state map[string][]byte) *hookWatch {
	w := &hookWatch{
		d: d, files: make(map[string]*wiredFile), programs: make(map[string]*program), dirty: make(map[string]bool),
		nudge: make(chan struct{}, 1), followed: make(map[string]bool),
	}
	for _, v := range state {
		var f wiredFile
		if json.Unmarshal(v, &f) == nil && filepath.IsAbs(f.Path) && len(w.files) < maxWired {
			w.files[f.Path] = &f
			w.dirty[f.Path] = true
		}
	}
	var homes []string
	for _, h := range d.homes {
		homes = append(homes, filepath.Join(h, ".claude", "settings.json"))
	}
	w.add(homes...)
	return w
}

// add has settings files looked at, and watched from then on. A full watch forgets files that are not wired, the one that was
// not named for longest first.
func (w *hookWatch) add(paths ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range paths {
		p = filepath.Clean(p)
		if !filepath.IsAbs(p) || len(p) > maxPathText {
			continue
		}
		w.clock++
		f := w.files[p]
		if f == nil {
			if len(w.files) >= maxWired && !w.forget() {
				continue
			}
			f = &wiredFile{Path: p}
			w.files[p] = f
		}
		f.used = w.clock
		w.dirty[p] = true
	}
	w.wake()
}

// forget makes room for one file. The caller holds mu.
func (w *hookWatch) forget() bool {
	var idle *wiredFile
	for _, f := range w.files {
		if len(f.Want) == 0 && f.Lost == "" && (idle == nil || f.used < idle.used) {
			idle = f
		}
	}
	if idle == nil {
		return false
	}
	delete(w.files, idle.Path)
	return true
}

// wake has the watching goroutine look.
func (w *hookWatch) wake() {
	select {
	case w.nudge <- struct{}{}:
	default: // it will anyway
	}
}

// watch looks at what changes until ctx ends. fw is nil if the system tells of no changes.
func (w *hookWatch) watch(ctx context.Context, fw *fsnotify.Watcher) {
	var events chan fsnotify.Event
	var failures chan error
	if fw != nil {
		defer fw.Close()
		events, failures = fw.Events, fw.Errors
	}
	poll := time.NewTicker(watchPoll)
	defer poll.Stop()
	quiet := time.NewTimer(0)
	defer quiet.Stop()
	var since time.Time // of the first change that was not looked at
	soon := func() {
		now := time.Now()
		if since.IsZero() {
			since = now
		}
		quiet.Reset(min(watchQuiet, max(0, watchLimit-now.Sub(since))))
	}
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-events:
			if !ok {
				events = nil
				continue
			}
			if w.touched(fw, e) {
				soon()
			}
		case _, ok := <-failures: // changes were lost: look at everything
			if !ok {
				failures = nil
				continue
			}
			w.all()
			soon()
		case <-poll.C:
			clear(w.followed) // a directory may have been replaced unseen
			w.all()
			soon()
		case <-w.nudge:
			soon()
		case <-quiet.C:
			since = time.Time{}
			w.follow(ctx, fw)
			if !w.look(ctx) {
				quiet.Reset(watchLimit)
			}
		}
	}
}

// touched marks what a change may concern, and reports whether there is any.
func (w *hookWatch) touched(fw *fsnotify.Watcher, e fsnotify.Event) bool {
	if w.followed[e.Name] && e.Has(fsnotify.Remove|fsnotify.Rename) { // the watch went with the directory
		_ = fw.Remove(e.Name)
		delete(w.followed, e.Name)
	}
	paths := w.concerns[e.Name]
	if len(paths) == 0 {
		return false
	}
	w.mark(paths...)
	return true
}

// all marks everything.
func (w *hookWatch) all() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for p := range w.files {
		w.dirty[p] = true
	}
	for p := range w.programs {
		w.dirty[p] = true
	}
}

// follow watches the directories of all files and of what they are links to, and their parents, since a directory may be
// replaced as a whole.
func (w *hookWatch) follow(ctx context.Context, fw *fsnotify.Watcher) {
	if fw == nil {
		return
	}
	w.mu.Lock()
	paths := slices.Concat(slices.Collect(maps.Keys(w.files)), slices.Collect(maps.Keys(w.programs)))
	w.mu.Unlock()
	want := make(map[string]bool)
	w.concerns = make(map[string][]string)
	r := w.d.pool.Reader(ctx)
	for _, p := range paths {
		names := map[string]bool{}
		for _, at := range []string{p, resolved(r, p)} {
			dir := filepath.Dir(at)
			for _, name := range []string{at, dir, filepath.Dir(dir), filepath.Join(dir, filepath.Base(p))} {
				names[name] = true
			}
			want[dir] = true
			if watchParents {
				want[filepath.Dir(dir)] = true
			}
		}
		for name := range names {
			w.concerns[name] = append(w.concerns[name], p)
		}
	}
	for dir := range w.followed {
		if !want[dir] {
			_ = fw.Remove(dir)
			delete(w.followed, dir)
		}
	}
	for dir := range want {
		if !w.followed[dir] && fw.Add(dir) == nil { // one that cannot be watched is looked at every minute
			w.followed[dir] = true
		}
	}
}
