// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Version is a release of the client. The zero value is no release.
type Version struct{ Major, Minor, Patch int }

// What a release must be for the hooks to hold.
var (
	// FirstSupported is the first release on which an install is of use.
	FirstSupported = Version{2, 1, 90}
	// FirstOnFailure is the first release that knows onFailure: before it, a hook that cannot run lets the call run.
	FirstOnFailure = Version{2, 1, 295}
)

// ParseVersion reads a release number such as 2.1.332; what a pre-release adds behind - is not looked at.
func ParseVersion(s string) (Version, bool) {
	s, _, _ = strings.Cut(s, "-")
	parts := strings.Split(s, ".")
	if len(parts) != 3 {
		return Version{}, false
	}
	var n [3]int
	for i, p := range parts {
		v, err := strconv.ParseUint(p, 10, 31)
		if err != nil || strconv.FormatUint(v, 10) != p {
			return Version{}, false
		}
		n[i] = int(v)
	}
	return Version{n[0], n[1], n[2]}, n != [3]int{}
}

// Compare returns -1, 0 or 1 as v is older than, the same as, or newer than w.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}

func (v Version) String() string { return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch) }

// Bounds of what is looked at for a version. All of it belongs to other programs.
const (
	maxPackageFile    = 64 << 10
	maxTranscriptTail = 256 << 10
	maxTranscripts    = 20_000 // names that are looked at for the newest one
)

// InstalledVersion tells which release a program called claude is, without running it: from the names that its links lead
// through (.../versions/2.1.332), else from the package description beside it or above it. ok is false if nothing tells.
func InstalledVersion(program string) (v Version, ok bool) {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return Version{}, false
	}
	parts := strings.Split(real, string(filepath.Separator))
	for i := len(parts) - 1; i > 0; i-- {
		if parts[i-1] != "versions" {
			continue
		}
		if v, ok := ParseVersion(parts[i]); ok {
			return v, true
		}
	}
	dir := filepath.Dir(real)
	for range 3 { // cli.js lies beside it, a native program one or two levels below
		var p struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		}
		b, err := readRegular(filepath.Join(dir, "package.json"), maxPackageFile)
		if err == nil && json.Unmarshal(b, &p) == nil && strings.HasPrefix(p.Name, "@anthropic-ai/claude-code") {
			return ParseVersion(p.Version)
		}
		dir = filepath.Dir(dir)
	}
	return Version{}, false
}

// TranscriptVersion tells which release wrote the newest transcript below configDir, and when. It reads the end of that one
// file only. The text is the client's claim.
func TranscriptVersion(configDir string) (v Version, at time.Time, ok bool) {
	path, at := newestTranscript(filepath.Join(configDir, "projects"))
	if path == "" {
		return Version{}, time.Time{}, false
	}
	tail, err := readTail(path, maxTranscriptTail)
	if err != nil {
		return Version{}, time.Time{}, false
	}
	lines := bytes.Split(tail, []byte("\n"))
	for _, line := range slices.Backward(lines) {
		var entry struct {
			Version string `json:"version"`
		}
		if json.Unmarshal(line, &entry) != nil {
			continue // a line that is being written, or the cut one at the start
		}
		if v, ok := ParseVersion(entry.Version); ok {
			return v, at, true
		}
	}
	return Version{}, time.Time{}, false
}

// newestTranscript returns the transcript that was written last, "" if there is none.
func newestTranscript(dir string) (newest string, at time.Time) {
	left := maxTranscripts
	for _, project := range readNames(dir, &left) {
		sub := filepath.Join(dir, project)
		for _, name := range readNames(sub, &left) {
			if !strings.HasSuffix(name, ".jsonl") {
				continue
			}
			path := filepath.Join(sub, name)
			if fi, err := os.Lstat(path); err == nil && fi.Mode().IsRegular() && fi.ModTime().After(at) {
				newest, at = path, fi.ModTime()
			}
		}
	}
	return newest, at
}

// readNames lists a directory as far as left allows.
func readNames(dir string, left *int) []string {
	if *left <= 0 {
		return nil
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, _ := f.Readdirnames(*left) // what was read before an error counts
	*left -= len(names)
	return names
}

// openRegular opens a regular file and never waits for what else could stand at its path.
func openRegular(path string) (*os.File, fs.FileInfo, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	fi, err := f.Stat()
	if err == nil && !fi.Mode().IsRegular() {
		err = fmt.Errorf("%q is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, fi, nil
}

func readRegular(path string, limit int64) ([]byte, error) {
	f, _, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit))
}

func readTail(path string, limit int64) ([]byte, error) {
	f, fi, err := openRegular(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	from := max(fi.Size()-limit, 0)
	return io.ReadAll(io.NewSectionReader(f, from, limit))
}
