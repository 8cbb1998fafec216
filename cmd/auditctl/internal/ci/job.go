// SPDX-License-Identifier: Apache-2.0

// Package ci is what a job of a continuous integration service needs beside the daemon: a private directory for the job, the
// files by which a runner hands values from step to step, and, at the end, a summary and artefacts of what the agent did. It
// starts nothing and never asks the daemon. All text of the log is hostile here: see text.go.
package ci

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

const (
	jobFile   = "state/ci.json" // beside the log, where the floor protects it
	maxJob    = 64 << 10
	maxSocket = 103 // the longest path of a socket that every system takes
)

// ErrNoJob says that no job was started in a directory.
var ErrNoJob = errors.New("no job was started here")

// Job is one guarded job, as it is kept in its directory. The agent's user can write there: what it says at the end of the job is a
// hint where to look, and is compared with the log, see Guard. It may make the end graver and never milder.
type Job struct {
	V        int       `json:"v"`
	Dir      string    `json:"dir"`      // private, links resolved; holds everything, and is the TRIPLINE_HOME of the job
	Settings string    `json:"settings"` // the agent's settings file that is wired
	Agent    string    `json:"agent"`
	Mode     string    `json:"mode"`
	Profile  string    `json:"profile"`
	OnDown   string    `json:"on_down"`
	Metrics  string    `json:"metrics"`
	Key      string    `json:"key"` // the log's verifier key, "" until the daemon has answered
	Started  time.Time `json:"started"`
	// Finished is when the job was finished first; zero while it runs.
	Finished time.Time `json:"finished,omitzero"`
	// What was found out then, for whoever finishes the job again.
	Died    bool `json:"died,omitempty"`    // the daemon was gone
	Altered bool `json:"altered,omitempty"` // the hooks were not as they had been put there
	Killed  bool `json:"killed,omitempty"`  // the daemon did not end when it was asked to
}

// Load reads the job of a directory. ErrNoJob: there is none.
func Load(dir string) (*Job, error) {
	path := filepath.Join(dir, jobFile)
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, fmt.Errorf("%w: %s", ErrNoJob, dir)
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxJob))
	if err != nil {
		return nil, err
	}
	var j Job
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&j); err != nil || j.V != 1 || !filepath.IsAbs(j.Dir) || !filepath.IsAbs(j.Settings) {
		return nil, fmt.Errorf("%s cannot be read as a job of this version", path)
	}
	return &j, nil
}

// Save keeps the job in its directory.
func (j *Job) Save() error {
	b, err := json.MarshalIndent(j, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(j.Dir, jobFile)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return renameio.WriteFile(path, append(b, '\n'), 0o600, renameio.IgnoreUmask())
}

// New makes the directory of a new job: dir, which must be empty or absent, or, if dir is "", a new one below temp, or below
// /tmp where temp is too deep for sockets. The caller saves the job.
func New(dir, temp string) (*Job, error) {
	if dir == "" {
		const typical = "/tripline-0123456789"
		if deep(temp + typical) {
			temp = "/tmp"
		}
		made, err := os.MkdirTemp(temp, "tripline-")
		if err != nil {
			return nil, fmt.Errorf("no directory for the job: %w", err)
		}
		dir = made
	}
	if !filepath.IsAbs(dir) {
		return nil, fmt.Errorf("%q is not an absolute path", dir)
	}
	if deep(dir) {
		return nil, fmt.Errorf("%s is too long: below it a socket's path would have more than %d bytes", dir, maxSocket)
	}
	if err := private(dir); err != nil {
		return nil, err
	}
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	if deep(dir) {
		return nil, fmt.Errorf("%s is too long: below it a socket's path would have more than %d bytes", dir, maxSocket)
	}
	return &Job{V: 1, Dir: dir}, nil
}

// deep reports whether sockets below dir could not be opened.
func deep(dir string) bool { return len(dir)+len("/run/control.sock") > maxSocket }

// private makes sure that dir is an empty directory that is this user's alone.
func private(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("no directory for the job: %w", err)
	}
	fi, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	switch {
	case !fi.IsDir():
		return fmt.Errorf("%s is not a directory", dir)
	case !ok || int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user", dir)
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if len(names) > 0 {
		return fmt.Errorf("%s is not empty; a job needs a directory of its own", dir)
	}
	return os.Chmod(dir, 0o700)
}
