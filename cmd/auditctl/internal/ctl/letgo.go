// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"time"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

// How long uninstall waits for sessions that run: they read a changed settings file within two seconds.
const (
	letGoTime  = 5 * time.Second
	letGoEvery = 100 * time.Millisecond
)

// letGo waits until the live sessions of an agent have taken up settings without our hooks, and says which have not.
func (a *app) letGo(ctx context.Context, p config.Places, agent string) error {
	ctx, cancel := context.WithTimeout(ctx, letGoTime)
	defer cancel()
	tick := time.NewTicker(letGoEvery)
	defer tick.Stop()
	cl := &control.Client{Socket: p.ControlSocket}
	var done, left []control.LiveSession
	told := false
	for {
		st, err := cl.Status(ctx)
		if err == nil {
			done, left = split(st.Live, agent)
		}
		if len(left) > 0 && !told {
			fmt.Fprintf(a.Err, "waiting for %s to let go of our hooks ...\n", words.Count(len(left), "session"))
			told = true
		}
		if err == nil && len(left) == 0 || ctx.Err() != nil {
			break
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
	if len(done) > 0 {
		fmt.Fprintf(a.Out, "%s let go of our hooks\n", words.Count(len(done), "session"))
	}
	for _, s := range left {
		fmt.Fprintf(a.Err, "warning: session %s (%s) did not let go: it calls our hook until it is restarted. While the daemon runs its calls are judged as before; without it they are denied\n",
			show.Line(short(s.Session), 100), show.Line(where(s), 500))
	}
	return nil
}

// split sorts the sessions of an agent by whether they have let go.
func split(live []control.LiveSession, agent string) (done, left []control.LiveSession) {
	for _, s := range live {
		switch {
		case s.Agent != agent:
		case s.LetGo:
			done = append(done, s)
		default:
			left = append(left, s)
		}
	}
	return done, left
}

// where says how a person finds a session.
func where(s control.LiveSession) string {
	if s.PID == 0 {
		return s.Cwd
	}
	return fmt.Sprintf("process %d in %s", s.PID, s.Cwd)
}
