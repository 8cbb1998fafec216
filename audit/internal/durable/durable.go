// SPDX-License-Identifier: Apache-2.0

// Package durable changes directories so that the change survives a power cut: contents are synced before they get their
// name, and the directory is synced after.
package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// tempPrefix begins the names of files that have not got their name yet. RemoveTemps takes away what a crash left of them.
const tempPrefix = ".new-"

// MkdirAll creates dir and its missing parents with mode 0700 and syncs each parent that got a new entry. An existing last
// element must be a directory and not a symbolic link.
func MkdirAll(dir string) error {
	fi, err := os.Lstat(dir)
	switch {
	case err == nil && fi.IsDir():
		return nil
	case err == nil:
		return fmt.Errorf("%q is not a directory", dir)
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	parent := filepath.Dir(dir)
	if _, err := os.Stat(parent); errors.Is(err, fs.ErrNotExist) && parent != dir {
		if err := MkdirAll(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return SyncDir(parent)
}

// SyncDir makes the entries of dir durable.
func SyncDir(dir string) error {
	d, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	err = d.Sync()
	// Some file systems know no fsync of a directory; their renames are as durable as they can be.
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// TempName returns the name, in the same directory, under which the file for path is prepared.
func TempName(path string) string {
	return filepath.Join(filepath.Dir(path), tempPrefix+filepath.Base(path))
}

// WriteFile writes data to path with mode 0600: to a new file first, synced, renamed over path, the directory synced.
func WriteFile(path string, data []byte) error {
	tmp := TempName(path)
	if err := writeNew(tmp, data); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return errors.Join(err, os.Remove(tmp))
	}
	return SyncDir(filepath.Dir(path))
}

// Create is WriteFile for a path that must not exist yet (fs.ErrExist).
func Create(path string, data []byte) error {
	tmp := TempName(path)
	if err := writeNew(tmp, data); err != nil {
		return err
	}
	return Publish(tmp, path)
}

// Publish gives the synced file tmp its name path, which must be free (fs.ErrExist), and syncs the directory. On an error
// tmp is removed.
func Publish(tmp, path string) error {
	// A hard link is the portable way to create a name only if it is free.
	err := os.Link(tmp, path)
	if linkless(err) {
		if _, serr := os.Lstat(path); serr == nil {
			err = fs.ErrExist
		} else {
			err = os.Rename(tmp, path)
		}
		if err == nil {
			return SyncDir(filepath.Dir(path))
		}
	}
	if rerr := os.Remove(tmp); err != nil || rerr != nil {
		return errors.Join(err, rerr)
	}
	return SyncDir(filepath.Dir(path))
}

// linkless says that err means a file system without hard links.
func linkless(err error) bool {
	return errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOTSUP) || errors.Is(err, syscall.ENOSYS)
}

// Rename renames a file within its directory to a free name and syncs the directory.
func Rename(from, to string) error {
	if _, err := os.Lstat(to); err == nil {
		return fmt.Errorf("rename to %q: %w", to, fs.ErrExist)
	}
	if err := os.Rename(from, to); err != nil {
		return err
	}
	return SyncDir(filepath.Dir(to))
}

// RemoveTemps removes the regular files in dir that were being prepared when the process ended. Only the owner of dir may
// call it.
func RemoveTemps(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasPrefix(e.Name(), tempPrefix) {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeNew writes a new file and syncs it. What a crash left under that name is replaced.
func writeNew(path string, data []byte) (err error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(path))
		}
	}()
	if _, err := f.Write(data); err != nil {
		return errors.Join(err, f.Close())
	}
	if err := f.Sync(); err != nil {
		return errors.Join(err, f.Close())
	}
	return f.Close()
}
