// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Places are the paths of one Tripline install. All are absolute and clean; none of them needs to exist.
type Places struct {
	Home          string // home directory that the places were derived from; "" if nothing names one
	TriplineHome  string // $TRIPLINE_HOME when it is in force, else ""
	ConfigDir     string // 0700
	ConfigFile    string // tripline.yaml
	RulesDir      string // rules.d, the user's rules
	StateDir      string // 0700
	LogDir        string // segments of the audit log
	KeysDir       string // signing keys and the install token
	TokenFile     string // token that install wrote into the hook entries, one line; absent before the first install
	SpoolDir      string // events that hooks kept while no daemon ran
	RunDir        string // 0700, holds both sockets and the lock
	HookSocket    string // events and verdicts
	ControlSocket string // auditctl
	LockFile      string // held by the one daemon, holds its process id
	MetricsAddr   string // file that names the bound metrics address
	StoppedFile   string // left by auditctl stop: a daemon that a hook starts then exits at once; auditctl start removes it
	DaemonLog     string // messages of a daemon that no service manager runs
}

// ErrNoHome is returned when nothing says where things are.
var ErrNoHome = errors.New("neither TRIPLINE_HOME nor HOME is an absolute path")

// FindPlaces derives the places from the environment: $TRIPLINE_HOME holds everything when it is set; otherwise the XDG
// variables decide, with their usual defaults under $HOME. Relative values of XDG variables are ignored, as their
// specification demands; a relative TRIPLINE_HOME, and a HOME that is needed and not there, are errors, since a silent fallback
// would split one install in two. The password database only says what ~ is where HOME does not.
func FindPlaces(getenv func(string) string) (Places, error) { return findPlaces(getenv, passwdHome) }

func findPlaces(getenv func(string) string, passwd func() string) (Places, error) {
	home := getenv("HOME")
	if !filepath.IsAbs(home) {
		home = passwd()
	}
	if root := getenv("TRIPLINE_HOME"); root != "" {
		if !filepath.IsAbs(root) {
			return Places{}, fmt.Errorf("TRIPLINE_HOME is %q: it must be an absolute path", root)
		}
		root = filepath.Clean(root)
		p := newPlaces(filepath.Join(root, "config"), filepath.Join(root, "state"), filepath.Join(root, "run"))
		p.Home, p.TriplineHome = cleanOrEmpty(home), root
		return p, nil
	}
	configHome, stateHome := absOrEmpty(getenv("XDG_CONFIG_HOME")), absOrEmpty(getenv("XDG_STATE_HOME"))
	if !filepath.IsAbs(getenv("HOME")) && (configHome == "" || stateHome == "") {
		return Places{}, ErrNoHome
	}
	if configHome == "" {
		configHome = filepath.Join(home, ".config")
	}
	if stateHome == "" {
		stateHome = filepath.Join(home, ".local", "state")
	}
	state := filepath.Join(stateHome, "tripline")
	run := filepath.Join(state, "run")
	// A runtime directory that is named but not there (su, cron, containers) would only move the sockets to where nobody
	// looks for them.
	if rt := absOrEmpty(getenv("XDG_RUNTIME_DIR")); rt != "" && isDir(rt) {
		run = filepath.Join(rt, "tripline")
	}
	p := newPlaces(filepath.Join(configHome, "tripline"), state, run)
	p.Home = cleanOrEmpty(home)
	return p, nil
}

func newPlaces(config, state, run string) Places {
	return Places{
		ConfigDir:     config,
		ConfigFile:    filepath.Join(config, "tripline.yaml"),
		RulesDir:      filepath.Join(config, "rules.d"),
		StateDir:      state,
		LogDir:        filepath.Join(state, "log"),
		KeysDir:       filepath.Join(state, "keys"),
		TokenFile:     filepath.Join(state, "keys", "install.token"),
		SpoolDir:      filepath.Join(state, "spool"),
		RunDir:        run,
		HookSocket:    filepath.Join(run, "hook.sock"),
		ControlSocket: filepath.Join(run, "control.sock"),
		LockFile:      filepath.Join(run, "triplined.lock"),
		MetricsAddr:   filepath.Join(run, "metrics.addr"),
		StoppedFile:   filepath.Join(run, "stopped"),
		DaemonLog:     filepath.Join(state, "triplined.log"),
	}
}

// Own returns the directories that belong to this install, for the floor that protects them.
func (p Places) Own() []string { return []string{p.ConfigDir, p.StateDir, p.RunDir} }

func absOrEmpty(s string) string {
	if !filepath.IsAbs(s) {
		return ""
	}
	return filepath.Clean(s)
}

func cleanOrEmpty(s string) string {
	if s == "" {
		return ""
	}
	return filepath.Clean(s)
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}
