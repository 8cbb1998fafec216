// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/daemon/control"
)

// reloading is a daemon that only knows reloads, and what it was asked.
type reloading struct {
	loosened []string
	asked    []control.ReloadRequest
}

func (d *reloading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req control.ReloadRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	d.asked = append(d.asked, req)
	_ = json.NewEncoder(w).Encode(control.ReloadResponse{Changed: true, Rules: 1, Loosened: d.loosened, Tightened: []string{}, Restart: []string{}})
}

// serve listens where the daemon of a TRIPLINE_HOME does, and returns that.
func (d *reloading) serve(t *testing.T) string {
	t.Helper()
	home, err := os.MkdirTemp("", "tl") // names of sockets are short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	if err := os.Mkdir(filepath.Join(home, "run"), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("unix", filepath.Join(home, "run", "control.sock"))
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: d, ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() { // ends with the listener
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() { s.Close(); <-done })
	return home
}

func TestAReloadThatLoosensAsksInATerminal(t *testing.T) {
	t.Parallel()
	loosened := []string{"rule x: allow added: Bash(rm:*) (0123)"}
	tests := []struct {
		name     string
		input    string
		args     []string
		pipe     bool
		env      string
		loosened []string
		code     int
		forced   bool     // a reload that is no dry run was asked for
		expect   []string // with this
	}{
		{"a typed yes puts in force what was shown", "yes\n", nil, false, "", loosened, exitOK, true, loosened},
		{"any other answer changes nothing", "y\n", nil, false, "", loosened, exitError, false, nil},
		{"so does none", "", nil, false, "", loosened, exitError, false, nil},
		{"with --yes nobody is asked", "", []string{"--yes"}, false, "", loosened, exitOK, true, nil},
		{"a script is not asked", "", nil, true, "", loosened, exitOK, true, nil},
		{"what does not loosen needs no answer", "", nil, false, "", []string{}, exitOK, true, nil},
		{"a dry run needs none", "", []string{"--dry-run"}, false, "", loosened, exitOK, false, nil},
		{"an agent's shell is refused", "yes\n", nil, true, "CLAUDECODE", loosened, exitError, false, nil},
		{"but may look", "", []string{"--dry-run"}, true, "CLAUDECODE", loosened, exitOK, false, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := &reloading{loosened: tt.loosened}
			home := d.serve(t)
			var out, errs bytes.Buffer
			env := Env{
				In: strings.NewReader(tt.input), Out: &out, Err: &errs, InTTY: !tt.pipe, Now: time.Now, Exe: "/opt/x/auditctl", Name: "auditctl",
				Getwd:  func() (string, error) { return home, nil },
				Getenv: func(name string) string { return map[string]string{"TRIPLINE_HOME": home, tt.env: "1"}[name] },
			}
			code := Run(context.Background(), env, "test", append([]string{"rules", "reload"}, tt.args...))
			var forced []control.ReloadRequest
			for _, r := range d.asked {
				if !r.DryRun {
					forced = append(forced, r)
				}
			}
			if code != tt.code || (len(forced) == 1) != tt.forced || len(forced) > 1 || tt.forced && !slices.Equal(forced[0].Expect, tt.expect) {
				t.Fatalf("exit %d, reloads %+v\n%s%s", code, d.asked, out.String(), errs.String())
			}
			if tt.forced && len(tt.loosened) > 0 && !strings.Contains(out.String()+errs.String(), "loosens   "+tt.loosened[0]) {
				t.Errorf("what loosens was not shown:\n%s%s", out.String(), errs.String())
			}
		})
	}
}

func TestAnIDIsNothingButAnID(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		"x # /../../../evil", "y\n    allow: [\"Bash\"]\n  - id: z", "\"q\"", "'q'", "x #", "&a x", "!!str x", "|\n      x", "../x", "x/y", "x: y", "", " x", "x ", ".", "..", "\u2028x",
	} {
		h := newRulesHome(t)
		for _, rest := range [][]string{{}, {"-"}} {
			code, out, errs := h.run("", append([]string{"rules", "new", "--ask", "Bash(make:*)", id}, rest...)...)
			if code == exitOK {
				t.Errorf("%q was taken: %s%s", id, out, errs)
			}
		}
		if err := filepath.WalkDir(h.home, func(path string, e os.DirEntry, err error) error {
			if err == nil && !e.IsDir() {
				t.Errorf("%q wrote %s", id, path)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	h := newRulesHome(t)
	if code, out, errs := h.run("", "rules", "new", "team.deploys-2", "--ask", "Bash(make:*)"); code != exitOK {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
}
