// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// judgeShell adds the effects of running a shell source in a directory.
func (x *evaluation) judgeShell(src, cwd string) {
	an := shell.Analyze(src, x.shellOptions(cwd))
	x.judgeAnalysis(&an, nil)
}

// nested judges shell text that another language or program would run. via says which.
func (x *evaluation) nested(src string, c *command, via string) {
	x.judgeNested(c, via, "shell text is nested too deeply", func(o shell.Options) shell.Analysis { return shell.Analyze(src, o) })
}

// startedTooDeep is why a program is not followed any further.
const startedTooDeep = "a program is started too deep inside others"

// nestedArgv is nested for an argument list that is started without a shell.
func (x *evaluation) nestedArgv(argv []string, c *command, via string) {
	x.judgeNested(c, via, startedTooDeep, func(o shell.Options) shell.Analysis { return shell.AnalyzeArgv(argv, o) })
}

// nestedWords is nestedArgv for words that are known in part.
func (x *evaluation) nestedWords(argv []shell.Word, c *command, via string) {
	x.judgeNested(c, via, startedTooDeep, func(o shell.Options) shell.Analysis { return shell.AnalyzeWords(argv, o) })
}

// judgeNested judges what c would run, in c's directory; tooDeep says what is unknown beyond the bounds.
func (x *evaluation) judgeNested(c *command, via, tooDeep string, analyze func(shell.Options) shell.Analysis) {
	if x.depth >= maxNested || x.sources >= maxSources {
		x.unknown("eval", tooDeep, append(c.Via, via))
		return
	}
	x.depth++
	x.sources++
	cwd := ""
	if c.Cwd.Known {
		cwd = c.Cwd.Text
	}
	an := analyze(x.shellOptions(cwd))
	x.judgeAnalysis(&an, c.under(via))
	x.depth--
}

// under returns the command as the context of what it runs.
func (c *command) under(via string) *command {
	out := *c
	out.Via = append(append([]string{}, c.Via...), via)
	return &out
}

func (x *evaluation) shellOptions(cwd string) shell.Options {
	o := shell.Options{Cwd: cwd, ReadScript: x.readScript}
	if len(x.homes) > 0 {
		o.Home = x.homes[0]
		o.User = baseName(o.Home)
	}
	return o
}

// readScript reads a script that is about to run; it joins the read set, since the verdict depends on it.
func (x *evaluation) readScript(path string) (string, error) {
	b, err := x.view.ReadCode(path, shell.MaxScript)
	return string(b), err
}

// judgeAnalysis turns what the shell would start into effects. outer is the command that runs the text, nil at the top.
func (x *evaluation) judgeAnalysis(an *shell.Analysis, outer *command) {
	var via []string
	if outer != nil {
		via = outer.Via
	}
	switch {
	case an.TooBig:
		x.unknown("too-big", "the command is too large to be read", via)
		return
	case an.Unparsable:
		x.unknown("unparsable", "this is not valid shell", via)
	}
	if an.Truncated {
		x.unknown("truncated", "the command starts more than can be followed", via)
	}
	if an.ForkBomb {
		x.add(finding{Effect: Effect{Kind: ResourceExhaust, Via: via, Note: "a function starts itself without end"}, form: "fork-bomb", cmd: -1})
	}
	if an.Computed {
		x.trace("text was computed through a decoder")
	}
	first := len(x.cmds)
	for i := range an.Commands {
		x.cmds = append(x.cmds, x.command(&an.Commands[i], outer))
	}
	cmds := x.cmds[first:]
	w := written{}
	for _, c := range cmds {
		if c.NoExec {
			continue
		}
		x.judgeCommand(c, cmds, &w)
	}
	x.judgePipes(cmds)
	for i := range an.Opaque {
		x.judgeOpaque(&an.Opaque[i], via, cmds)
	}
}

// command prepares a simple command for the tables.
func (x *evaluation) command(sc *shell.Command, outer *command) *command {
	c := &command{Command: *sc, index: len(x.cmds)}
	if outer != nil {
		c.Via = append(append([]string{}, outer.Via...), sc.Via...)
		c.Remote = c.Remote || outer.Remote
		c.Privileged = c.Privileged || outer.Privileged
		c.LinkedBefore = c.LinkedBefore || outer.LinkedBefore
		if c.Host == "" {
			c.Host, c.Mounts = outer.Host, outer.Mounts
		}
	}
	for _, w := range c.Argv {
		c.texts = append(c.texts, w.Text)
	}
	if len(c.Argv) > 0 {
		c.name = strings.TrimSuffix(baseName(c.Argv[0].Text), ".exe")
		if isCaseInsensitiveHost {
			c.name = strings.ToLower(c.name)
		}
		c.args = c.Argv[1:]
	}
	return c
}

// judgeCommand adds the effects of one simple command: its environment, its redirections, its program.
func (x *evaluation) judgeCommand(c *command, all []*command, w *written) {
	x.judgeEnvironment(c)
	x.judgeRedirections(c)
	if len(c.Argv) == 0 {
		x.noteNames(c, all)
		return
	}
	if !c.Argv[0].Known && !c.knownName() {
		x.judgeUnknownProgram(c)
		return
	}
	if x.judgeRenamed(c) {
		return
	}
	if x.selfProtected(c, all) {
		x.trace("%s concerns Tripline itself", c.name)
	}
	x.judgeOwnOperands(c)
	x.judgeSecretOperands(withoutRemoteShell(c))
	x.judgeTokenPrinter(c)
	x.judgeWrittenBefore(c, w)
	name := c.name
	if run := x.eng.programs[name]; run != nil {
		run(x, c)
	} else if run := programFamily(name); run != nil {
		run(x, c)
	} else {
		x.judgeOther(c)
	}
	w.note(x, c)
	x.noteNames(c, all)
}

// withoutRemoteShell drops the value of rsync's -e: the command that connects uses the key that it names and does not show it.
func withoutRemoteShell(c *command) *command {
	if c.name != "rsync" {
		return c
	}
	out := *c
	out.args = nil
	for i := 0; i < len(c.args); i++ {
		switch t := c.args[i].Text; {
		case t == "-e" || t == "--rsh":
			i++
		case strings.HasPrefix(t, "--rsh="):
		case strings.HasPrefix(t, "-") && !strings.HasPrefix(t, "--") && strings.HasSuffix(t, "e"): // -ave CMD
			i++
		default:
			out.args = append(out.args, c.args[i])
		}
	}
	return &out
}

// knownName reports whether a program whose directory is not known has a name that is: "$DIR/bin/tool". Without the quotes the
// directory might be several words.
func (c *command) knownName() bool {
	w := c.Argv[0]
	i := strings.LastIndexByte(w.Text, '\x00')
	return !w.Split && !w.Hidden && !w.Download && i >= 0 && strings.Contains(w.Text[i:], "/") && c.name != ""
}

// judgeOther covers programs that no table knows: they run, and nothing speaks against them.
func (x *evaluation) judgeOther(c *command) {
	if harmless[c.name] || c.Argv[0].Text == "" {
		return
	}
	x.execute(c)
}

// execute records that a program runs whose effects no table knows.
func (x *evaluation) execute(c *command) {
	x.add(finding{Effect: Effect{Kind: Execute, Program: c.name, Via: c.Via}, cmd: c.index, privileged: c.Privileged})
}

// effect records an effect that has no path.
func (x *evaluation) effect(c *command, k EffectKind, form, target, note string) {
	x.add(finding{Effect: Effect{Kind: k, Target: target, Program: c.name, Via: c.Via, Note: note}, form: form, cmd: c.index, privileged: c.Privileged})
}

func (x *evaluation) judgeUnknownProgram(c *command) {
	why := "the program's name is computed"
	form := "program"
	if c.Argv[0].Hidden {
		form = "hidden"
	}
	x.doubt(why)
	x.add(finding{Effect: Effect{Kind: Unknown, Via: c.Via, Certainty: Uncertain, Note: why}, form: form, cmd: c.index})
}

// makesFiles reports whether a command may make files whose names it does not show.
func makesFiles(c *command) bool {
	if len(c.Argv) == 0 || harmless[c.name] || shells[c.name] {
		return false
	}
	switch c.name {
	case "chmod", "mkdir", "rm", "cp", "mv", "touch", "kill", "pkill", "tee", "sed", "source", ".":
		return false
	}
	return !strings.Contains(c.Argv[0].Text, "/") || strings.HasPrefix(c.Argv[0].Text, "/")
}

// runnerOf names what would run a text: a shell or one of its own commands.
func runnerOf(o *shell.Opaque) string {
	if len(o.Argv) > 0 && o.Argv[0].Known {
		switch name := baseName(o.Argv[0].Text); {
		case shells[name], name == "eval", name == "source":
			return name
		}
	}
	return "a shell"
}

func (x *evaluation) judgeOpaque(o *shell.Opaque, outer []string, cmds []*command) {
	via := append(append([]string{}, outer...), o.Via...)
	if o.Download {
		x.add(finding{Effect: Effect{Kind: ExecuteDownload, Program: runnerOf(o), Via: via, Note: o.Why}, form: "pipe", cmd: -1})
		return
	}
	if o.Remote && o.Kind == "stdin-shell" {
		return // an interactive session elsewhere
	}
	if len(o.Argv) > 0 && shells[baseName(o.Argv[0].Text)] && slices.ContainsFunc(o.Argv[1:], func(w shell.Word) bool { return w.Text == "-i" }) &&
		slices.ContainsFunc(cmds, func(c *command) bool { return listens(c) && c.Pipe > 0 }) {
		x.add(finding{Effect: Effect{Kind: NetworkSend, Via: via, Note: "a shell would be joined to the network"}, form: "reverse-shell", cmd: -1})
		return
	}
	if o.Kind == "interpreter" && !o.Download && x.scanned[joinWords(wordTexts(o.Argv))] {
		return // its text is known and was scanned
	}
	before := func(c *command) bool {
		return (c.Pos.Line < o.Pos.Line || c.Pos.Line == o.Pos.Line && c.Pos.Col < o.Pos.Col) && makesFiles(c)
	}
	if o.Absent && !slices.ContainsFunc(cmds, before) {
		// It cannot run: the shell will say so itself. Where another command of the source may make it, it is not known.
		x.trace("a script to run is not there")
		x.add(finding{Effect: Effect{Kind: Execute, Via: via, Certainty: Uncertain, Note: "a script that is not there"}, form: "absent-script", cmd: -1})
		return
	}
	x.unknown(o.Kind, o.Why, via)
}
