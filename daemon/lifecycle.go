// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/renameio/v2"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/approval"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/daemon/internal/sock"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// tailLength is how many records are read back at start to join events across the restart.
const tailLength = 4096

// cleanup undoes one step of Start.
type cleanup struct {
	name string
	f    func(context.Context) error
}

func (d *Daemon) onStop(name string, f func(context.Context) error) {
	d.cleanups = append(d.cleanups, cleanup{name, f})
}

// Start brings everything up and returns when hooks are served. If a step fails, those before it are undone. ctx bounds
// the start only.
func (d *Daemon) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.began {
		return errors.New("daemon: Start was called before")
	}
	d.began = true
	d.started = d.now()
	work, endWork := context.WithCancel(context.WithoutCancel(ctx))
	d.workCtx = work
	d.stopCtx, d.stop = context.WithCancel(work)
	d.onStop("work", func(context.Context) error { endWork(); return nil })
	if err := d.startSteps(ctx); err != nil {
		d.stop()
		sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.limits.stop)
		defer cancel()
		d.stopErr = d.unwind(sctx)
		return err
	}
	d.running = true
	return nil
}

// startSteps is the order of the start; Stop goes the other way.
func (d *Daemon) startSteps(ctx context.Context) error {
	p := &d.places
	if err := privateDirs(p.RunDir, p.StateDir, p.KeysDir, p.SpoolDir); err != nil {
		return err
	}
	lock, err := sock.AcquireLock(p.LockFile)
	if err != nil {
		return err
	}
	d.onStop("lock", func(context.Context) error { return lock.Release() })
	d.onStop("view", d.pool.Close)
	if err := d.openLog(ctx); err != nil {
		return err
	}
	if err := d.rules.begin(ctx); err != nil {
		return err
	}
	if err := d.recall(ctx); err != nil {
		return err
	}
	if err := d.openGate(ctx); err != nil {
		return err
	}
	d.serveMetrics(ctx)
	if err := d.recordStart(ctx); err != nil {
		return err
	}
	d.background("spool", d.spool.run)
	d.background("keeper", d.keep)
	if fw, err := fsnotify.NewWatcher(); err != nil {
		d.logger.Warn().Err(err).Msg("rules cannot be watched; they are read at start and by `auditctl rules reload`")
	} else {
		d.rules.follow(fw)
		d.background("rules watch", func(ctx context.Context) { d.rules.watch(ctx, fw) })
	}
	return d.listen(ctx)
}

// background runs f until Stop reaches it.
func (d *Daemon) background(name string, f func(context.Context)) {
	ctx, cancel := context.WithCancel(d.workCtx)
	done := make(chan struct{})
	go func() { // waited for by the cleanup below
		defer close(done)
		f(ctx)
	}()
	d.onStop(name, func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}

func (d *Daemon) openLog(ctx context.Context) error {
	open := d.seam.openLog
	if open == nil {
		open = func(ctx context.Context, o audit.Options) (auditLog, error) { return audit.Open(ctx, o) }
	}
	log, err := open(ctx, audit.Options{Dir: d.places.LogDir, KeyDir: d.places.KeysDir, OnCommit: func(c audit.CommitInfo) {
		d.m.Commit(c.Records, c.Duration, c.Err)
		if c.Err == nil {
			d.m.LogSize(c.Size, c.Bytes)
		}
	}})
	if err != nil {
		return fmt.Errorf("cannot open the audit log: %w", err)
	}
	d.log = log
	d.onStop("log", log.Close)
	r := log.Report()
	for _, f := range r.Quarantined {
		d.logger.Error().Str("file", filepath.Base(f)).Msg("a damaged log segment was set aside")
	}
	for _, f := range r.Skipped {
		d.logger.Warn().Str("file", filepath.Base(f)).Msg("a file that is no segment of this log was left alone")
	}
	return nil
}

// recall takes up what the log knows: alarms, settings, spool names, and the calls and sessions of its tail.
func (d *Daemon) recall(ctx context.Context) (err error) {
	if d.joinKey, err = loadKey(filepath.Join(d.places.KeysDir, "join.key")); err != nil {
		return err
	}
	state := func(prefix string) (m map[string][]byte) {
		if err == nil {
			m, err = d.log.State(prefix)
		}
		return m
	}
	d.alarms = newAlarms(state(alarmPrefix))
	d.settings = newSettingsBook(state(settingsPrefix), d.pool.Reader(ctx), d.path)
	d.spool = newSpoolReader(d, state(spoolPrefix))
	if err != nil {
		return err
	}
	tail, err := d.log.Tail(ctx, tailLength)
	if err != nil {
		return fmt.Errorf("cannot read the end of the audit log: %w", err)
	}
	for i := range tail {
		d.sessions.replay(&tail[i])
		d.calls.replay(&tail[i])
	}
	return nil
}

// openGate makes the approval gate, and declares the calls that waited for it when the last process died.
func (d *Daemon) openGate(ctx context.Context) error {
	state, err := d.log.State(approval.Prefix)
	if err != nil {
		return err
	}
	d.gate, err = approval.New(ctx, approval.Options{
		Recorder: approvalRecorder{d},
		Load:     state,
		Now:      d.now,
		Boot:     proc.SinceBoot,
		BootID:   proc.BootID(),
		Hold:     time.Hour, // each wait is bounded by its own context
		Recheck: func(ctx context.Context, set []view.Entry) []string {
			return view.Recheck(set, d.pool.Reader(ctx))
		},
		OnChange:   d.m.ApprovalsPending,
		MaxWaiting: d.limits.holds,
	})
	if err != nil {
		return fmt.Errorf("cannot take up the approvals: %w", err)
	}
	d.onStop("gate", d.gate.Close)
	d.m.ApprovalsPending(d.gate.Pending())
	held, err := d.log.State(heldPrefix)
	if err != nil {
		return err
	}
	for key, card := range held {
		call := strings.TrimPrefix(key, heldPrefix)
		e := &audit.Entry{
			Record: record.Record{Kind: record.Gap, Call: call, Detail: map[string]string{
				"what": "the verdict of a call that waited for approval when the daemon ended", "card": clip(string(card), maxName), "count": "1",
			}},
			State: []audit.StateOp{{Key: key}},
		}
		if _, err := d.log.Append(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// serveMetrics starts the endpoint. A port in use is a warning, never a stop.
func (d *Daemon) serveMetrics(ctx context.Context) {
	listen := d.policy.Load().cfg.MetricsListen
	srv, err := d.m.Serve(d.workCtx, listen, func(format string, args ...any) {
		d.logger.Warn().Msg(fmt.Sprintf(format, args...))
	})
	if err != nil {
		d.logger.Warn().Err(err).Msg("no metrics")
		_ = os.Remove(d.places.MetricsAddr)
		return
	}
	d.metricsAddr = srv.Addr()
	d.onStop("metrics", func(context.Context) error {
		_ = os.Remove(d.places.MetricsAddr)
		return srv.Close()
	})
	if d.metricsAddr == "" {
		_ = os.Remove(d.places.MetricsAddr)
		return
	}
	if err := writeAddr(d.places.MetricsAddr, d.metricsAddr); err != nil {
		d.logger.Warn().Err(err).Msg("the metrics address cannot be left in a file")
	}
}

func (d *Daemon) recordStart(ctx context.Context) error {
	p := d.policy.Load()
	_, err := d.log.Append(ctx, &audit.Entry{Record: record.Record{Kind: record.DaemonStart, Detail: map[string]string{
		"version": d.version, "pid": strconv.Itoa(d.pid), "mode": p.cfg.Mode, "profile": p.cfg.Profile, "rule_set": p.set.Hash(),
	}}})
	if err != nil {
		return fmt.Errorf("the start cannot be recorded: %w", err)
	}
	d.onStop("daemon.stop record", func(ctx context.Context) error {
		d.declareGaps(ctx)
		_, err := d.log.Append(ctx, &audit.Entry{Record: record.Record{Kind: record.DaemonStop, Detail: map[string]string{
			"pid": strconv.Itoa(d.pid),
		}}})
		return err
	})
	return nil
}

// listen opens both sockets. The one of hooks comes last: nothing is missing any more when the first event arrives.
func (d *Daemon) listen(ctx context.Context) error {
	cl, err := sock.Listen(ctx, d.places.ControlSocket)
	if err != nil {
		return err
	}
	d.control = newControlServer(d, cl)
	d.onStop("control socket", d.control.close)
	hl, err := sock.Listen(ctx, d.places.HookSocket)
	if err != nil {
		return err
	}
	d.hooks = newHookServer(d, hl)
	done := make(chan struct{})
	go func() { // ends when the listener is closed
		defer close(done)
		d.hooks.serve(d.stopCtx)
	}()
	d.onStop("hook socket", func(ctx context.Context) error {
		// Replies need what is left of the time, less what closing the log needs.
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithDeadline(ctx, deadline.Add(-time.Until(deadline)/4))
			defer cancel()
		}
		err := d.hooks.close(ctx)
		<-done
		return err
	})
	return nil
}

// Stop answers what is under way, tells held calls their card, closes the log and gives up the lock. It may be called
// more than once; ctx bounds it.
func (d *Daemon) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running {
		return d.stopErr
	}
	d.running = false
	d.stop()
	d.stopErr = d.unwind(ctx)
	return d.stopErr
}

// unwind runs the cleanups, last one first, each under its name.
func (d *Daemon) unwind(ctx context.Context) error {
	var errs []error
	for len(d.cleanups) > 0 {
		c := d.cleanups[len(d.cleanups)-1]
		d.cleanups = d.cleanups[:len(d.cleanups)-1]
		if err := c.f(ctx); err != nil {
			errs = append(errs, fmt.Errorf("stopping the %s: %w", c.name, err))
		}
	}
	return errors.Join(errs...)
}

// keep does what must happen every second.
func (d *Daemon) keep(ctx context.Context) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-second.C:
			_, _ = d.gate.Tick(ctx) // an error leaves the cards as they are, for the next second
			d.declareGaps(ctx)
		}
	}
}

// declareGaps records what was lost so far. What cannot be recorded now is tried again.
func (d *Daemon) declareGaps(ctx context.Context) {
	e, restore := d.gaps.take()
	if e == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.limits.write)
	defer cancel()
	if _, err := d.log.Append(ctx, e); err != nil {
		restore()
	}
}

// loadKey reads a key of 32 bytes, made at the first start.
func loadKey(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, os.ErrNotExist) {
		key := make([]byte, 32)
		_, _ = rand.Read(key) // never fails
		if err := renameio.WriteFile(path, key, 0o600); err != nil {
			return nil, fmt.Errorf("cannot make a key: %w", err)
		}
		return key, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	key, err := io.ReadAll(io.LimitReader(f, 33))
	if err != nil || len(key) != 32 {
		return nil, fmt.Errorf("key file %q is damaged; move it away to have a new one made", path)
	}
	return key, nil
}
