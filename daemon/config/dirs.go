// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
)

// Dirs name places on a command line, for a daemon whose environment says nothing: "" = the usual one below the others.
type Dirs struct {
	Home   string // home directory; "" = the one of the password database
	Config string // "" = .config/tripline in Home
	State  string // "" = .local/state/tripline in Home
	Run    string // "" = run in State
}

// DirFlags are the flags of triplined that set Dirs, without dashes, in the order in which Args gives them.
func DirFlags() []string { return []string{"home", "config-dir", "state-dir", "run-dir"} }

func (d *Dirs) field(flag string) *string {
	switch flag {
	case "home":
		return &d.Home
	case "config-dir":
		return &d.Config
	case "state-dir":
		return &d.State
	case "run-dir":
		return &d.Run
	}
	return nil
}

// Set gives a directory the value of its flag.
func (d *Dirs) Set(flag, value string) error {
	f := d.field(flag)
	if f == nil {
		return fmt.Errorf("unknown directory %q", flag)
	}
	if !filepath.IsAbs(value) || strings.ContainsRune(value, 0) {
		return fmt.Errorf("%q is not an absolute path", value)
	}
	*f = filepath.Clean(value)
	return nil
}

// Args returns the flags that set what is set in d, as --flag=value.
func (d Dirs) Args() []string {
	var args []string
	for _, flag := range DirFlags() {
		if v := *d.field(flag); v != "" {
			args = append(args, "--"+flag+"="+v)
		}
	}
	return args
}

// Places are the places that d names. The environment has no part in them.
func (d Dirs) Places() (Places, error) { return d.places(passwdHome) }

func (d Dirs) places(passwd func() string) (Places, error) {
	if d.Home == "" {
		d.Home = passwd()
	}
	if d.Home == "" && (d.Config == "" || d.State == "") {
		return Places{}, ErrNoHome
	}
	if d.Config == "" {
		d.Config = filepath.Join(d.Home, ".config", "tripline")
	}
	if d.State == "" {
		d.State = filepath.Join(d.Home, ".local", "state", "tripline")
	}
	if d.Run == "" {
		d.Run = filepath.Join(d.State, "run")
	}
	p := newPlaces(d.Config, d.State, d.Run)
	p.Home = d.Home
	return p, nil
}

// Dirs name all of p's directories: the places come out the same whatever the password database says by then.
func (p Places) Dirs() Dirs {
	return Dirs{Home: p.Home, Config: p.ConfigDir, State: p.StateDir, Run: p.RunDir}
}

// ShortDirs name only those directories of p that an empty environment would not give. Its Places are those of p, but for
// TriplineHome, which is the name of a variable and not a place.
func (p Places) ShortDirs() Dirs { return p.shortDirs(passwdHome) }

func (p Places) shortDirs(passwd func() string) Dirs {
	d := p.Dirs()
	for _, flag := range DirFlags() {
		f := d.field(flag)
		without := *f
		*f = ""
		if got, err := d.places(passwd); err != nil || got.Dirs() != p.Dirs() {
			*f = without
		}
	}
	return d
}

// passwdHome is this user's home directory in the password database, "" if there is none.
func passwdHome() string {
	u, err := user.LookupId(strconv.Itoa(os.Geteuid()))
	if err != nil || !filepath.IsAbs(u.HomeDir) {
		return ""
	}
	return filepath.Clean(u.HomeDir)
}
