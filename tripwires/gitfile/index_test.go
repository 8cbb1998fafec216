// SPDX-License-Identifier: Apache-2.0

package gitfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// build makes an index by hand: version 2 or 3 paths, or version 4 with every path told in full.
func build(version uint32, names []string, tail string) []byte {
	var b bytes.Buffer
	b.WriteString("DIRC")
	_ = binary.Write(&b, binary.BigEndian, [2]uint32{version, uint32(len(names))})
	last := 0
	for _, n := range names {
		start := b.Len()
		stat := [10]uint32{6: 0o100644}
		_ = binary.Write(&b, binary.BigEndian, stat)
		b.Write(make([]byte, 20))
		_ = binary.Write(&b, binary.BigEndian, uint16(min(len(n), 0xfff)))
		if version == 4 {
			b.WriteByte(byte(last))
			b.WriteString(n + "\x00")
			last = len(n)
			continue
		}
		b.WriteString(n)
		b.Write(make([]byte, 8-(b.Len()-start)%8))
	}
	b.WriteString(tail)
	b.Write(make([]byte, 20))
	return b.Bytes()
}

func ext(name string, size uint32, data string) string {
	return name + string(binary.BigEndian.AppendUint32(nil, size)) + data
}

func TestHostileIndexesAreRefused(t *testing.T) {
	t.Parallel()
	good := build(2, []string{"a", "b/c"}, "")
	if _, err := parseIndex(good, 20, false); err != nil {
		t.Fatalf("a good index: %v", err)
	}
	huge := bytes.Clone(good)
	binary.BigEndian.PutUint32(huge[8:], 0xffffffff)
	more := bytes.Clone(good)
	binary.BigEndian.PutUint32(more[8:], 3)
	padding := bytes.Clone(good)
	padding[headerSize+64+minEntry+len("b/c")+2] = 'x'
	tests := map[string][]byte{
		"nothing":                             {},
		"a magic number alone":                []byte("DIRC"),
		"version 1":                           build(1, nil, ""),
		"version 5":                           build(5, nil, ""),
		"four billion entries":                huge,
		"one entry more than there is":        more,
		"padding that is not zero":            padding,
		"paths out of order":                  build(2, []string{"b", "a"}, ""),
		"the same path twice":                 build(2, []string{"a", "a"}, ""),
		"an absolute path":                    build(2, []string{"/etc/passwd"}, ""),
		"a path that climbs":                  build(2, []string{"a/../../b"}, ""),
		"an empty path":                       build(2, []string{""}, ""),
		"a split index":                       build(2, []string{"a"}, ext("link", 0, "")),
		"a sparse index":                      build(2, []string{"a"}, ext("sdir", 0, "")),
		"a required extension nobody knows":   build(2, []string{"a"}, ext("what", 0, "")),
		"an extension longer than the file":   build(2, []string{"a"}, ext("TREE", 1<<31, "x")),
		"bytes after the last extension":      build(2, []string{"a"}, "xyz"),
		"version 4 dropping more than it has": build(4, []string{"a"}, "")[:12],
		"a path without an end":               build(2, []string{strings.Repeat("a", maxName+1)}, ""),
	}
	for name, data := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := parseIndex(data, 20, false); !errors.Is(err, errIndex) {
				t.Errorf("error %v; want a refusal", err)
			}
		})
	}
	if _, err := parseIndex(build(2, []string{"a"}, ext("TREE", 3, "abc")+ext("UNTR", 0, "")), 20, false); err != nil {
		t.Errorf("optional extensions: %v", err)
	}
}

func TestAVersion4IndexCannotTellOfMoreBytesThanAllowed(t *testing.T) {
	t.Parallel()
	// Each entry keeps the 16 KiB of the one before it and adds one byte: a small file that tells of gigabytes.
	var b bytes.Buffer
	const n = 40_000
	b.WriteString("DIRC")
	_ = binary.Write(&b, binary.BigEndian, [2]uint32{4, n})
	long := strings.Repeat("d", maxName-8)
	for i := range n {
		_ = binary.Write(&b, binary.BigEndian, [10]uint32{6: 0o100644})
		b.Write(make([]byte, 22))
		if i == 0 {
			b.WriteString("\x00" + long + fmt.Sprintf("%08d", i) + "\x00")
			continue
		}
		b.WriteString("\x08" + fmt.Sprintf("%08d", i) + "\x00")
	}
	b.Write(make([]byte, 20))
	if _, err := parseIndex(b.Bytes(), 20, false); !errors.Is(err, errIndex) {
		t.Errorf("error %v; want a refusal", err)
	}
}

func TestACaseFoldingRepositoryTracksUnderEitherSpelling(t *testing.T) {
	t.Parallel()
	x, err := parseIndex(build(2, []string{"Src/Build/a", "z"}, ""), 20, true)
	if err != nil {
		t.Fatal(err)
	}
	for rel, want := range map[string]bool{"src/build": true, "SRC": true, "src/bui": false, "Z": true, "y": false} {
		if got := x.under(rel); got != want {
			t.Errorf("under(%q) = %v; want %v", rel, got, want)
		}
	}
}

func TestConfigKeysAreReadAsGitReadsThem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		text string
		want config
		bad  bool
	}{
		{"", config{hashSize: 20}, false},
		{"[extensions]\n\tobjectFormat = sha256\n", config{hashSize: 32}, false},
		{"[Extensions] objectformat=\"sha256\" ; new\n", config{hashSize: 32}, false},
		{"[core]\n\tignorecase\n\tworktree = ../..\n", config{hashSize: 20, ignoreCase: true, worktree: "../.."}, false},
		{"[core \"x\"]\n\tignorecase = true\n", config{hashSize: 20}, false},
		{"# [extensions]\n#objectformat = sha256\n", config{hashSize: 20}, false},
		{"[extensions]\nobjectformat = md5\n", config{}, true},
		{"[core\n", config{}, true},
	}
	for _, tt := range tests {
		got, err := parseConfig(tt.text)
		if (err != nil) != tt.bad || !tt.bad && got != tt.want {
			t.Errorf("%q: %+v, %v; want %+v", tt.text, got, err, tt.want)
		}
	}
}

func FuzzParseIndex(f *testing.F) {
	names := []string{"a", "b/c", "b/cd", "x/y/z"}
	for v := uint32(2); v <= 4; v++ {
		f.Add(build(v, names, ""), false)
		f.Add(build(v, names, ext("TREE", 3, "abc")), true)
	}
	f.Add(build(2, []string{"a"}, ext("link", 0, "")), false)
	f.Fuzz(func(t *testing.T, data []byte, wide bool) {
		size := 20
		if wide {
			size = 32
		}
		x, err := parseIndex(data, size, wide)
		if err != nil {
			return
		}
		// What was parsed must be found again, and so must everything above it.
		for _, e := range x.entries {
			name := string(e.name)
			if _, ok := x.find(name); !ok {
				t.Fatalf("entry %q is not found", name)
			}
			for i, c := range name {
				if c == '/' && !x.under(name[:i]) {
					t.Fatalf("%q holds %q and is said to be empty", name[:i], name)
				}
			}
			x.inSubmodule(name)
		}
	})
}

func BenchmarkParseIndexOf50000Entries(b *testing.B) {
	for _, v := range []uint32{2, 4} {
		b.Run(fmt.Sprintf("version %d", v), func(b *testing.B) {
			var names []string
			for i := range 50_000 {
				names = append(names, fmt.Sprintf("packages/p%03d/src/module/file%05d.go", i/100, i))
			}
			data := build(v, names, "")
			b.ReportAllocs()
			for b.Loop() {
				if _, err := parseIndex(data, 20, false); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTracksUnderFromTheDisk(b *testing.B) {
	dir := b.TempDir()
	var names []string
	for i := range 50_000 {
		names = append(names, fmt.Sprintf("packages/p%03d/src/module/file%05d.go", i/100, i))
	}
	for name, data := range map[string][]byte{"HEAD": []byte("ref: x\n"), "index": build(2, names, "")} {
		if err := os.MkdirAll(filepath.Join(dir, ".git"), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, ".git", name), data, 0o600); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		r, err := Open(dir, benchReader(b))
		if err != nil {
			b.Fatal(err)
		}
		if ok, err := r.TracksUnder("packages/p001"); !ok || err != nil {
			b.Fatal(ok, err)
		}
	}
}

func benchReader(b *testing.B) view.Reader { return view.NewPool(4).Reader(b.Context()) }
