// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tripline-sh/tripline/tripwires/builtin"
)

// File is one rules file. Generation is 0 for files as they stand on disk; Tighten counts it up, so that a merged set can be
// stored as files and loaded again.
type File struct {
	Path       string      `json:"path"`
	Layer      Layer       `json:"layer"`
	Data       []byte      `json:"data"`
	Generation int         `json:"generation,omitempty"`
	Mode       fs.FileMode `json:"-"` // as ReadRulesDir found it; only Lint looks at it
}

// RuleError says where a rules file is wrong. It prints as file:line:col: text.
type RuleError struct {
	File      string
	Line, Col int
	Msg       string
}

func (e *RuleError) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg) }

// Set is a compiled set of rules: the built-in packs and the files it was loaded from. It is immutable and safe for
// concurrent use.
type Set struct {
	files []File
	rules []*rule
	tunes []*tune
	hash  string
}

// Load compiles files on top of the built-in packs, which are always part of a set, and runs the files' own cases: a rule that does
// not match what its author says it matches is not put in force. Every error is a *RuleError.
func Load(files []File) (*Set, error) {
	if len(files) > maxRulesFiles*(maxGenerations+1) {
		return nil, &RuleError{File: files[0].Path, Line: 1, Col: 1, Msg: fmt.Sprintf("more than %d rules files", maxRulesFiles)}
	}
	base, err := loadBuiltin()
	if err != nil {
		return nil, err
	}
	generations := slices.Clone(files)
	slices.SortStableFunc(generations, func(a, b File) int { return cmp.Compare(a.Generation, b.Generation) })
	set, err := loadGeneration(base, nil)
	if err != nil {
		return nil, err
	}
	for start := 0; start < len(generations); {
		end := start
		for end < len(generations) && generations[end].Generation == generations[start].Generation {
			end++
		}
		next, err := loadGeneration(base, generations[start:end])
		if err != nil {
			return nil, err
		}
		if generations[start].Generation == 0 {
			set = next
		} else {
			set, _, _ = Tighten(set, next)
		}
		start = end
	}
	return set, nil
}

// loadBuiltin parses the embedded packs. They are parsed at each load: a set shares nothing mutable with another one.
func loadBuiltin() (*Set, error) {
	entries, err := builtin.Packs.ReadDir(".")
	if err != nil {
		return nil, &RuleError{File: "builtin", Line: 1, Col: 1, Msg: "packs cannot be read"}
	}
	s := &Set{}
	for _, e := range entries {
		data, err := builtin.Packs.ReadFile(e.Name())
		if err != nil {
			return nil, &RuleError{File: e.Name(), Line: 1, Col: 1, Msg: "pack cannot be read"}
		}
		if err := s.add(File{Path: "builtin/" + e.Name(), Layer: LayerBuiltin, Data: data}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func loadGeneration(base *Set, files []File) (*Set, error) {
	s := &Set{rules: slices.Clone(base.rules)}
	if len(files) > maxRulesFiles {
		return nil, &RuleError{File: files[0].Path, Line: 1, Col: 1, Msg: fmt.Sprintf("more than %d rules files", maxRulesFiles)}
	}
	for _, f := range files {
		if f.Path == emptyGeneration && f.Layer == "" && len(f.Data) == 0 {
			continue
		}
		if f.Layer != LayerSystem && f.Layer != LayerUser && f.Layer != LayerProject {
			return nil, &RuleError{File: f.Path, Line: 1, Col: 1, Msg: fmt.Sprintf("unknown layer %q", f.Layer)}
		}
		if err := s.add(f); err != nil {
			return nil, err
		}
		f.Data, f.Generation = slices.Clone(f.Data), 0
		s.files = append(s.files, f)
	}
	for _, t := range s.tunes {
		r := s.find(t.rule)
		switch {
		case r == nil || r.layer != LayerBuiltin:
			return nil, &RuleError{File: t.file, Line: t.line, Col: t.col, Msg: fmt.Sprintf("tune: there is no built-in rule %q%s", t.rule, didYouMean(t.rule, base.RuleIDs()))}
		case r.floor:
			return nil, &RuleError{File: t.file, Line: t.line, Col: t.col, Msg: fmt.Sprintf("tune: rule %q is on the floor and cannot be tuned", t.rule)}
		}
	}
	s.seal()
	return s, nil
}

// add parses a file into the set and checks ids against what is there.
func (s *Set) add(f File) error {
	rules, tunes, err := parseRules(f.Layer, f.Path, f.Data)
	if err != nil {
		return ruleError(f.Path, err)
	}
	for _, r := range rules {
		if old := s.find(r.id); old != nil {
			msg := fmt.Sprintf("rule id %q is already used in %s:%d", r.id, old.file, old.line)
			if old.layer == LayerBuiltin && f.Layer != LayerBuiltin {
				msg = fmt.Sprintf("%q is a built-in rule and cannot be redefined; use tune", r.id)
			}
			return &RuleError{File: f.Path, Line: r.line, Col: r.col, Msg: msg}
		}
		if f.Layer == LayerProject {
			r.scope.projects = []string{filepath.Dir(filepath.Dir(f.Path))}
			r.seal()
		}
		s.rules = append(s.rules, r)
	}
	if f.Layer != LayerBuiltin { // the packs are tested once, not at each load
		if bad := testCases(rules); len(bad) > 0 {
			return &RuleError{File: f.Path, Line: bad[0].Line, Col: bad[0].Col, Msg: bad[0].String()}
		}
	}
	s.tunes = append(s.tunes, tunes...)
	return nil
}

func (s *Set) find(id string) *rule {
	for _, r := range s.rules {
		if r.id == id {
			return r
		}
	}
	return nil
}

// seal computes the set's hash from what its rules say.
func (s *Set) seal() {
	h := sha256.New()
	for _, r := range s.rules {
		_, _ = io.WriteString(h, r.hash+"\n") // a hash never fails
	}
	for _, t := range s.tunes {
		_, _ = io.WriteString(h, "tune "+t.hash+"\n")
	}
	s.hash = hex.EncodeToString(h.Sum(nil))
}

// Hash identifies the set by what its rules and tune entries say, in hex.
func (s *Set) Hash() string { return s.hash }

// Len is the number of rules, built-in ones included.
func (s *Set) Len() int { return len(s.rules) }

// Files returns the files that Load needs to make this set again. The built-in packs are not among them.
func (s *Set) Files() []File {
	out := slices.Clone(s.files)
	for i := range out {
		out[i].Data = slices.Clone(out[i].Data)
	}
	return out
}

// RuleIDs returns the ids of all rules, sorted, each once.
func (s *Set) RuleIDs() []string {
	var ids []string
	for _, r := range s.rules {
		ids = append(ids, r.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// ReadRulesDir reads the *.yaml files of a directory in the order of their names. A directory that does not exist holds no
// rules. Only regular files count (links are followed); a file that is not one, is too large or cannot be read is an error,
// since leaving rules out silently would loosen. Errors carry the path and no content.
func ReadRulesDir(dir string, layer Layer) ([]File, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rules directory: %w", err)
	}
	var out []File
	for _, e := range entries { // sorted by name
		if name := e.Name(); !strings.HasSuffix(name, ".yaml") || strings.HasPrefix(name, ".") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if len(out) == maxRulesFiles {
			return nil, &RuleError{File: path, Line: 1, Col: 1, Msg: fmt.Sprintf("more than %d rules files", maxRulesFiles)}
		}
		f, err := ReadRulesFile(path, layer)
		if err != nil {
			return nil, err
		}
		out = append(out, f)
	}
	return out, nil
}

// ReadRulesFile reads one rules file. It never waits: a FIFO put in the place of a file is refused, not read. Errors carry the
// path and no content.
func ReadRulesFile(path string, layer Layer) (File, error) {
	out := File{Path: path, Layer: layer}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return out, fmt.Errorf("rules file: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return out, fmt.Errorf("rules file: %w", err)
	}
	if !info.Mode().IsRegular() {
		return out, &RuleError{File: path, Line: 1, Col: 1, Msg: "not a regular file"}
	}
	out.Mode = info.Mode()
	if out.Data, err = io.ReadAll(io.LimitReader(f, maxRulesFile+1)); err != nil {
		return out, fmt.Errorf("rules file: %w", err)
	}
	if len(out.Data) > maxRulesFile {
		return out, &RuleError{File: path, Line: 1, Col: 1, Msg: fmt.Sprintf("file is larger than %d bytes", maxRulesFile)}
	}
	return out, nil
}
