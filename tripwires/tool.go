// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// Bounds of a tool's input object, and of the homes for which a command is judged.
const (
	maxInput = 32 << 20
	maxHomes = 4
)

// prepare finds the project and the homes of the call.
func (x *evaluation) prepare() {
	for _, h := range x.call.Homes {
		if h = path.Clean(h); path.IsAbs(h) && h != "/" && !slices.Contains(x.homes, h) {
			x.homes = append(x.homes, h)
		}
	}
	x.paths = paths.New(paths.Options{Homes: x.call.Homes, Cwd: x.call.Cwd, FirstCwd: x.call.FirstCwd, Project: x.call.Project,
		Own: x.eng.own, Reader: x.view})
	x.root = x.paths.Root()
}

// effects turns the call into findings.
func (x *evaluation) effects() {
	in, ok := decodeInput(x.call.Input)
	if kind := shellTools[x.call.Tool]; kind != "" {
		x.toolShell(in, kind)
		return
	}
	tool := tools[x.call.Tool]
	switch {
	case tool != nil && !ok:
		x.undecodable("the input is not an object")
	case tool != nil:
		tool(x, in)
	case quietTools[x.call.Tool]:
	default:
		x.unmapped = true
		x.trace("no table knows tool %s", shorten(x.call.Tool, 80))
		x.toolUnknown()
	}
}

// toolShell judges a shell tool: its command is a text for a shell, or a list of arguments.
func (x *evaluation) toolShell(in inputObject, key string) {
	x.shell = true
	if cmd, ok := in.text(key); ok {
		x.forEachHome(func() { x.judgeShell(cmd, x.call.Cwd) })
		return
	}
	var list []*string
	if json.Unmarshal(in[key], &list) != nil || len(list) == 0 || slices.Contains(list, nil) {
		x.undecodable("the command is missing or is not text")
		return
	}
	argv := make([]string, 0, len(list))
	for _, s := range list {
		argv = append(argv, *s)
	}
	x.forEachHome(func() {
		an := shell.AnalyzeArgv(argv, x.shellOptions(x.call.Cwd))
		x.judgeAnalysis(&an, nil)
	})
}

// forEachHome judges once for each known home: what ~ means is not certain, and the worst counts. The effects of the first
// home are those that are shown.
func (x *evaluation) forEachHome(judge func()) {
	judge()
	shown := len(x.findings)
	for i := 1; i < min(len(x.homes), maxHomes); i++ {
		x.homes[0], x.homes[i] = x.homes[i], x.homes[0]
		judge()
		x.homes[0], x.homes[i] = x.homes[i], x.homes[0]
	}
	for i := shown; i < len(x.findings); i++ {
		x.findings[i].quiet = x.findings[i].quiet || slices.ContainsFunc(x.findings[:shown], func(f finding) bool {
			return f.Kind == x.findings[i].Kind && f.Target == x.findings[i].Target && f.Place == x.findings[i].Place
		})
	}
}

// undecodable denies a known tool whose input is not what the tool takes: what we cannot read, the agent may.
func (x *evaluation) undecodable(why string) {
	x.add(finding{Effect: Effect{Kind: Unknown, Certainty: Uncertain, Note: why}, form: "undecodable", cmd: -1})
	x.doubt(why)
}

// shellTools are the tools that run a shell command, with the key that holds it.
var shellTools = map[string]string{
	"Bash": "command", "Monitor": "command", "bash": "command", "shell": "command", "Shell": "command",
	"run_shell_command": "command", "local_shell": "command", "shell_command": "command", "exec_command": "cmd",
}

// quietTools are known and do nothing to the machine by themselves: what their agents do comes as calls of its own.
var quietTools = wordSet("Agent", "Task", "Skill", "TodoWrite", "TodoRead", "AskUserQuestion", "ExitPlanMode", "EnterPlanMode", "BashOutput",
	"KillShell", "KillBash", "TaskOutput", "TaskStop", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "SlashCommand", "ToolSearch",
	"ListMcpResourcesTool", "ReadMcpResourceTool", "LSP", "update_plan", "SendMessage", "StructuredOutput")

// tools are the other known tools.
var tools = map[string]func(*evaluation, inputObject){
	"Write": toolWrite, "Edit": toolEdit, "MultiEdit": toolEdit, "NotebookEdit": toolNotebook,
	"apply_patch": toolPatch, "Read": toolRead, "NotebookRead": toolNotebookRead, "Glob": toolSearch, "Grep": toolSearch, "LS": toolSearch,
	"WebFetch": toolFetch, "WebSearch": toolWebSearch, "PowerShell": toolPowerShell,
}

// inputObject is a tool's input with its values undecoded.
type inputObject map[string]json.RawMessage

// decodeInput reads an object with exact keys; a key given twice, or in another case, is refused, since another decoder may
// take the other one.
func decodeInput(raw json.RawMessage) (inputObject, bool) {
	if len(raw) == 0 || len(raw) > maxInput {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	t, err := d.Token()
	if err != nil || t != json.Delim('{') {
		return nil, false
	}
	out := inputObject{}
	folded := map[string]bool{}
	for d.More() {
		k, err := d.Token()
		key, isText := k.(string)
		if err != nil || !isText || folded[strings.ToLower(key)] {
			return nil, false
		}
		folded[strings.ToLower(key)] = true
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return nil, false
		}
		out[key] = v
	}
	if _, err := d.Token(); err != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return out, true
}

// text returns a value that is a string.
func (in inputObject) text(key string) (string, bool) {
	raw, ok := in[key]
	if !ok {
		return "", false
	}
	var s *string
	if json.Unmarshal(raw, &s) != nil || s == nil {
		return "", false
	}
	return *s, true
}

// optional returns a string that may be absent; ok is false if it is there and no string.
func (in inputObject) optional(key string) (s string, ok bool) {
	if _, there := in[key]; !there {
		return "", true
	}
	return in.text(key)
}

func toolFetch(x *evaluation, in inputObject) {
	raw, ok := in.text("url")
	if !ok {
		x.undecodable("the address is missing or is not text")
		return
	}
	host := ""
	if u, err := url.Parse(raw); err == nil {
		host = strings.ToLower(u.Hostname())
	}
	x.add(finding{Effect: Effect{Kind: Read, Target: host, Program: x.call.Tool, Note: "reads from the network"}, host: host, form: "network", cmd: -1})
}

func toolWebSearch(x *evaluation, in inputObject) {
	if _, ok := in.text("query"); !ok {
		x.undecodable("the query is missing or is not text")
		return
	}
	x.add(finding{Effect: Effect{Kind: Read, Program: x.call.Tool, Note: "reads from the network"}, form: "network", cmd: -1})
}

// literal makes a word of a text that no shell touches.
func literal(s string) shell.Word { return shell.Word{Text: s, Known: true, Quoted: true} }
