// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/tripline-sh/tripline/daemon/disk"
)

// gatherFiles looks at modes and owners of our own files.
func (f *Facts) gatherFiles() {
	p := f.Places
	add := func(path, kind string) {
		link, err := os.Lstat(path)
		if err != nil {
			return
		}
		fi, err := os.Stat(path)
		if err != nil { // a link to nowhere
			fi = link
		}
		file := File{Path: path, Kind: kind, Perm: fi.Mode().Perm(), UID: -1, Linked: link.Mode()&fs.ModeSymlink != 0}
		if st, ok := fi.Sys().(*syscall.Stat_t); ok {
			file.UID = int(st.Uid)
		}
		f.Files = append(f.Files, file)
	}
	for _, dir := range []string{p.ConfigDir, p.RulesDir, p.StateDir, p.LogDir, p.KeysDir, p.SpoolDir, p.RunDir} {
		add(dir, "directory")
	}
	for _, name := range names(p.KeysDir) {
		add(filepath.Join(p.KeysDir, name), "key")
	}
	add(p.ConfigFile, "config")
	for _, name := range names(p.RulesDir) {
		add(filepath.Join(p.RulesDir, name), "config")
	}
	add(p.HookSocket, "socket")
	add(p.ControlSocket, "socket")
}

// gatherClosed looks for directories of ours that cannot be made, or not be written to. It makes nothing.
func (f *Facts) gatherClosed() {
	p := f.Places
	for _, d := range []struct{ what, dir string }{
		{forConfig, p.ConfigDir}, {forState, p.StateDir}, {forState, p.LogDir}, {forState, p.KeysDir}, {forState, p.SpoolDir}, {forSockets, p.RunDir},
	} {
		dir, err := writable(d.dir)
		if err == nil {
			continue
		}
		i := slices.IndexFunc(f.Closed, func(c Closed) bool { return c.Dir == dir })
		if i < 0 {
			c := Closed{Dir: dir, Err: err, UID: -1, Ours: dir == d.dir}
			if fi, err := os.Stat(dir); err == nil {
				if st, ok := fi.Sys().(*syscall.Stat_t); ok {
					c.UID = int(st.Uid)
				}
			}
			i = len(f.Closed)
			f.Closed = append(f.Closed, c)
		}
		if c := &f.Closed[i]; !slices.Contains(c.For, d.what) {
			c.For = append(c.For, d.what)
		}
	}
}

// writable says whether this user can make files in dir; where there is none, in the nearest directory above, which it returns.
func writable(dir string) (string, error) {
	for {
		err := unix.Access(dir, unix.W_OK|unix.X_OK)
		switch {
		case (errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR)) && dir != filepath.Dir(dir):
			dir = filepath.Dir(dir)
			continue
		case (err == nil || errors.Is(err, fs.ErrPermission)) && isFile(dir):
			err = unix.ENOTDIR
		}
		return dir, err
	}
}

func isFile(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && !fi.IsDir()
}

// gatherLog looks at the log from outside: a daemon may hold it.
func (f *Facts) gatherLog() {
	for _, name := range names(f.Places.LogDir) {
		fi, err := os.Lstat(filepath.Join(f.Places.LogDir, name))
		if err != nil || !fi.Mode().IsRegular() || !strings.HasSuffix(name, ".db") || len(name) < len("2006-01-02") {
			continue
		}
		f.Log.Segments++
		f.Log.Bytes += fi.Size()
		if fi.ModTime().After(f.Log.Last) {
			f.Log.Last = fi.ModTime()
		}
		f.Log.Day = max(f.Log.Day, name[:len("2006-01-02")])
	}
	f.Spooled = len(names(f.Places.SpoolDir))
	f.Disk.Path = f.Places.LogDir
	for !isDir(f.Disk.Path) && f.Disk.Path != filepath.Dir(f.Disk.Path) {
		f.Disk.Path = filepath.Dir(f.Disk.Path)
	}
	if u, err := disk.Of(f.Disk.Path); err == nil {
		f.Disk.Kind, f.Disk.Free, f.Disk.Total = u.Name, u.Free, u.Total
	}
}

// names lists a directory, bounded and in no order; nil if it cannot be read.
func names(dir string) []string {
	file, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer file.Close()
	list, _ := file.Readdirnames(maxEntries) // what was read before an error counts
	return list
}
