// SPDX-License-Identifier: Apache-2.0

package config

import (
	"path/filepath"
	"testing"
)

func TestFindPlaces(t *testing.T) {
	t.Parallel()
	runtime := t.TempDir()
	tests := []struct {
		name               string
		env                map[string]string
		config, log, hook  string
		home, triplineHome string
		passwd             string
		err                bool
	}{
		{name: "home alone gives the xdg defaults", env: map[string]string{"HOME": "/home/u"},
			config: "/home/u/.config/tripline/tripline.yaml", log: "/home/u/.local/state/tripline/log",
			hook: "/home/u/.local/state/tripline/run/hook.sock", home: "/home/u"},
		{name: "xdg variables move them", env: map[string]string{"HOME": "/home/u", "XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s", "XDG_RUNTIME_DIR": runtime},
			config: "/c/tripline/tripline.yaml", log: "/s/tripline/log", hook: filepath.Join(runtime, "tripline", "hook.sock"), home: "/home/u"},
		{name: "a runtime directory that is not there is not used", env: map[string]string{"HOME": "/home/u", "XDG_RUNTIME_DIR": runtime + "/none"},
			config: "/home/u/.config/tripline/tripline.yaml", log: "/home/u/.local/state/tripline/log",
			hook: "/home/u/.local/state/tripline/run/hook.sock", home: "/home/u"},
		{name: "relative xdg variables are ignored", env: map[string]string{"HOME": "/home/u", "XDG_CONFIG_HOME": "c", "XDG_STATE_HOME": "./s", "XDG_RUNTIME_DIR": "r"},
			config: "/home/u/.config/tripline/tripline.yaml", log: "/home/u/.local/state/tripline/log",
			hook: "/home/u/.local/state/tripline/run/hook.sock", home: "/home/u"},
		{name: "tripline home holds everything", env: map[string]string{"HOME": "/home/u/", "TRIPLINE_HOME": "/t/../t", "XDG_CONFIG_HOME": "/c"},
			config: "/t/config/tripline.yaml", log: "/t/state/log", hook: "/t/run/hook.sock", home: "/home/u", triplineHome: "/t"},
		{name: "tripline home needs no home", env: map[string]string{"TRIPLINE_HOME": "/t"},
			config: "/t/config/tripline.yaml", log: "/t/state/log", hook: "/t/run/hook.sock", triplineHome: "/t"},
		{name: "a relative tripline home is an error", env: map[string]string{"HOME": "/home/u", "TRIPLINE_HOME": "t"}, err: true},
		{name: "no home at all is an error", env: map[string]string{}, err: true},
		{name: "a relative home is no home", env: map[string]string{"HOME": "."}, err: true},
		{name: "the password database stands in for no home", env: map[string]string{"HOME": "."}, passwd: "/home/p", err: true},
		{name: "the password database only says what ~ is", env: map[string]string{"TRIPLINE_HOME": "/t"}, passwd: "/home/p",
			config: "/t/config/tripline.yaml", log: "/t/state/log", hook: "/t/run/hook.sock", home: "/home/p", triplineHome: "/t"},
		{name: "a home wins over the password database", env: map[string]string{"HOME": "/home/u"}, passwd: "/home/p",
			config: "/home/u/.config/tripline/tripline.yaml", log: "/home/u/.local/state/tripline/log",
			hook: "/home/u/.local/state/tripline/run/hook.sock", home: "/home/u"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p, err := findPlaces(func(k string) string { return tt.env[k] }, func() string { return tt.passwd })
			if (err != nil) != tt.err {
				t.Fatalf("error %v", err)
			}
			got := [5]string{p.ConfigFile, p.LogDir, p.HookSocket, p.Home, p.TriplineHome}
			want := [5]string{tt.config, tt.log, tt.hook, tt.home, tt.triplineHome}
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}
