// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
)

// maxPatchFiles bounds the files of one patch.
const maxPatchFiles = 500

// patchOp is what a patch does to one file.
type patchOp struct {
	kind    string // "add", "update", "delete"
	path    string
	moveTo  string
	content string // add: the whole file
}

// parsePatch reads the envelope format of apply_patch: file headers between Begin Patch and End Patch.
func parsePatch(src string) ([]patchOp, bool) {
	var ops []patchOp
	begun := false
	for line := range strings.SplitSeq(src, "\n") {
		line = strings.TrimSuffix(line, "\r")
		if !begun {
			begun = strings.TrimSpace(line) == "*** Begin Patch"
			continue
		}
		head := strings.TrimSpace(line)
		for prefix, kind := range map[string]string{"*** Add File: ": "add", "*** Update File: ": "update", "*** Delete File: ": "delete"} {
			if p, ok := strings.CutPrefix(head, prefix); ok {
				ops = append(ops, patchOp{kind: kind, path: strings.TrimSpace(p)})
			}
		}
		if len(ops) > maxPatchFiles {
			return nil, false
		}
		if len(ops) == 0 {
			continue
		}
		last := &ops[len(ops)-1]
		if p, ok := strings.CutPrefix(head, "*** Move to: "); ok {
			last.moveTo = strings.TrimSpace(p)
		} else if text, ok := strings.CutPrefix(line, "+"); ok && last.kind == "add" {
			last.content += text + "\n"
		}
	}
	for _, op := range ops {
		if op.path == "" || strings.IndexByte(op.path, 0) >= 0 {
			return nil, false
		}
	}
	return ops, begun && len(ops) > 0
}

func toolPatch(x *evaluation, in inputObject) {
	src, ok := in.text("command")
	if !ok {
		if src, ok = in.text("input"); !ok {
			src, ok = in.text("patch")
		}
	}
	if !ok {
		x.undecodable("the patch is missing or is not text")
		return
	}
	x.judgePatch(src)
}

func (x *evaluation) judgePatch(src string) {
	ops, ok := parsePatch(src)
	if !ok {
		x.undecodable("the patch cannot be read")
		return
	}
	for _, op := range ops {
		l, ok := x.toolTarget(op.path)
		if !ok {
			return
		}
		switch op.kind {
		case "add":
			x.toolChange(l, func([]byte) ([]byte, bool) { return []byte(op.content), true })
		case "update":
			x.toolChange(l, func([]byte) ([]byte, bool) { return nil, false })
		}
		if op.kind == "delete" || op.moveTo != "" {
			f := l.finding(Delete)
			f.Program = x.call.Tool
			if op.moveTo != "" {
				f.form = "move"
			}
			if op.moveTo == "" || l.place != string(paths.Project) && l.place != string(paths.Temp) {
				x.addDelete(f, l)
			}
		}
		if op.moveTo != "" {
			to, ok := x.toolTarget(op.moveTo)
			if !ok {
				return
			}
			f := to.finding(Overwrite)
			f.Program = x.call.Tool
			x.addWrite(f, to)
		}
	}
}

// progApplyPatch covers apply_patch as a command of the shell: its patch is an argument or its standard input.
func progApplyPatch(x *evaluation, c *command) {
	switch {
	case len(c.args) > 0 && c.args[0].Known:
		x.judgePatch(c.args[0].Text)
	case len(c.args) == 0 && c.Stdin.Known:
		x.judgePatch(c.Stdin.Text)
	default:
		x.opaqueCode(c, "the patch is not known")
	}
}
