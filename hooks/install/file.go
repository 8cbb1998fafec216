// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// maxFile is the largest settings file that is read.
const maxFile = 1 << 20

// open reads the settings file at path for a change. Links are followed, but only as far as they stay in the folder that
// holds them: a link elsewhere could be another program's file, or a project's. File and folder must be the owner's alone.
func open(path string, owner int) (*Change, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%w: the settings file %q is not an absolute path", ErrOptions, path)
	}
	c := &Change{Path: path, owner: owner, perm: 0o600}
	folder, exists, err := c.folder()
	if err != nil {
		return nil, err
	}
	c.target = filepath.Join(folder, filepath.Base(path))
	if !exists {
		return c, nil
	}
	info, err := os.Lstat(c.target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		c.linked = true
		if c.target, err = follow(c.target, folder); err != nil {
			return nil, err
		}
		if err := ownedFolder(filepath.Dir(c.target), owner); err != nil {
			return nil, err
		}
	}
	if c.Old, c.perm, err = read(c.target, owner); err != nil {
		return nil, err
	}
	return c, nil
}

// folder returns the real folder of the settings file, and whether it exists.
func (c *Change) folder() (string, bool, error) {
	dir := filepath.Dir(c.Path)
	parent, err := filepath.EvalSymlinks(filepath.Dir(dir))
	if err != nil {
		return "", false, fmt.Errorf("the folder of %s: %w", dir, err)
	}
	real := filepath.Join(parent, filepath.Base(dir))
	info, err := os.Lstat(real)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return real, false, ownedFolder(parent, c.owner)
	case err != nil:
		return "", false, err
	case info.Mode()&fs.ModeSymlink != 0:
		if real, err = follow(real, parent); err != nil {
			return "", false, err
		}
	}
	return real, true, ownedFolder(real, c.owner)
}

// follow resolves the link at path, which must lead to something inside folder.
func follow(path, folder string) (string, error) {
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", fmt.Errorf("%w: %s is a link that leads nowhere", ErrRefused, path)
	}
	if !strings.HasPrefix(target, strings.TrimSuffix(folder, "/")+"/") {
		return "", fmt.Errorf("%w: %s is a link to %s, out of its folder; change that file yourself or replace the link", ErrRefused, path, target)
	}
	return target, nil
}

func ownedFolder(dir string, owner int) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%w: %s is not a directory", ErrRefused, dir)
	}
	return owned(dir, info, owner)
}

// owned refuses what others could change under our hands.
func owned(path string, info fs.FileInfo, owner int) error {
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != owner {
		return fmt.Errorf("%w: %s belongs to another user", ErrRefused, path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%w: others may write to %s; take that away first: chmod go-w %s", ErrRefused, path, path)
	}
	return nil
}

// read reads the file at path, which must not be a link any more.
func read(path string, owner int) (b []byte, perm uint32, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, 0, err
	}
	if !info.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%w: %s is not a regular file", ErrRefused, path)
	}
	if err := owned(path, info, owner); err != nil {
		return nil, 0, err
	}
	b, err = io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, 0, err
	}
	if len(b) > maxFile {
		return nil, 0, fmt.Errorf("%w: %s is larger than 1 MiB", ErrRefused, path)
	}
	if b == nil {
		b = []byte{}
	}
	return b, uint32(info.Mode().Perm()), nil
}

// Apply makes the change, at once or not at all, if the file still holds the bytes that it was planned for; else it returns
// ErrChanged. Mode and links stay.
func (c *Change) Apply() error {
	if c.Empty() {
		return nil
	}
	if err := c.unchanged(); err != nil {
		return err
	}
	folder := filepath.Dir(c.target)
	if c.New == nil {
		if err := os.Remove(c.target); err != nil {
			return err
		}
		return syncFolder(folder)
	}
	if c.Old == nil {
		if err := os.Mkdir(folder, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	temp, err := c.writeTemp(folder)
	if err != nil {
		return err
	}
	defer os.Remove(temp)
	if err := c.unchanged(); err != nil {
		return err
	}
	if err := c.put(temp); err != nil {
		return err
	}
	return syncFolder(folder)
}

// unchanged looks at the file again.
func (c *Change) unchanged() error {
	now, err := open(c.Path, c.owner)
	if err != nil {
		return err
	}
	if now.target != c.target || (now.Old == nil) != (c.Old == nil) || !bytes.Equal(now.Old, c.Old) {
		return fmt.Errorf("%s: %w", c.Path, ErrChanged)
	}
	return nil
}

// writeTemp writes the new bytes beside the file, durably.
func (c *Change) writeTemp(folder string) (name string, err error) {
	f, err := os.CreateTemp(folder, ".settings-*.tmp")
	if err != nil {
		return "", err
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(f.Name())
		}
	}()
	if _, err = f.Write(c.New); err != nil {
		return "", err
	}
	if err = f.Chmod(fs.FileMode(c.perm)); err != nil {
		return "", err
	}
	if err = f.Sync(); err != nil {
		return "", err
	}
	return f.Name(), f.Close()
}

// put gives the written file its name. A file that was absent is linked into place, so that one made meanwhile survives.
func (c *Change) put(temp string) error {
	if c.Old != nil {
		return os.Rename(temp, c.target)
	}
	err := os.Link(temp, c.target)
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s: %w", c.Path, ErrChanged)
	case err != nil: // a file system without hard links
		return os.Rename(temp, c.target)
	}
	return nil
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
