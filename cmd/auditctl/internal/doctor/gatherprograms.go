// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"crypto/sha256"
	"debug/buildinfo"
	"debug/elf"
	"debug/gosym"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// ownPackage is what the programs are built from; the name of the program follows.
const ownPackage = "github.com/tripline-sh/tripline/cmd/"

// ownEntry is the function at which a hook starts that clears the environment first.
const ownEntry = "tripline_entry"

func (f *Facts) gatherPrograms() {
	dir := filepath.Dir(f.Exe)
	for _, name := range []string{"tripline-hook", "triplined", "auditctl"} {
		f.Programs = append(f.Programs, readProgram(name, filepath.Join(dir, name), f.UID))
	}
	f.Entry = EntryUnknown
	if hook := f.Programs[0]; hook.Err == nil && hook.Ours {
		f.Entry = entryOf(hook.Path)
	}
	dirs := filepath.SplitList(f.Getenv("PATH"))
	for _, d := range dirs {
		f.OnPath = f.OnPath || filepath.IsAbs(d) && sameDir(d, dir)
	}
	for _, name := range []string{"auditctl", "tripline"} {
		hit := Hit{Name: name, Path: lookPath(name, dirs)}
		if hit.Path != "" {
			hit.Ours = sameDir(filepath.Dir(hit.Path), dir) || sameFile(hit.Path, f.Exe)
			hit.Copy = !hit.Ours && builtFrom(hit.Path) == ownPackage+"auditctl"
		}
		f.Hits = append(f.Hits, hit)
	}
}

func sameDir(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) || sameFile(a, b) }

func sameFile(a, b string) bool {
	fa, err1 := os.Stat(a)
	fb, err2 := os.Stat(b)
	return err1 == nil && err2 == nil && os.SameFile(fa, fb)
}

// builtFrom is the package that a Go program was built from, "" for any other.
func builtFrom(path string) string {
	file, _, err := openProgram(path)
	if err != nil {
		return ""
	}
	defer file.Close()
	info, err := buildinfo.Read(file)
	if err != nil {
		return ""
	}
	return info.Path
}

func openProgram(path string) (*os.File, fs.FileInfo, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := file.Stat()
	if err == nil && (!fi.Mode().IsRegular() || fi.Size() > maxProgram) {
		err = errors.New("not a program")
	}
	if err != nil {
		file.Close()
		return nil, nil, err
	}
	return file, fi, nil
}

// maxProgram is far above the size of any program of ours.
const maxProgram = 512 << 20

// readProgram looks at a file without running it.
func readProgram(name, path string, uid int) Program {
	p := Program{Name: name, Path: path}
	file, fi, err := openProgram(path)
	if err != nil {
		p.Err = err
		return p
	}
	defer file.Close()
	p.Perm = fi.Mode().Perm()
	p.Loose = loose(path, uid)
	if name == "tripline-hook" { // the only one that is ever run, and a small one
		sum := sha256.New()
		if _, err := io.Copy(sum, file); err != nil {
			p.Err = err
			return p
		}
		p.SHA256 = hex.EncodeToString(sum.Sum(nil))
	}
	info, err := buildinfo.Read(file)
	if err != nil {
		return p // of another language
	}
	p.Ours = info.Path == ownPackage+name
	p.Go = info.GoVersion
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			p.Revision = s.Value + p.Revision
		case "vcs.modified":
			if s.Value == "true" {
				p.Revision += "+"
			}
		}
	}
	return p
}

// loose returns the first of a file and the directories above it that another user than uid and root could change, or put
// another in the place of. Links count as they are named, since that is how a program is run, and with what they lead to.
func loose(path string, uid int) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return path
	}
	for _, start := range []string{filepath.Clean(path), real} {
		for p := start; ; p = filepath.Dir(p) {
			if !tight(p, uid) {
				return p
			}
			if p == filepath.Dir(p) {
				break
			}
		}
	}
	return ""
}

// tight reports whether only uid and root can change what stands at p.
func tight(p string, uid int) bool {
	fi, err := os.Lstat(p)
	if err != nil {
		return false
	}
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != uid && st.Uid != 0 {
		return false
	}
	writable := fi.Mode().Perm() & 0o022
	if writable == 0 || fi.Mode()&(fs.ModeSticky|fs.ModeSymlink) != 0 {
		return true
	}
	// the group of one user that many systems give everybody is that user
	return writable&0o002 == 0 && (int(st.Gid) == uid || st.Gid == 0)
}

// entryOf says where a program starts, from the runtime's own table, which stripping leaves.
func entryOf(path string) Entry {
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return EntryNone
	}
	file, _, err := openProgram(path)
	if err != nil {
		return EntryUnknown
	}
	defer file.Close()
	return entryIn(file)
}

func entryIn(r io.ReaderAt) (entry Entry) {
	defer func() {
		if recover() != nil { // the readers of broken tables may panic
			entry = EntryUnknown
		}
	}()
	prog, err := elf.NewFile(r)
	if err != nil {
		return EntryUnknown
	}
	table, text := prog.Section(".gopclntab"), prog.Section(".text")
	if table == nil || text == nil {
		return EntryUnknown
	}
	data, err := table.Data()
	if err != nil {
		return EntryUnknown
	}
	funcs, err := gosym.NewTable(nil, gosym.NewLineTable(data, text.Addr))
	if err != nil {
		return EntryUnknown
	}
	fn := funcs.PCToFunc(prog.Entry)
	switch {
	case fn == nil:
		return EntryUnknown
	case fn.Entry == prog.Entry && fn.Name == ownEntry:
		return EntryOwn
	case strings.HasPrefix(fn.Name, "_rt0_"):
		return EntryPlain
	}
	return EntryUnknown
}
