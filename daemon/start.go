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

	"github.com/google/renameio/v2"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/approval"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// tailLength is how many records are read back at start to join events across the restart.
const tailLength = 4096

// openLog opens the audit log and says what it found.
func (d *Daemon) openLog(ctx context.Context) error {
	open := d.seam.openLog
	if open == nil {
		open = func(ctx context.Context, o audit.Options) (auditLog, error) { return audit.Open(ctx, o) }
	}
	al := &alarmLog{m: d.m, logger: d.logger, agents: func(name string) bool { return d.adapters[name] != nil }}
	log, err := open(ctx, audit.Options{
		Dir: d.places.LogDir, KeyDir: d.places.KeysDir, CommitTimeout: commitTimeout,
		OnCommit: func(c audit.CommitInfo) {
			d.manager.committed(c)
			al.committed(c)
		},
	})
	if err != nil {
		return fmt.Errorf("cannot open the audit log: %w", err)
	}
	al.auditLog, d.log = log, al
	d.onStop("log", log.Close)
	if err := al.opened(ctx, d.started); err != nil && !errors.Is(err, audit.ErrDamaged) {
		return fmt.Errorf("cannot read the audit log: %w", err)
	}
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
	d.hookWatch = newHookWatch(d, state(wiredPrefix))
	d.spool = newSpoolReader(d, state(spoolPrefix))
	d.verified = newVerified(state(stateVerified))
	if err != nil {
		return err
	}
	tail, err := d.log.Tail(ctx, tailLength)
	if errors.Is(err, audit.ErrDamaged) {
		d.logger.Warn().Msg("part of the end of the audit log cannot be read: calls from before this start may stay unjoined")
	} else if err != nil {
		return fmt.Errorf("cannot read the end of the audit log: %w", err)
	}
	for i := range tail {
		d.replay(&tail[i])
		d.settings.replay(&tail[i], d.started)
	}
	d.sessions.settle()
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
	if err := errors.Join(d.revokeForgotten(ctx), d.tellTampered(ctx)); err != nil {
		return err
	}
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

// revokeForgotten takes every unused approval back if the log lost its newest state: one of them may have been used.
func (d *Daemon) revokeForgotten(ctx context.Context) error {
	r := d.log.Report()
	if !r.StateStale && !r.StateLost {
		return nil
	}
	n := 0
	for _, c := range d.gate.List(true) {
		if c.State != approval.Approved {
			continue
		}
		if _, err := d.gate.Revoke(ctx, c.ID, approval.Decision{By: "daemon", Surface: surfaceStart}); err != nil {
			return fmt.Errorf("cannot take back the approvals of a state that is not the newest: %w", err)
		}
		n++
	}
	e := &audit.Entry{Record: record.Record{Kind: record.DaemonAlarm, Detail: map[string]string{
		"what": "the newest state of the log is lost", "revoked": strconv.Itoa(n),
	}}}
	d.raise(e, "state-lost", false)
	if _, err := d.log.Append(ctx, e); err != nil {
		return fmt.Errorf("the loss of state cannot be recorded: %w", err)
	}
	return nil
}

// tellTampered raises an alarm for each segment of the log that contradicts its checkpoint.
func (d *Daemon) tellTampered(ctx context.Context) error {
	for _, f := range d.log.Report().Tampered {
		e := &audit.Entry{Record: record.Record{Kind: record.DaemonAlarm, Detail: map[string]string{
			"what": "a segment of the log contradicts its checkpoint", "path": d.path(filepath.Base(f)),
		}}}
		d.raise(e, "tampered/"+filepath.Base(f), false)
		if _, err := d.log.Append(ctx, e); err != nil {
			return fmt.Errorf("a segment that was tampered with cannot be declared: %w", err)
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
		"on_down": p.cfg.OnDown, "started_by": d.startedBy,
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
	cl, err := d.manager.listener(ctx, controlSocketName, d.places.ControlSocket)
	if err != nil {
		return err
	}
	d.control = newControlServer(d, cl)
	d.onStop("control socket", func(ctx context.Context) error {
		ctx, cancel := fraction(ctx, 0.25)
		defer cancel()
		return d.control.close(ctx)
	})
	hl, err := d.manager.listener(ctx, hookSocketName, d.places.HookSocket)
	if err != nil {
		return err
	}
	d.hooks = newHookServer(d, hl)
	go d.hooks.serve(d.stopCtx) // close waits for it
	d.onStop("hook socket", func(ctx context.Context) error {
		// Replies may take most of the time that is left; closing the log needs the rest.
		ctx, cancel := fraction(ctx, 0.75)
		defer cancel()
		return d.hooks.close(ctx)
	})
	return nil
}

// fraction gives a step a part of the time that is left.
func fraction(ctx context.Context, part float64) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, time.Duration(part*float64(time.Until(deadline))))
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
