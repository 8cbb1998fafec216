// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"bytes"
	"errors"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/agents/internal/rawjson"
)

// Permissions are the permission lists of a settings file, as it writes them.
type Permissions struct {
	Deny, Ask, Allow []string
}

// ErrPermissions says that a file's permissions are not lists of texts.
var ErrPermissions = errors.New("permissions is not an object with lists of texts")

// maxPermissions bounds the entries of one list.
const maxPermissions = 10_000

// ReadPermissions reads the permission lists of a settings file, comments and trailing commas tolerated. A file without
// permissions has none. Errors hold no content of the file.
func ReadPermissions(b []byte) (Permissions, error) {
	var p Permissions
	if len(bytes.TrimSpace(b)) == 0 {
		return p, nil
	}
	m, _, err := members(bytes.TrimPrefix(b, []byte("\ufeff")))
	if err != nil {
		return p, err
	}
	raw, ok := m["permissions"]
	if !ok {
		return p, nil
	}
	if len(raw) == 0 || raw[0] != '{' {
		return p, ErrPermissions
	}
	lists, err := objectMembers(raw)
	if err != nil {
		return p, ErrPermissions
	}
	for name, out := range map[string]*[]string{"deny": &p.Deny, "ask": &p.Ask, "allow": &p.Allow} {
		list, ok := lists[name]
		if !ok {
			continue
		}
		if len(list) == 0 || list[0] != '[' {
			return Permissions{}, ErrPermissions
		}
		err := rawjson.Array(list, func(v []byte) error {
			text, ok := rawjson.Text(v)
			if !ok || len(*out) >= maxPermissions {
				return ErrPermissions
			}
			*out = append(*out, text)
			return nil
		})
		if err != nil {
			return Permissions{}, ErrPermissions
		}
	}
	return p, nil
}

// Permission translates one entry of a permission list into patterns of rules: they match what the client matches, or more
// where the two differ in how they read a path. project says that the entry stands in a project's settings. why says what
// keeps an entry from being translated; then there are no patterns. A pattern still needs the judgement of the rules' own reader.
func Permission(entry string, project bool) (patterns []string, why string) {
	if entry != strings.TrimSpace(entry) || entry == "" || len(entry) > 4096 || !utf8.ValidString(entry) || strings.ContainsFunc(entry, unicode.IsControl) {
		return nil, "it is not plain text"
	}
	tool, arg, has := strings.Cut(entry, "(")
	if !has {
		return []string{entry}, ""
	}
	arg, closed := strings.CutSuffix(arg, ")")
	if !closed || strings.TrimSpace(arg) == "" {
		return nil, "it has no closing parenthesis, or nothing between them"
	}
	switch tool {
	case "Bash":
		return bashPermission(arg)
	case "Read", "Glob", "Grep", "LS", "NotebookRead":
		return pathPermission("Read", arg, project)
	case "Edit", "MultiEdit", "NotebookEdit":
		return pathPermission("Edit", arg, project)
	case "Write":
		return pathPermission("Write", arg, project)
	case "WebFetch":
		if arg == "*" || arg == "domain:*" {
			return []string{"WebFetch"}, ""
		}
		return []string{entry}, ""
	}
	if strings.HasPrefix(tool, "mcp__") && arg == "*" {
		return []string{tool}, ""
	}
	return nil, "rules match " + tool + " by its name only, not by what stands in the parentheses"
}

func bashPermission(arg string) ([]string, string) {
	if arg == "*" || arg == ":*" {
		return []string{"Bash"}, ""
	}
	words, prefix := strings.CutSuffix(arg, ":*")
	if !prefix {
		words, prefix = strings.CutSuffix(arg, " *")
	}
	if words = strings.TrimSpace(words); words == "" {
		return nil, "it names no command"
	}
	if strings.Contains(words, "*") {
		return nil, "a * in the middle of a command, or behind a part of a word, has no counterpart; use the command's first words"
	}
	if prefix {
		return []string{"Bash(" + words + ":*)"}, ""
	}
	return []string{"Bash(" + words + ")"}, ""
}

// pathPermission translates a path. The client reads it as a line of a .gitignore: it takes what lies below a directory, too.
func pathPermission(tool, arg string, project bool) ([]string, string) {
	p := arg
	switch {
	case strings.HasPrefix(p, "!"):
		return nil, "an exception (!) is written as except in a rule"
	case strings.HasPrefix(p, "//"):
		p = "/" + strings.TrimLeft(p, "/")
	case strings.HasPrefix(p, "/"): // counts from where the settings are
		if project {
			p = "." + p
		} else {
			p = "~/.claude" + p
		}
	case strings.HasPrefix(p, "../"):
		return nil, "a path above the current directory has no counterpart; write the absolute one"
	case strings.HasPrefix(p, "~") && p != "~" && !strings.HasPrefix(p, "~/"):
		return nil, "another user's home is to be written out"
	}
	if strings.Contains("/"+p+"/", "/../") {
		return nil, "a path with .. in it is to be written out"
	}
	if strings.ContainsAny(p, "()") {
		return nil, "parentheses in a path are not understood"
	}
	if p = strings.TrimSuffix(p, "/"); p == "" || p == "." {
		p += "/**"
	}
	all := []string{p}
	if base := path.Base(p); base != "*" && base != "**" && p != "*" && p != "**" {
		below := p + "/**"
		if !strings.Contains(p, "/") && p != "~" {
			below = "**/" + below // a name is meant at any depth, and so is what lies below it
		}
		all = append(all, below)
	}
	for i := range all {
		all[i] = tool + "(" + all[i] + ")"
	}
	return all, ""
}
