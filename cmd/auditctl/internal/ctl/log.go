// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/doctor"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

// logSource is where questions about the past go: to the daemon, or to the log's files when no daemon runs.
type logSource interface {
	Calls(ctx context.Context, f record.Filter, fn func(record.Call) error) error
	Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error
	Records(ctx context.Context, idPrefix string, fn func(control.RecordView) error) error
	Events(ctx context.Context, from, to time.Time, kind string, fn func(control.RecordView) error) error
	Close() error
}

// openLog asks the daemon if there is one, else opens the files. It says on stderr when it is the files.
func (a *app) openLog(ctx context.Context) (logSource, error) {
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	c := &control.Client{Socket: p.ControlSocket}
	st, err := c.Status(ctx)
	if err == nil {
		a.warn(st)
		return remoteLog{c}, nil
	}
	if !errors.Is(err, control.ErrUnreachable) {
		return nil, a.controlError(err)
	}
	r, err := a.openFiles(p)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(a.Err, "the daemon is not running; reading the log's files")
	return fileLog{r}, nil
}

// warn says on stderr what a person should know of the daemon before believing that all is well.
func (a *app) warn(st control.Status) {
	for i, text := range st.Alarms {
		if i == 5 {
			fmt.Fprintf(a.Err, "and %d more alarms\n", len(st.Alarms)-i)
			break
		}
		fmt.Fprintf(a.Err, "alarm: %s\n", show.Line(doctor.AlarmText(text, a.Now()), 300))
	}
	if len(st.Alarms) > 0 {
		fmt.Fprintf(a.Err, "  see %s\n", a.paste("status"))
	}
	if st.RulesError != "" {
		fmt.Fprintf(a.Err, "warning: the files on disk are not in force: %s\n", show.Line(st.RulesError, 500))
	}
	if n := len(st.Loosening); n > 0 {
		fmt.Fprintf(a.Err, "%s on disk would loosen the rules and wait: %s\n", words.Count(n, "change"), a.paste("rules", "reload", "--dry-run"))
	}
}

func (a *app) openFiles(p config.Places) (*audit.Reader, error) {
	r, err := audit.OpenReader(p.LogDir, audit.ReaderOptions{KeyDir: p.KeysDir})
	switch {
	case errors.Is(err, audit.ErrLocked):
		return nil, &Error{Code: exitUnreachable, Msg: "a daemon holds the log but does not answer on " + p.ControlSocket, Err: err,
			Hints: []string{"end it and start it anew: " + a.paste("restart")}}
	case errors.Is(err, audit.ErrNotFound):
		return nil, &Error{Code: exitNothing, Msg: "there is no log yet in " + p.LogDir, Err: err, Hints: []string{a.startHint()}}
	case err != nil:
		return nil, failf("", "the log cannot be read: %v", err)
	}
	return r, nil
}

// remoteLog asks the daemon.
type remoteLog struct{ *control.Client }

func (remoteLog) Close() error { return nil }

// fileLog reads the files.
type fileLog struct{ *audit.Reader }

// Records adds the bodies as text, as the daemon does.
func (l fileLog) Records(ctx context.Context, prefix string, fn func(control.RecordView) error) error {
	return l.Reader.Records(ctx, prefix, func(r record.Record, bodies map[string][]byte) error { return fn(control.NewRecordView(&r, bodies)) })
}

// Events are the records that belong to no tool call.
func (l fileLog) Events(ctx context.Context, from, to time.Time, kind string, fn func(control.RecordView) error) error {
	return l.Scan(ctx, audit.Range{From: from, To: to}, func(r *record.Record, load audit.BodiesFunc) error {
		if !control.EventKind(r.Kind, kind) {
			return nil
		}
		bodies, err := load()
		if err != nil {
			return err
		}
		return fn(control.NewRecordView(r, bodies))
	})
}

// partly lets what could be read stand when a part of the log cannot be read, and says so.
func (a *app) partly(err error) error {
	if errors.Is(err, audit.ErrDamaged) {
		fmt.Fprintf(a.Err, "warning: %s; ask %s\n", show.Line(err.Error(), 500), a.paste("verify"))
		return nil
	}
	return a.controlError(err)
}

// client is for commands that need the daemon.
func (a *app) client() (*control.Client, error) {
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	return &control.Client{Socket: p.ControlSocket}, nil
}

// controlError gives an answer of the daemon its exit code.
func (a *app) controlError(err error) error {
	var re *control.ResponseError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, control.ErrUnreachable):
		return &Error{Code: exitUnreachable, Msg: err.Error(), Err: err, Hints: []string{a.startHint()}}
	case errors.As(err, &re):
		e := &Error{Code: exitError, Msg: re.Message, Err: err}
		if re.Status == 404 {
			e.Code = exitNothing
		}
		if re.Hint != "" {
			e.Hints = []string{re.Hint}
		}
		return e
	}
	return err
}
