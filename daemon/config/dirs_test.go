// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// parse reads what Args wrote, as the daemon's command line is read.
func parse(t *testing.T, args []string) Dirs {
	t.Helper()
	var d Dirs
	for _, arg := range args {
		name, value, ok := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
		if !ok {
			t.Fatalf("argument %q", arg)
		}
		if err := d.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

// Every environment in which a person may have called auditctl, against every password database: a daemon without an
// environment finds the same places by the flags, and no flag could be left out.
func TestFlagsGiveAnEmptyEnvironmentTheSamePlaces(t *testing.T) {
	t.Parallel()
	runtime := t.TempDir()
	values := map[string][]string{
		"HOME":            {"", "/home/u", "/home/u/", "/root", "relative", "/home/a b=c"},
		"TRIPLINE_HOME":   {"", "/t", "/home/u/.config", "/t/../s/"},
		"XDG_CONFIG_HOME": {"", "/home/u/.config", "/c", "relative"},
		"XDG_STATE_HOME":  {"", "/home/u/.local/state/", "/s", "relative"},
		"XDG_RUNTIME_DIR": {"", runtime, runtime + "/none", "relative"},
	}
	envs := []map[string]string{{}}
	for name, list := range values {
		var next []map[string]string
		for _, env := range envs {
			for _, v := range list {
				e := map[string]string{name: v}
				for k, old := range env {
					e[k] = old
				}
				next = append(next, e)
			}
		}
		envs = next
	}
	lost := 0
	for _, pw := range []string{"", "/home/u", "/root", "/"} {
		passwd := func() string { return pw }
		for _, env := range envs {
			want, err := findPlaces(func(k string) string { return env[k] }, passwd)
			if err != nil {
				if !errors.Is(err, ErrNoHome) {
					t.Fatalf("%v: %v", env, err)
				}
				lost++
				continue
			}
			want.TriplineHome = ""
			short := want.shortDirs(passwd)
			args := short.Args()
			got, err := parse(t, args).places(passwd)
			if err != nil || got != want {
				t.Fatalf("%v, password database %q: %q give\n%+v, %v; want\n%+v", env, pw, args, got, err, want)
			}
			for i := range args {
				fewer := append(append([]string{}, args[:i]...), args[i+1:]...)
				if got, err := parse(t, fewer).places(passwd); err == nil && got == want {
					t.Fatalf("%v, password database %q: %q is not needed in %q", env, pw, args[i], args)
				}
			}
			// All of them together do not even need the password database.
			if got, err := parse(t, want.Dirs().Args()).places(func() string { return want.Home }); err != nil || got != want {
				t.Fatalf("%v: all flags give %+v, %v; want %+v", env, got, err, want)
			}
			if len(args) == 0 {
				if got, err := (Dirs{}).places(passwd); err != nil || got != want {
					t.Fatalf("%v: no flags give %+v, %v; want %+v", env, got, err, want)
				}
			}
		}
	}
	if lost == 0 || lost > len(envs) {
		t.Errorf("%d of %d environments name no place", lost, 4*len(envs))
	}
}

func TestTheUsualInstallNeedsFewFlags(t *testing.T) {
	t.Parallel()
	runtime := t.TempDir()
	passwd := func() string { return "/home/u" }
	tests := []struct {
		name string
		env  map[string]string
		want []string
	}{
		{"a home and nothing else", map[string]string{"HOME": "/home/u"}, nil},
		{"a runtime directory", map[string]string{"HOME": "/home/u", "XDG_RUNTIME_DIR": runtime},
			[]string{"--run-dir=" + filepath.Join(runtime, "tripline")}},
		{"another home", map[string]string{"HOME": "/tmp/h"}, []string{"--home=/tmp/h"}},
		{"tripline home", map[string]string{"HOME": "/home/u", "TRIPLINE_HOME": "/t"}, []string{"--config-dir=/t/config", "--state-dir=/t/state"}},
	}
	for _, tt := range tests {
		p, err := findPlaces(func(k string) string { return tt.env[k] }, passwd)
		if err != nil {
			t.Fatal(err)
		}
		got := p.shortDirs(passwd).Args()
		// The run directory of TRIPLINE_HOME is not the one in its state directory.
		if tt.env["TRIPLINE_HOME"] != "" {
			tt.want = append(tt.want, "--run-dir=/t/run")
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestDirsRefuseWhatIsNoPlace(t *testing.T) {
	t.Parallel()
	var d Dirs
	for _, flag := range DirFlags() {
		for _, v := range []string{"", "x", "./x", "~/x", "/a\x00b"} {
			if err := d.Set(flag, v); err == nil {
				t.Errorf("--%s=%q was taken", flag, v)
			}
		}
	}
	if err := d.Set("socket", "/s"); err == nil {
		t.Error("an unknown directory was taken")
	}
	if d != (Dirs{}) {
		t.Errorf("refused values were kept: %+v", d)
	}
	if _, err := (Dirs{Config: "/c"}).places(func() string { return "" }); !errors.Is(err, ErrNoHome) {
		t.Errorf("error %v", err)
	}
}
