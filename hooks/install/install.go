// SPDX-License-Identifier: Apache-2.0

// Package install puts Tripline's hooks into an agent's settings file and takes them out again. The file is another
// person's: it is edited in place, in its own style; every foreign byte stays where it is; a change is planned first, can
// be shown as a diff, and is applied only to the bytes that it was planned for. Removing is structural, so that no backup
// can be stale: removing what was just installed gives back the file byte for byte.
package install

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

var (
	// ErrRefused is wrapped by errors about a file that is not edited because of what or where it is.
	ErrRefused = errors.New("refused")
	// ErrChanged is returned by Apply when the file is not the one that the change was planned for.
	ErrChanged = errors.New("the file changed in the meantime")
	// ErrOptions is wrapped by errors about the options of Plan.
	ErrOptions = errors.New("bad install options")
)

// Options say what to install and where.
type Options struct {
	Path        string // settings file, see SettingsPath
	Owner       int    // uid that must own the file and its folder
	Binary      string // absolute path of tripline-hook
	Socket      string // absolute path of the daemon's hook socket
	Spool       string // absolute path of the spool directory; "" = the hook keeps nothing while the daemon is away
	ServerUID   int    // the only uid that the hook accepts as the daemon's
	Token       string // install token, see Token; "" = the one that is in the file, else a new one
	AllowOnDown bool   // a person chose on_down: allow

	// Daemon is the command line by which a hook starts the daemon where no service manager does, the absolute path of the
	// program first. nil = the hook starts nothing.
	Daemon []string
}

// Change is a planned change of one settings file.
type Change struct {
	Path     string   // the file as it was asked for; the agent names it like this
	Token    string   // the token that the file will hold, "" when removing
	Old, New []byte   // nil = no file
	Warnings []string // what keeps the hooks from working, in words for a person

	owner  int
	target string // the file itself, links resolved
	linked bool   // Path is a link
	perm   uint32
}

// SettingsPath returns the user's settings file of Claude Code: in the directory that $CLAUDE_CONFIG_DIR names, if the
// caller found it set, else in home.
func SettingsPath(configDir, home string) (string, error) {
	dir := configDir
	if dir == "" {
		dir = filepath.Join(home, ".claude")
	}
	if !filepath.IsAbs(dir) {
		return "", fmt.Errorf("%w: the settings directory %q is not absolute", ErrOptions, dir)
	}
	return filepath.Join(dir, "settings.json"), nil
}

// Token returns a new install token: 128 random bits in hexadecimal.
func Token() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// Plan works out how the settings file gets exactly one entry of ours for each event. It changes nothing. Entries of an
// earlier install are brought up to date where they stand; a second Plan after Apply finds nothing to do.
func Plan(o Options) (*Change, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c, err := open(o.Path, o.Owner)
	if err != nil {
		return nil, err
	}
	if c.Token = o.Token; c.Token == "" && c.Old != nil {
		c.Token = tokenOf(c.Old)
	}
	if c.Token == "" {
		c.Token = Token()
	}
	text := c.Old
	if text == nil {
		text = []byte(newFile)
	}
	doc, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, o.Path, err)
	}
	doc.fresh = c.Old == nil
	c.Warnings = doc.warnings()
	var want []Entry
	for _, r := range claude.Events() {
		want = append(want, o.entry(r, c.Token))
	}
	if c.New, err = put(doc, want); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, o.Path, err)
	}
	c.keepMark()
	return c, nil
}

// PlanRemoval works out how to take our entries, and what was made only to hold them, out of the settings file at path.
func PlanRemoval(path string, owner int) (*Change, error) {
	c, err := open(path, owner)
	if err != nil || c.Old == nil {
		return c, err
	}
	doc, err := parse(c.Old)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, path, err)
	}
	if c.New, err = takeOut(doc); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrRefused, path, err)
	}
	if c.New == nil && c.linked {
		c.New = []byte("{}\n") // the link is not ours to break
	}
	c.keepMark()
	return c, nil
}

// keepMark lets the new bytes begin with a byte order mark if the old ones did.
func (c *Change) keepMark() {
	if c.New != nil && bytes.HasPrefix(c.Old, byteOrderMark) {
		c.New = append(bytes.Clone(byteOrderMark), c.New...)
	}
}

// Empty reports whether there is nothing to do.
func (c *Change) Empty() bool { return (c.Old == nil) == (c.New == nil) && bytes.Equal(c.Old, c.New) }

// SHA256 returns the hash of the coming bytes in hexadecimal, "absent" if the file goes away.
func (c *Change) SHA256() string {
	if c.New == nil {
		return "absent"
	}
	sum := sha256.Sum256(c.New)
	return hex.EncodeToString(sum[:])
}

// Diff returns the change as a unified diff, "" if there is nothing to do. It quotes the file: show it only to its owner.
func (c *Change) Diff() string {
	if c.Empty() {
		return ""
	}
	return unified(c.Path, c.Old, c.New)
}

func (o *Options) check() error {
	paths := []struct{ what, path string }{{"hook binary", o.Binary}, {"socket", o.Socket}}
	if o.Spool != "" {
		paths = append(paths, struct{ what, path string }{"spool", o.Spool})
	}
	if o.Daemon != nil {
		if len(o.Daemon) == 0 {
			return fmt.Errorf("%w: the daemon's command line is empty", ErrOptions)
		}
		paths = append(paths, struct{ what, path string }{"daemon", o.Daemon[0]})
		for _, arg := range o.Daemon[1:] {
			if !plain(arg) {
				return fmt.Errorf("%w: the daemon's argument %q is not plain text", ErrOptions, arg)
			}
		}
	}
	for _, p := range paths {
		if !filepath.IsAbs(p.path) || !plain(p.path) {
			return fmt.Errorf("%w: %s %q is not an absolute path of plain text", ErrOptions, p.what, p.path)
		}
	}
	if filepath.Base(o.Binary) != binaryName {
		return fmt.Errorf("%w: the hook binary %q is not called %s, so that it could not be found again", ErrOptions, o.Binary, binaryName)
	}
	if o.Token != "" && !validToken(o.Token) {
		return fmt.Errorf("%w: the token is not 32 hexadecimal digits", ErrOptions)
	}
	if o.ServerUID < 0 {
		return fmt.Errorf("%w: negative uid", ErrOptions)
	}
	return nil
}

// plain reports whether a text can stand in a settings file as it is meant: valid UTF-8 without control characters.
func plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' })
}

func validToken(s string) bool {
	b, err := hex.DecodeString(s)
	return err == nil && len(b) == 16
}
