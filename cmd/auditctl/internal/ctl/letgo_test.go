// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

// statusServer answers GET /v1/status with what live returns for the n-th question, from 1 on.
func statusServer(t *testing.T, live func(n int64) []control.LiveSession) config.Places {
	t.Helper()
	dir, err := os.MkdirTemp("", "tl") // short, for the socket's path
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l, err := net.Listen("unix", filepath.Join(dir, "c"))
	if err != nil {
		t.Fatal(err)
	}
	var n atomic.Int64
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(control.Status{Live: live(n.Add(1))})
	})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(l)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return config.Places{ControlSocket: filepath.Join(dir, "c")}
}

func TestUninstallWaitsUntilEverySessionHasLetGo(t *testing.T) {
	t.Parallel()
	p := statusServer(t, func(n int64) []control.LiveSession {
		return []control.LiveSession{
			{Agent: "claude", Session: "one", LetGo: n > 1}, {Agent: "claude", Session: "two", LetGo: n > 3}, {Agent: "another", Session: "three"},
		}
	})
	var out, errs bytes.Buffer
	a := &app{Env: Env{Out: &out, Err: &errs}}
	begun := time.Now()
	if err := a.letGo(t.Context(), p, "claude"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "2 sessions let go of our hooks\n" || strings.Count(errs.String(), "\n") != 1 || !strings.HasPrefix(errs.String(), "waiting for 2 sessions") {
		t.Errorf("said %q and %q", out.String(), errs.String())
	}
	if time.Since(begun) >= letGoTime {
		t.Error("it waited although there was nothing to wait for")
	}
}

func TestASessionThatDoesNotLetGoIsNamed(t *testing.T) {
	t.Parallel()
	p := statusServer(t, func(int64) []control.LiveSession {
		return []control.LiveSession{
			{Agent: "claude", Session: "gone", LetGo: true}, {Agent: "claude", Session: "stuck\x1b[2J", PID: 4711, Cwd: "/work\x1b]0;x"},
		}
	})
	var out, errs bytes.Buffer
	a := &app{Env: Env{Out: &out, Err: &errs}}
	if err := a.letGo(t.Context(), p, "claude"); err != nil {
		t.Fatal(err)
	}
	if out.String() != "1 session let go of our hooks\n" || !strings.Contains(errs.String(), "process 4711 in /work") || !strings.Contains(errs.String(), "until it is restarted") {
		t.Errorf("said %q and %q", out.String(), errs.String())
	}
	if strings.Contains(errs.String(), "\x1b") {
		t.Errorf("control characters came through: %q", errs.String())
	}
}

func TestUninstallDoesNotWaitWhereNoSessionRuns(t *testing.T) {
	t.Parallel()
	p := statusServer(t, func(int64) []control.LiveSession { return nil })
	var out, errs bytes.Buffer
	if err := (&app{Env: Env{Out: &out, Err: &errs}}).letGo(t.Context(), p, "claude"); err != nil || out.Len()+errs.Len() != 0 {
		t.Errorf("%v, said %q and %q", err, out.String(), errs.String())
	}
}

// A daemon whose lock file was removed still writes the log that purge would delete.
func TestNothingIsPurgedUnderADaemonThatAnswers(t *testing.T) {
	t.Parallel()
	p := statusServer(t, func(int64) []control.LiveSession { return nil })
	p.LockFile = filepath.Join(t.TempDir(), "none")
	a := &app{Env: Env{Getenv: func(string) string { return "" }}}
	if err := a.mayPurge(t.Context(), p); err == nil || !strings.Contains(err.Error(), "a daemon answers") {
		t.Errorf("purge goes on: %v", err)
	}
}
