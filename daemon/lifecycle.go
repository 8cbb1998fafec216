// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

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
		d.manager.tell("", "cannot start: "+err.Error())
		return err
	}
	d.running = true
	d.manager.tell("READY=1", d.serving())
	return nil
}

// startSteps is the order of the start; Stop goes the other way.
func (d *Daemon) startSteps(ctx context.Context) error {
	p := &d.places
	if err := privateDirs(p.RunDir, p.StateDir, p.KeysDir, p.SpoolDir); err != nil {
		return err
	}
	lock, err := d.takeLock(ctx)
	if err != nil {
		return err
	}
	d.onStop("lock", func(context.Context) error { return lock.Release() })
	d.onStop("view", d.pool.Close)
	if err := d.openLog(ctx); err != nil {
		return err
	}
	d.onStop("decisions", func(ctx context.Context) error { return wait(ctx, &d.wg) })
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
	d.measure()
	d.background("spool", d.spool.run)
	d.background("keeper", d.keep)
	if fw, err := fsnotify.NewWatcher(); err != nil {
		d.logger.Warn().Err(err).Msg("rules cannot be watched; they are read at start and by `auditctl rules reload`")
	} else {
		d.rules.follow(fw)
		d.background("rules watch", func(ctx context.Context) { d.rules.watch(ctx, fw) })
	}
	fw, err := fsnotify.NewWatcher()
	if err != nil {
		fw = nil
		d.logger.Warn().Err(err).Msg("agents' settings cannot be watched; they are looked at every minute")
	}
	d.background("settings watch", func(ctx context.Context) { d.hookWatch.watch(ctx, fw) })
	if err := d.listen(ctx); err != nil {
		return err
	}
	if err := d.stand(lock); err != nil {
		return err
	}
	if m := d.manager; m != nil && m.Notify != nil && m.Watchdog > 0 {
		d.background("watchdog", d.watchdog)
	}
	return nil
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

// Stop answers what is under way, tells held calls their card, closes the log and gives up the lock. It may be called
// more than once; ctx bounds it.
func (d *Daemon) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.running {
		return d.stopErr
	}
	d.running = false
	d.manager.tell("STOPPING=1", "stopping")
	d.stop()
	d.stopErr = d.unwind(ctx)
	return d.stopErr
}

// wait waits for wg, or for ctx.
func wait(ctx context.Context, wg *sync.WaitGroup) error {
	done := make(chan struct{})
	go func() { // ends with the last of them
		wg.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
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
			d.log.recovered(ctx)
			d.measure()
			d.keepStanding(ctx)
			d.m.Sessions(d.sessions.active(d.now()))
			if d.large.Swap(false) { // else the next collection, and with it the memory, may be minutes away
				debug.FreeOSMemory()
			}
			d.manager.cameRound()
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
