// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/internal/sock"
	"github.com/tripline-sh/tripline/tripwires"
)

// debounce is how long the files must be quiet before they are read: editors write in several steps.
const debounce = 300 * time.Millisecond

// rulesWatch follows configuration and rules on disk. What tightens takes effect at once, what loosens waits for a
// person's reload.
type rulesWatch struct {
	d *Daemon

	mu        sync.Mutex // one load at a time; guards what follows
	loosening []string   // differences that wait for a person
	restart   []string   // differences that wait for the next start
	err       error      // why the files on disk are not in force
	told      string     // what the daemon's own log was told of it
}

// begin puts the first policy of this process in force: what is on disk, but nothing weaker than what was in force last.
func (w *rulesWatch) begin(ctx context.Context) error {
	d := w.d
	for _, dir := range []string{d.places.ConfigDir, d.places.RulesDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return fmt.Errorf("cannot create directory: %w", err)
		}
	}
	state, err := d.log.State("policy/")
	if err != nil {
		return err
	}
	cfg, set, diskErr := d.readDisk()
	oldCfg, oldSet, had := d.lastPolicy(state)
	if diskErr != nil && !had {
		return fmt.Errorf("rules and configuration cannot be used, and there is no earlier set to go on with: %w", diskErr)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var diff difference
	next := &policy{base: cfg, set: set}
	if had {
		old := &policy{base: oldCfg, set: oldSet}
		if diskErr != nil {
			cfg, set = oldCfg, oldSet
		}
		merged, rules, f := tightened(old, cfg, set)
		merged.MetricsListen, merged.LogRetention = cfg.MetricsListen, cfg.LogRetention // this is the restart
		f.restart = nil
		next, diff = &policy{base: merged, set: rules}, f
	}
	w.err, w.loosening = diskErr, diff.loosened
	if diskErr != nil {
		w.tell()
	}
	return w.enforce(ctx, next, "start", diff)
}

// check compares the disk with what is in force and takes over what tightens.
func (w *rulesWatch) check(ctx context.Context) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.d
	cfg, set, err := d.readDisk()
	if err != nil {
		w.failed(err)
		return
	}
	old := d.policy.Load()
	merged, rules, diff := tightened(old, cfg, set)
	w.err, w.told, w.restart = nil, "", diff.restart
	news := strings.Join(diff.loosened, "\n") != strings.Join(w.loosening, "\n")
	w.loosening = diff.loosened
	d.m.Loosening(len(diff.loosened))
	d.m.Reload(true, d.now())
	if len(diff.tightened) == 0 && !news {
		return
	}
	if err := w.enforce(ctx, &policy{base: merged, set: rules}, "file", diff); err != nil {
		w.failed(err)
	}
}

// failed keeps the policy in force and says why the disk's is not. The caller holds mu.
func (w *rulesWatch) failed(err error) {
	w.err = err
	w.d.m.Reload(false, w.d.now())
	w.tell()
}

// tell writes into the daemon's own log, once for each error, where the disk's files are broken. What stands there is for
// whoever asks for the status: it may quote the file. The caller holds mu.
func (w *rulesWatch) tell() {
	if w.err.Error() == w.told {
		return
	}
	w.told = w.err.Error()
	w.d.logger.Warn().Str("at", w.d.path(brokenAt(w.err))).
		Msg("rules or configuration on disk cannot be used; the last good ones stay in force (see auditctl status)")
}

// brokenAt is the place that an error of readDisk is about, as FILE:LINE as far as that is known.
func brokenAt(err error) string {
	var rule *tripwires.RuleError
	var cfg *config.Error
	var file *fs.PathError
	switch {
	case errors.As(err, &rule):
		return fmt.Sprintf("%s:%d", rule.File, rule.Line)
	case errors.As(err, &cfg) && cfg.Line > 0:
		return fmt.Sprintf("%s:%d", cfg.File, cfg.Line)
	case errors.As(err, &cfg):
		return cfg.File
	case errors.As(err, &file):
		return file.Path
	}
	return "unknown"
}

// errUnexpected says that a person's reload would loosen something that the person was not shown.
var errUnexpected = errors.New("other changes on disk would loosen the rules, too; nothing was put in force")

// person puts the disk's rules and configuration in force as they are, loosening included. With expect, it does so only if
// that is all that loosens.
func (w *rulesWatch) person(ctx context.Context, dryRun bool, expect []string) (*policy, difference, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.d
	cfg, set, err := d.readDisk()
	if err != nil {
		w.failed(err)
		return nil, difference{}, err
	}
	old := d.policy.Load()
	_, _, diff := tightened(old, cfg, set)
	if dryRun {
		return old, diff, nil
	}
	if len(expect) > 0 && !sameLines(expect, diff.loosened) {
		return old, diff, errUnexpected
	}
	for _, c := range cfg.Diff(old.base) {
		if c.Restart {
			_ = cfg.Set(c.Key, c.Old) // checked before
		}
	}
	if err := w.enforce(ctx, &policy{base: cfg, set: set}, "person", diff); err != nil {
		return nil, diff, err
	}
	w.err, w.told, w.loosening, w.restart = nil, "", nil, diff.restart
	d.m.Loosening(0)
	return d.policy.Load(), diff, nil
}

// enforce records a policy and swaps it in. The caller holds mu.
func (w *rulesWatch) enforce(ctx context.Context, p *policy, trigger string, diff difference) error {
	d := w.d
	next, err := d.compile(p.base, p.set)
	if err != nil {
		return err
	}
	e, err := d.policyEntry(next, trigger, diff)
	if err != nil {
		return err
	}
	if trigger == "person" {
		e.Record.Who, e.Record.WhoBasis = "person", "claimed"
	}
	ctx, cancel := context.WithTimeout(ctx, d.limits.answer)
	defer cancel()
	if _, err := d.log.Append(ctx, e); err != nil {
		return err
	}
	d.policy.Store(next)
	d.m.Rules(next.set.RuleIDs())
	d.m.Loosening(len(w.loosening))
	d.m.Reload(w.err == nil, d.now())
	d.logger.Info().Str("trigger", trigger).Int("rules", next.set.Len()).Int("tightened", len(diff.tightened)).
		Int("loosened", len(diff.loosened)).Msg("rules in force")
	return nil
}

// status returns what waits for a person, and why the disk is not in force.
func (w *rulesWatch) status() (loosening, restart []string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string{}, w.loosening...), append([]string{}, w.restart...), w.err
}

// watch follows the directories until ctx ends. Directories that are replaced are picked up again within a minute, and
// the files are compared then too: a notification may be lost.
func (w *rulesWatch) watch(ctx context.Context, fw *fsnotify.Watcher) {
	defer fw.Close()
	quiet := time.NewTimer(debounce)
	quiet.Stop()
	defer quiet.Stop()
	minute := time.NewTicker(time.Minute)
	defer minute.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case e, ok := <-fw.Events:
			if !ok {
				return
			}
			if w.concerns(e.Name) {
				quiet.Reset(debounce)
			}
		case _, ok := <-fw.Errors: // an overflow: look at everything
			if !ok {
				return
			}
			quiet.Reset(debounce)
		case <-minute.C:
			w.follow(fw)
			w.check(ctx)
		case <-quiet.C:
			w.follow(fw)
			w.check(ctx)
		}
	}
}

// concerns reports whether a change of this name can change the policy.
func (w *rulesWatch) concerns(name string) bool {
	p := &w.d.places
	return name == p.ConfigFile || name == p.RulesDir || name == p.ConfigDir ||
		filepath.Dir(name) == p.RulesDir && strings.HasSuffix(name, ".yaml")
}

// follow watches the directories that are there; watching one twice is no harm.
func (w *rulesWatch) follow(fw *fsnotify.Watcher) {
	for _, dir := range []string{w.d.places.ConfigDir, w.d.places.RulesDir} {
		if err := fw.Add(dir); err != nil && !errors.Is(err, os.ErrNotExist) {
			w.d.logger.Warn().Msg("a configuration directory cannot be watched; it is compared every minute")
		}
	}
}

// privateDirs makes the places that only this user may enter.
func privateDirs(dirs ...string) error {
	for _, dir := range dirs {
		if err := sock.PrivateDir(dir); err != nil {
			return err
		}
	}
	return nil
}
