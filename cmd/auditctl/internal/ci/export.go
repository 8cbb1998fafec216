// SPDX-License-Identifier: Apache-2.0

package ci

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/tripline-sh/tripline/daemon/config"
)

// public are the files of the key directory that may leave the machine. Every other one is a secret.
var public = [...]string{"log.pub", "last.checkpoint"}

// Export is a directory of artefacts: calls.jsonl, events.jsonl, and below state/ the log and its public key, laid out so
// that TRIPLINE_HOME can name the directory. Each file appears whole or not at all.
type Export struct{ dir string }

// NewExport makes the directory. Links are refused: it may lie in a work tree that the agent could write to.
func NewExport(dir string) (*Export, error) {
	for _, d := range []string{dir, filepath.Join(dir, "state"), filepath.Join(dir, "state", "log"), filepath.Join(dir, "state", "keys")} {
		if err := os.Mkdir(d, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, fmt.Errorf("no directory for the artefacts: %w", err)
		}
		fi, err := os.Lstat(d)
		if err != nil {
			return nil, err
		}
		st, ok := fi.Sys().(*syscall.Stat_t)
		if !fi.IsDir() || !ok || int(st.Uid) != os.Geteuid() {
			return nil, fmt.Errorf("%s is not a directory of this user", d)
		}
	}
	return &Export{dir}, nil
}

// Lines is a file of JSON lines that is being written.
type Lines struct {
	*bufio.Writer
	file *renameio.PendingFile
}

// Lines begins the file of that name.
func (e *Export) Lines(name string) (*Lines, error) {
	f, err := renameio.NewPendingFile(filepath.Join(e.dir, name), renameio.WithPermissions(0o600), renameio.IgnoreUmask())
	if err != nil {
		return nil, err
	}
	return &Lines{bufio.NewWriterSize(f, 64<<10), f}, nil
}

// Done gives the file its name.
func (l *Lines) Done() error {
	if err := l.Flush(); err != nil {
		return err
	}
	return l.file.CloseAtomicallyReplace()
}

// Drop takes an unfinished file away; after Done it does nothing.
func (l *Lines) Drop() { _ = l.file.Cleanup() }

// Log copies the log's segments and what is public of its keys. No daemon may run.
func (e *Export) Log(p config.Places) error {
	names, err := os.ReadDir(p.LogDir)
	if err != nil {
		return fmt.Errorf("the log cannot be copied: %w", err)
	}
	for _, n := range names {
		if !strings.HasSuffix(n.Name(), ".db") || !n.Type().IsRegular() {
			continue
		}
		if err := e.copy(filepath.Join(p.LogDir, n.Name()), filepath.Join("state", "log", n.Name())); err != nil {
			return err
		}
	}
	for _, name := range public {
		err := e.copy(filepath.Join(p.KeysDir, name), filepath.Join("state", "keys", name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (e *Export) copy(from, to string) error {
	in, err := os.OpenFile(from, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := renameio.NewPendingFile(filepath.Join(e.dir, to), renameio.WithPermissions(0o600), renameio.IgnoreUmask())
	if err != nil {
		return err
	}
	defer func() { _ = out.Cleanup() }()
	if _, err := io.Copy(out, in); err != nil {
		return fmt.Errorf("%s cannot be copied: %w", from, err)
	}
	return out.CloseAtomicallyReplace()
}

// Write puts a whole file in place at once, whatever stood there.
func Write(path string, text []byte, perm fs.FileMode) error {
	return renameio.WriteFile(path, text, perm, renameio.IgnoreUmask())
}

// CopyRules copies rule files, or the ones of directories, into a job's own.
func CopyRules(paths []string, to string) error {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for _, path := range paths {
		fi, err := os.Stat(path)
		if err != nil {
			return err
		}
		files := []string{path}
		if fi.IsDir() {
			if files, err = filepath.Glob(filepath.Join(escapeGlob(path), "*.yaml")); err != nil {
				return err
			}
			if len(files) == 0 {
				return fmt.Errorf("%s holds no rules (*.yaml)", path)
			}
		}
		for _, f := range files {
			if err := copyRule(f, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// escapeGlob names a path literally in a pattern.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

const maxRules = 1 << 20

func copyRule(path, to string) error {
	if !strings.HasSuffix(path, ".yaml") {
		return fmt.Errorf("%s is not called *.yaml", path)
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if fi, err := f.Stat(); err != nil || !fi.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxRules+1))
	if err != nil {
		return err
	}
	if len(b) > maxRules {
		return fmt.Errorf("%s is larger than %d bytes", path, maxRules)
	}
	target := filepath.Join(to, filepath.Base(path))
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("two files of rules are called %s", filepath.Base(path))
	}
	return Write(target, b, 0o600)
}

// Spooled counts the events that hooks left in a spool, up to a bound.
func Spooled(dir string) int {
	f, err := os.Open(dir)
	if err != nil {
		return 0
	}
	defer f.Close()
	names, _ := f.ReadDir(100_000) // what can be read
	n := 0
	for _, e := range names {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ".evt") {
			n++
		}
	}
	return n
}
