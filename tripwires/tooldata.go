// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"bytes"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// Bounds of what is looked at in the input of a tool that no table knows.
const (
	maxToolTexts = 2000
	maxToolDepth = 16
)

// Keys under which tools of any server name files and commands, without "_" and "-" and in lower case.
var (
	pathKeys = wordSet("path", "paths", "file", "files", "filepath", "filepaths", "filename", "source", "sources", "src", "destination", "dest", "dst", "target",
		"targetfile", "targetpath", "uri", "from", "to", "directory", "dir", "folder", "oldpath", "newpath", "sourcepath", "destinationpath", "notebookpath", "absolutepath",
		"outputpath", "output", "inputpath", "location", "root", "cwdfile", "filelist", "relativepath", "relativeworkspacepath", "savepath", "localpath")
	commandKeys = wordSet("command", "cmd", "commandline", "shellcommand", "shell", "bash", "commands", "cmds")
	scriptKeys  = wordSet("script", "code")
	remoteKeys  = wordSet("repo", "repository", "owner", "bucket", "projectid", "branch", "ref")
	sqlKeys     = wordSet("sql", "statement", "statements", "query", "queries")
)

// toolText is a string of an input, with the key that it stands under.
type toolText struct {
	key, text string
	list      bool // an element of a list
}

// toolTexts lists the strings of an input with the nearest key, however deep; of keys given twice, every value. whole is false
// if there were too many.
func toolTexts(raw json.RawMessage) (out []toolText, whole bool) {
	type level struct {
		key           string
		list, wantKey bool
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	stack := []level{{}}
	for {
		t, err := d.Token()
		if err != nil {
			return out, true
		}
		top := &stack[len(stack)-1]
		switch v := t.(type) {
		case json.Delim:
			switch v {
			case '{', '[':
				if len(stack) > maxToolDepth {
					return out, false
				}
				stack = append(stack, level{key: top.key, list: v == '[', wantKey: v == '{'})
				top.wantKey = !top.list && len(stack) > 2
			default:
				stack = stack[:len(stack)-1]
			}
			continue
		case string:
			if top.wantKey {
				top.key, top.wantKey = keyName(v), false
				continue
			}
			if len(out) >= maxToolTexts {
				return out, false
			}
			out = append(out, toolText{top.key, v, top.list})
		}
		top.wantKey = !top.list && len(stack) > 1
	}
}

func keyName(s string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", ".", "").Replace(s))
}

// toolWords splits a tool's name into its words: "mcp__fs__writeFile" is mcp, fs, write, file.
func toolWords(name string) []string {
	var out []string
	word := ""
	end := func() {
		if word != "" {
			out = append(out, word)
		}
		word = ""
	}
	for i := range len(name) {
		switch b := name[i]; {
		case b >= 'A' && b <= 'Z':
			if i > 0 && name[i-1] >= 'a' && name[i-1] <= 'z' {
				end()
			}
			word += string(b + 'a' - 'A')
		case b >= 'a' && b <= 'z' || b >= '0' && b <= '9':
			word += string(b)
		default:
			end()
		}
	}
	end()
	return out
}

// Words of tools' names that say what they do.
var (
	deleteWords = wordSet("delete", "remove", "unlink", "rm", "rmdir", "trash", "erase")
	writeWords  = wordSet("write", "edit", "move", "create", "rename", "append", "put", "save", "update", "replace", "insert", "patch", "copy", "modify", "overwrite", "upload",
		"download", "set", "truncate", "chmod", "touch", "mkdir", "apply", "store", "make", "export")
	shellWords = wordSet("shell", "bash", "sh", "terminal", "exec", "execute", "command", "cmd", "ssh", "console", "process", "zsh", "run", "tmux")
	sqlWords   = wordSet("sql", "postgres", "postgresql", "mysql", "sqlite", "mariadb", "db", "database", "duckdb", "snowflake", "bigquery", "clickhouse", "supabase", "redshift", "mssql", "oracle", "cockroachdb")
)

// toolUnknown judges a tool that no table knows by what its input names: places, commands, statements. What the tool itself is
// allowed is said by unmapped and by rules.
func (x *evaluation) toolUnknown() {
	texts, whole := toolTexts(x.call.Input)
	if !whole {
		x.beyondBounds("the tool's input holds more than can be looked at")
	}
	words := toolWords(x.call.Tool)
	says := func(set map[string]bool) bool {
		return slices.ContainsFunc(words, func(w string) bool { return set[w] })
	}
	has := func(set map[string]bool) bool {
		return slices.ContainsFunc(texts, func(t toolText) bool { return set[t.key] })
	}
	deletes, writes := says(deleteWords), says(writeWords)
	elsewhere := has(remoteKeys) // a file of a repository or a bucket of a server
	for _, t := range texts {
		switch {
		case pathKeys[t.key]:
			x.toolNames(t, deletes, writes, elsewhere)
		case sqlKeys[t.key] && (t.key == "sql" || t.key == "statement" || says(sqlWords)):
			if form, what := sqlLoss(t.text); form != "" {
				x.add(finding{Effect: Effect{Kind: DatabaseDestroy, Target: what, Program: x.call.Tool}, form: form, cmd: -1})
			}
		}
	}
	x.toolCommands(texts, says(shellWords))
}

// toolNames judges a file that a tool's input names.
func (x *evaluation) toolNames(t toolText, deletes, writes, elsewhere bool) {
	p := t.text
	if u, ok := strings.CutPrefix(p, "file://"); ok {
		if p = u; strings.Contains(u, "%") {
			if plain, err := url.PathUnescape(u); err == nil {
				p = plain
			}
		}
		p = strings.TrimPrefix(p, "localhost")
	}
	if p == "" || len(p) > 4096 || strings.ContainsAny(p, "\x00\n") || strings.Contains(p, "://") {
		return
	}
	home := p == "~" || strings.HasPrefix(p, "~/")
	if elsewhere && !path.IsAbs(p) && !home {
		return
	}
	candidates := []string{p}
	if home {
		candidates = nil
		for _, h := range x.homes {
			candidates = append(candidates, h+p[1:])
		}
	}
	for _, p := range candidates {
		abs := x.paths.Abs(x.call.Cwd, p)
		if abs == "" {
			continue
		}
		l := x.at(p, abs, !deletes)
		moved := t.key == "source" || t.key == "src" || t.key == "from" || t.key == "oldpath" || t.key == "sourcepath"
		switch {
		case deletes, moved && writes && l.place == "tripline" && !slices.Contains(toolWords(x.call.Tool), "copy"):
			f := l.finding(Delete)
			f.Program, f.Recursive = x.call.Tool, slices.ContainsFunc(toolWords(x.call.Tool), func(w string) bool {
				return w == "directory" || w == "dir" || w == "folder" || w == "tree" || w == "rmdir" || w == "recursive"
			}) || l.directory
			x.addDelete(f, &l)
		case writes && moved:
			x.toolReadOf(&l)
		case writes && !l.directory && !l.res.Sink:
			f := l.finding(Write)
			f.Program = x.call.Tool
			x.addWrite(f, &l)
		case writes:
		default:
			x.toolReadOf(&l)
		}
	}
}

// toolCommands judges the commands in a tool's input, with their arguments if those stand apart.
func (x *evaluation) toolCommands(texts []toolText, shellLike bool) {
	var args, list []string
	host, strict := "", shellLike
	for _, t := range texts {
		switch t.key {
		case "args", "arguments", "argv":
			args = append(args, t.text)
		case "host", "hostname", "server", "connection":
			host = t.text
		}
		if t.list && (t.key == "command" || t.key == "cmd") {
			list = append(list, t.text)
		}
	}
	run := func(judge func()) {
		before := len(x.findings)
		doubts := len(x.uncertain)
		x.forEachHome(judge)
		if strict {
			return
		}
		// The text of a key called "command" need be no shell: what cannot be read as such says nothing.
		kept := x.findings[:before]
		for _, f := range x.findings[before:] {
			if f.Kind != Unknown || f.form == "truncated" {
				kept = append(kept, f)
			}
		}
		x.findings, x.uncertain = kept, x.uncertain[:doubts]
	}
	argv := func(words []string) {
		run(func() {
			an := shell.AnalyzeArgv(words, x.shellOptions(x.call.Cwd))
			x.judgeAnalysis(&an, nil)
		})
	}
	if len(list) > 0 {
		argv(append(list, args...))
		for _, one := range list { // or each is a command of its own
			if strings.ContainsAny(one, " \t") {
				run(func() { x.judgeShell(one, x.call.Cwd) })
			}
		}
	}
	for _, t := range texts {
		strict = shellLike
		switch {
		case t.text == "" || t.list && (t.key == "command" || t.key == "cmd"):
		case !commandKeys[t.key] && !(scriptKeys[t.key] && shellLike):
		case host != "" && len(args) == 0:
			argv([]string{"ssh", "--", host, t.text})
		case len(args) > 0 && !strings.ContainsAny(t.text, " \t\n"):
			argv(append([]string{t.text}, args...))
		default:
			text := t.text
			if len(args) > 0 {
				text += " " + joinWords(args)
			}
			strict = shellLike && !scriptKeys[t.key] // a script may be of any language
			run(func() { x.judgeShell(text, x.call.Cwd) })
		}
	}
}
