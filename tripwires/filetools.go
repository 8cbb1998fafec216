// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
)

// toolPath reads the path of a file tool.
func (x *evaluation) toolPath(in inputObject, key string) (*located, bool) {
	p, ok := in.text(key)
	if !ok || p == "" || strings.IndexByte(p, 0) >= 0 || len(p) > 4096 {
		x.undecodable("the path is missing or is no path")
		return nil, false
	}
	return x.toolTarget(p)
}

func (x *evaluation) toolTarget(p string) (*located, bool) {
	if rest, ok := strings.CutPrefix(p, "~/"); ok && len(x.homes) > 0 {
		p = x.homes[0] + "/" + rest
	}
	abs := x.paths.Abs(x.call.Cwd, p)
	if abs == "" {
		x.undecodable("the path is relative to a directory that is not known")
		return nil, false
	}
	l := x.at(p, abs, true)
	return &l, true
}

// toolChange adds a file tool's write. change computes the new content, for settings files only.
func (x *evaluation) toolChange(l *located, change func(old []byte) ([]byte, bool)) {
	f := l.finding(Write)
	f.Program = x.call.Tool
	if l.res.Sink {
		return
	}
	if l.res.Settings {
		x.settingsContent(f, l, change)
		return
	}
	x.addWrite(f, l)
}

func toolWrite(x *evaluation, in inputObject) {
	l, ok := x.toolPath(in, "file_path")
	if !ok {
		return
	}
	content, ok := in.text("content")
	if !ok {
		x.undecodable("the content is missing or is not text")
		return
	}
	x.toolChange(l, func([]byte) ([]byte, bool) { return []byte(content), true })
}

// edit is one replacement of Edit or MultiEdit.
type edit struct {
	old, new string
	all      bool
}

func toolEdit(x *evaluation, in inputObject) {
	l, ok := x.toolPath(in, "file_path")
	if !ok {
		return
	}
	var edits []edit
	if raw, multi := in["edits"]; multi {
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil || len(list) == 0 || len(list) > 1000 {
			x.undecodable("the edits are not a list")
			return
		}
		for _, e := range list {
			obj, good := decodeInput(e)
			one, fine := oneEdit(obj)
			if !good || !fine {
				x.undecodable("an edit is not what the tool takes")
				return
			}
			edits = append(edits, one)
		}
	} else {
		one, fine := oneEdit(in)
		if !fine {
			x.undecodable("the replacement is missing or is not text")
			return
		}
		edits = append(edits, one)
	}
	x.toolChange(l, func(old []byte) ([]byte, bool) { return applyEdits(old, edits) })
}

func oneEdit(in inputObject) (e edit, ok bool) {
	if e.old, ok = in.text("old_string"); !ok {
		return e, false
	}
	if e.new, ok = in.text("new_string"); !ok {
		return e, false
	}
	if raw, there := in["replace_all"]; there && json.Unmarshal(raw, &e.all) != nil {
		return e, false
	}
	return e, true
}

// applyEdits computes what the tool would write. An old text that is not there, or is there more than once without
// replace_all, makes the result unknown.
func applyEdits(b []byte, edits []edit) ([]byte, bool) {
	if b == nil {
		return nil, false
	}
	for _, e := range edits {
		n := bytes.Count(b, []byte(e.old))
		if e.old == "" || n == 0 || n > 1 && !e.all {
			return nil, false
		}
		b = bytes.ReplaceAll(b, []byte(e.old), []byte(e.new))
		if len(b) > maxSettings {
			return nil, false
		}
	}
	return b, true
}

func toolNotebook(x *evaluation, in inputObject) {
	l, ok := x.toolPath(in, "notebook_path")
	if !ok {
		return
	}
	x.toolChange(l, func([]byte) ([]byte, bool) { return nil, false })
}

func toolRead(x *evaluation, in inputObject)         { x.toolReads(in, "file_path") }
func toolNotebookRead(x *evaluation, in inputObject) { x.toolReads(in, "notebook_path") }

func (x *evaluation) toolReads(in inputObject, key string) {
	if l, ok := x.toolPath(in, key); ok {
		x.toolReadOf(l)
	}
}

func (x *evaluation) toolReadOf(l *located) {
	f := l.finding(Read)
	f.Program = x.call.Tool
	if form := secretForm(l); form != "" {
		f.Kind, f.form = SecretRead, form
	}
	x.add(f)
}

// toolSearch covers Glob, Grep and LS: where they look. Grep shows content.
func toolSearch(x *evaluation, in inputObject) {
	p, ok := in.optional("path")
	if !ok {
		x.undecodable("the path is not text")
		return
	}
	pattern, good := in.optional("pattern")
	glob, fine := in.optional("glob")
	if !good || !fine || x.call.Tool != "LS" && pattern == "" {
		x.undecodable("the pattern is missing or is not text")
		return
	}
	if p == "" {
		p = x.call.Cwd
	}
	if p == "" {
		return
	}
	l, ok := x.toolTarget(p)
	if !ok {
		return
	}
	f := l.finding(Read)
	f.Program = x.call.Tool
	if x.call.Tool == "Grep" {
		if form := secretForm(l); form != "" {
			f.Kind, f.form = SecretRead, form
		}
		if base := baseName(glob); f.form == "" && strings.HasPrefix(base, ".env") && (l.place == string(paths.Project) || l.place == string(paths.ProjectRoot)) {
			f.Kind, f.form = SecretRead, "env-file"
		}
	}
	x.add(f)
}
