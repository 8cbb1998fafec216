// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

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
