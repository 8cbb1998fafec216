// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// systemd is the user's own instance of systemd.
type systemd struct {
	h     Host
	files []file // service, hook socket, control socket
	begun time.Time
}

// findSystemd returns the user's manager if it answers and reads the directory that we write to; else it says why not.
func findSystemd(ctx context.Context, h Host, in Install) (*systemd, string) {
	if fi, err := os.Stat(h.Booted); err != nil || !fi.IsDir() {
		return nil, "systemd does not run this machine"
	}
	if h.Getenv("XDG_RUNTIME_DIR") == "" {
		return nil, "this shell has no user session of systemd (XDG_RUNTIME_DIR is not set)"
	}
	dir := userUnits(h.Home, h.Getenv("XDG_CONFIG_HOME"))
	if dir == "" {
		return nil, "this user has no home directory"
	}
	out, err := h.run(ctx, probeTime, "systemctl", "--user", "show", "--property=UnitPath")
	if err != nil {
		return nil, "systemd's user manager does not answer (" + err.Error() + ")"
	}
	if !reads(out, dir) {
		return nil, "systemd's user manager does not read " + dir + " (HOME or XDG_CONFIG_HOME is another one there)"
	}
	return &systemd{h: h, files: []file{
		{filepath.Join(dir, serviceUnit), serviceText(&in)},
		{filepath.Join(dir, hookUnit), socketText("agents' hooks", "hook", in.HookSocket)},
		{filepath.Join(dir, controlUnit), socketText("auditctl", "control", in.ControlSocket)},
	}}, ""
}

// userUnits is the directory of the user's own units, "" if it cannot be told.
func userUnits(home, config string) string {
	if !filepath.IsAbs(config) {
		if home == "" {
			return ""
		}
		config = filepath.Join(home, ".config")
	}
	return filepath.Join(config, "systemd", "user")
}

// reads reports whether dir is in the list of directories that systemctl printed: UnitPath=DIR DIR..., quoted in one of two ways
// where a name holds blanks.
func reads(out, dir string) bool {
	list, ok := strings.CutPrefix(strings.TrimSpace(out), "UnitPath=")
	if !ok {
		return false
	}
	list = " " + list + " "
	for _, form := range []string{dir, strings.ReplaceAll(dir, " ", `\x20`), strings.ReplaceAll(dir, " ", `\ `), `"` + dir + `"`} {
		if strings.Contains(list, " "+form+" ") {
			return true
		}
	}
	return false
}

func (s *systemd) Name() string { return Systemd }

// write brings the units up to date and has systemd read them again if that changed one.
func (s *systemd) write(ctx context.Context) error {
	for _, f := range s.files { // before the first one is written
		if _, err := ours(f.path); errors.Is(err, ErrForeign) {
			return err
		}
	}
	changed := false
	for _, f := range s.files {
		c, err := f.write()
		if err != nil {
			return err
		}
		changed = changed || c
	}
	if !changed {
		return nil
	}
	return s.ctl(ctx, "daemon-reload")
}

func (s *systemd) ctl(ctx context.Context, args ...string) error {
	_, err := s.h.run(ctx, workTime, "systemctl", append([]string{"--user", "--no-ask-password"}, args...)...)
	return err
}

// prepare is what start and restart have in common: the units, at login too, and the sockets.
func (s *systemd) prepare(ctx context.Context) error {
	s.begun = time.Now()
	if err := s.write(ctx); err != nil {
		return err
	}
	// a daemon that failed too often is not tried again before this; there may be nothing to reset
	_ = s.ctl(ctx, "reset-failed", serviceUnit, hookUnit, controlUnit)
	if err := s.ctl(ctx, "enable", hookUnit, controlUnit, serviceUnit); err != nil {
		return err
	}
	return s.ctl(ctx, "start", hookUnit, controlUnit)
}

func (s *systemd) Start(ctx context.Context) (<-chan error, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	return nil, s.ctl(ctx, "start", serviceUnit)
}

// Restart leaves the sockets alone: calls that come meanwhile wait in them.
func (s *systemd) Restart(ctx context.Context) (<-chan error, error) {
	if err := s.prepare(ctx); err != nil {
		return nil, err
	}
	return nil, s.ctl(ctx, "restart", serviceUnit)
}

func (s *systemd) Stop(ctx context.Context) error {
	if !s.known() {
		return nil
	}
	return s.ctl(ctx, "stop", hookUnit, controlUnit, serviceUnit)
}

// known reports whether one of our units is there.
func (s *systemd) known() bool {
	for _, f := range s.files {
		if _, err := ours(f.path); err == nil {
			return true
		}
	}
	return false
}

func (s *systemd) Disable(ctx context.Context) ([]string, error) {
	if !s.known() {
		return nil, nil
	}
	err := s.ctl(ctx, "disable", hookUnit, controlUnit, serviceUnit)
	var removed []string
	for _, f := range s.files {
		gone, rerr := f.remove()
		if gone {
			removed = append(removed, f.path)
		}
		err = errors.Join(err, rerr)
	}
	return removed, errors.Join(err, s.ctl(ctx, "daemon-reload"))
}

func (s *systemd) Where() string { return "journalctl --user -u " + serviceUnit }

func (s *systemd) LastWords(ctx context.Context) string {
	out, err := s.h.run(ctx, probeTime, "journalctl", "--user", "-q", "-u", serviceUnit,
		"--since", "@"+strconv.FormatInt(s.begun.Unix(), 10), "-n", strconv.Itoa(maxTailLines), "--no-pager", "-o", "cat")
	if err != nil {
		return ""
	}
	return tail(out)
}

func (s *systemd) Notes() []string {
	name := s.h.Getenv("USER")
	if u, err := user.LookupId(strconv.Itoa(s.h.UID)); err == nil {
		name = u.Username
	}
	if name == "" || strings.ContainsRune(name, filepath.Separator) {
		return nil
	}
	if _, err := os.Stat(filepath.Join(s.h.LingerDir, name)); err == nil {
		return nil
	}
	return []string{"the daemon ends with your last logout; to keep it beyond that: loginctl enable-linger"}
}
