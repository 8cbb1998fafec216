// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// gitGlobals are git's options before the verb that take a value in the next word.
var gitGlobals = wordSet("-C", "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env", "--super-prefix", "--attr-source")

// progGit judges git by its verb. What git itself refuses (a switch that would lose edits) passes.
func progGit(x *evaluation, c *command) {
	args := c.args
	verb := ""
	aliases := map[string]string{}
	settings := gitEnvironment(c)
	at := *c
	for len(args) > 0 {
		t := args[0].Text
		if !strings.HasPrefix(t, "-") || !args[0].Known && t == "\x00" {
			break
		}
		name, val, eq := strings.Cut(t, "=")
		if gitGlobals[name] && !eq && len(args) > 1 {
			val = args[1].Text
			args = args[1:]
		}
		switch name {
		case "-c":
			if key, v, ok := strings.Cut(val, "="); ok && strings.HasPrefix(strings.ToLower(key), "alias.") {
				aliases[strings.ToLower(key)[len("alias."):]] = v
			} else {
				settings = append(settings, gitSetting{key: strings.ToLower(key), val: v, known: !strings.Contains(v, "\x00"), option: true})
			}
		case "--config-env":
			settings = append(settings, gitFromVariable(c, val))
		case "-C":
			at.Cwd = joinCwd(at.Cwd, val)
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	if !args[0].Known {
		x.judgeUnknownVerb(c, "git")
		return
	}
	verb = args[0].Text
	c.bare = append([]string{"git"}, wordTexts(args)...)
	x.gitRunsSettings(&at, settings, aliases)
	x.gitRemoteHelpers(&at, verb, args[1:])
	if verb == "gc" && slices.ContainsFunc(settings, func(s gitSetting) bool {
		return s.key == "gc.pruneexpire" && s.val != "never" && s.val != "2.weeks.ago"
	}) {
		x.effect(c, VCSDiscard, "gc", "", "unreachable commits are deleted for good")
		return
	}
	if gitVerbs[verb] == nil && !gitReads[verb] && aliases[verb] == "" {
		if a, ok := x.gitSetBefore(c, verb); ok {
			aliases[verb] = a
		}
	}
	if a, ok := aliases[verb]; ok { // the shell analysis runs aliases that start with !
		if !strings.HasPrefix(a, "!") {
			x.nested("git "+a, &at, "git alias")
		}
		return
	}
	if run := gitVerbs[verb]; run != nil {
		run(x, &at, args[1:])
		return
	}
	if verb == "show" || verb == "cat-file" {
		x.gitShowsSecret(&at, args[1:])
	}
	if !gitReads[verb] {
		x.execute(c)
	}
}

func wordTexts(ws []shell.Word) []string {
	out := make([]string, 0, len(ws))
	for _, w := range ws {
		out = append(out, w.Text)
	}
	return out
}

func joinCwd(cwd shell.Word, dir string) shell.Word {
	if strings.HasPrefix(dir, "/") {
		cwd.Text = path.Clean(dir)
	} else {
		cwd.Text = path.Join(cwd.Text, dir)
	}
	cwd.Known = cwd.Known && !strings.Contains(dir, "\x00")
	return cwd
}

// judgeUnknownVerb asks when the sub-command of a program that can do harm is computed.
func (x *evaluation) judgeUnknownVerb(c *command, program string) {
	why := "the sub-command of " + program + " is computed"
	x.doubt(why)
	x.add(finding{Effect: Effect{Kind: Unknown, Program: c.name, Via: c.Via, Certainty: Uncertain, Note: why}, form: "program", cmd: c.index})
}

// gitRuns reports whether git hands the value of a setting to a shell.
func gitRuns(key string) bool {
	switch key {
	case "core.fsmonitor", "core.sshcommand", "core.pager", "core.editor", "core.askpass", "sequence.editor", "diff.external", "gpg.program",
		"core.gitproxy", "uploadpack.packobjectshook":
		return true
	}
	return strings.HasPrefix(key, "filter.") && !strings.HasPrefix(key, "filter.lfs.") || strings.HasPrefix(key, "difftool.") ||
		strings.HasPrefix(key, "mergetool.") || strings.HasPrefix(key, "pager.")
}

// gitReads are verbs that only look.
var gitReads = wordSet("status", "log", "diff", "show", "blame", "grep", "ls-files", "ls-tree", "ls-remote", "rev-parse", "rev-list", "describe",
	"shortlog", "cat-file", "for-each-ref", "merge-base", "name-rev", "count-objects", "fsck", "help", "version", "var", "check-ignore",
	"check-attr", "check-ref-format", "whatchanged", "range-diff", "diff-tree", "diff-index", "diff-files", "show-ref", "show-branch", "cherry", "annotate", "archive", "bugreport", "--version")

var gitVerbs = map[string]func(*evaluation, *command, []shell.Word){
	"reset": gitReset, "clean": gitClean, "checkout": gitCheckout, "restore": gitRestore, "switch": gitSwitch, "stash": gitStash,
	"worktree": gitWorktree, "branch": gitBranch, "push": gitPush, "reflog": gitReflog, "gc": gitGC, "prune": gitPrune,
	"update-ref": gitUpdateRef, "filter-branch": gitFilterBranch, "filter-repo": gitFilterBranch, "rm": gitRm, "checkout-index": gitCheckoutIndex,
	"read-tree": gitReadTree, "submodule": gitSubmodule, "config": gitConfig,
}

func gitReset(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{})
	if p.has("--hard") {
		x.effect(c, VCSDiscard, "reset-hard", p.operand(0), "uncommitted changes of tracked files are thrown away")
		return
	}
	x.execute(c)
}

func gitClean(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "e", long: []string{"--exclude"}})
	if p.has("-n", "--dry-run") {
		return
	}
	note := "untracked files are deleted"
	if p.has("-x", "-X") {
		note = "untracked and ignored files are deleted"
	}
	x.effect(c, VCSDiscard, "clean", p.operand(0), note)
}

func gitCheckout(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "bB", long: []string{"--orphan", "--conflict", "--pathspec-from-file"}})
	const note = "uncommitted changes of these files are overwritten"
	switch {
	case p.has("-b", "-B", "--orphan", "--detach"):
		if !p.has("-f", "--force") {
			x.execute(c)
			return
		}
		x.effect(c, VCSDiscard, "checkout-force", p.operand(0), "uncommitted changes are thrown away")
	case p.has("-f", "--force"):
		x.effect(c, VCSDiscard, "checkout-force", p.operand(0), "uncommitted changes are thrown away")
	case p.has("-p", "--patch"):
		x.execute(c)
	case p.dashdash && len(p.operands) > p.after, p.has("--ours", "--theirs", "--pathspec-from-file", "--no-overlay"):
		x.effect(c, VCSDiscard, "checkout-paths", p.operand(len(p.operands)-1), note)
	case len(p.operands) > 1:
		x.effect(c, VCSDiscard, "checkout-paths", p.operand(len(p.operands)-1), note) // TREE PATH
	case len(p.operands) == 1 && x.checkoutIsPath(c, p.operands[0]):
		x.effect(c, VCSDiscard, "checkout-paths", p.operand(0), note)
	default:
		x.execute(c)
	}
}

// checkoutIsPath reports whether the only operand of a checkout names files and no branch.
func (x *evaluation) checkoutIsPath(c *command, w shell.Word) bool {
	t := w.Text
	if t == "." || t == ".." || strings.HasPrefix(t, "./") || strings.HasPrefix(t, "../") || strings.HasPrefix(t, ":") || strings.HasPrefix(t, "/") || strings.HasSuffix(t, "/") || w.Glob {
		return true
	}
	for _, l := range x.locate(c, w) {
		return l.res.Exists
	}
	return false
}

func gitRestore(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "s", long: []string{"--source", "--conflict", "--pathspec-from-file"}})
	if p.has("-S", "--staged") && !p.has("-W", "--worktree") || p.has("-p", "--patch") {
		x.execute(c)
		return
	}
	x.effect(c, VCSDiscard, "restore", p.operand(0), "uncommitted changes of these files are overwritten")
}

func gitSwitch(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "cC", long: []string{"--create", "--force-create", "--orphan", "--conflict"}})
	if p.has("-f", "--force", "--discard-changes") {
		x.effect(c, VCSDiscard, "checkout-force", p.operand(0), "uncommitted changes are thrown away")
		return
	}
	x.execute(c)
}

func gitStash(x *evaluation, c *command, args []shell.Word) {
	if len(args) > 0 {
		switch args[0].Text {
		case "drop", "clear":
			x.effect(c, VCSDiscard, "stash-drop", "", "stashed changes are thrown away")
			return
		case "list", "show":
			return
		}
	}
	x.execute(c)
}

func gitWorktree(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "bB", long: []string{"--reason", "--expire"}})
	if p.operand(0) == "remove" && p.has("-f", "--force") {
		x.effect(c, VCSDiscard, "worktree-remove", p.operand(1), "a work tree and its uncommitted changes are deleted")
		return
	}
	x.execute(c)
}

func gitBranch(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "u", long: []string{"--set-upstream-to", "--contains", "--no-contains", "--merged", "--no-merged", "--sort", "--points-at", "--format"}})
	force := p.has("-f", "--force")
	switch {
	case p.has("-D"), force && p.has("-d", "--delete"):
		x.effect(c, VCSDiscard, "branch-delete", p.operand(0), "commits that are on no other branch become unreachable")
	case p.has("-M"), force && p.has("-m", "--move"), p.has("-C"):
		x.effect(c, VCSDiscard, "branch-move", p.operand(len(p.operands)-1), "a branch of that name is overwritten")
	case force:
		x.effect(c, VCSDiscard, "branch-move", p.operand(0), "the branch is moved to another commit; it is not deleted")
	default:
		x.execute(c)
	}
}

func gitPush(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "o", long: []string{"--push-option", "--receive-pack", "--exec", "--repo"}})
	if p.has("-n", "--dry-run") {
		return
	}
	refs := p.operands
	remote := p.operand(0)
	if len(refs) > 0 {
		refs = refs[1:]
	}
	form := ""
	for _, f := range p.flags {
		switch {
		case f == "-f", f == "--mirror", f == "--prune":
			form = "force-push"
		case f == "-d", f == "--delete":
			form = "push-delete"
		case strings.HasPrefix("--force", f) && len(f) > 5 || strings.HasPrefix(f, "--force-with"):
			form = "force-push"
		}
	}
	for _, r := range refs {
		switch {
		case strings.HasPrefix(r.Text, "+"):
			form = "force-push"
		case strings.HasPrefix(r.Text, ":") && len(r.Text) > 1 && form == "":
			form = "push-delete"
		}
	}
	if form == "" {
		x.add(finding{Effect: Effect{Kind: NetworkSend, Target: remote, Program: c.name, Via: c.Via}, form: "push", cmd: c.index})
		return
	}
	note := "the remote's history is rewritten"
	if form == "push-delete" {
		note = "a branch or tag of the remote is deleted"
	}
	x.effect(c, VCSRewriteRemote, form, strings.TrimSpace(remote+" "+lastText(refs)), note)
}

func gitReflog(x *evaluation, c *command, args []shell.Word) {
	if len(args) > 0 && (args[0].Text == "expire" || args[0].Text == "delete") && !slices.ContainsFunc(args, func(w shell.Word) bool { return w.Text == "-n" || w.Text == "--dry-run" }) {
		x.effect(c, VCSDiscard, "reflog", "", "the record that brings lost commits back is removed")
	}
}

func gitGC(x *evaluation, c *command, args []shell.Word) {
	for _, w := range args {
		if v, ok := strings.CutPrefix(w.Text, "--prune="); ok && v != "never" && v != "2.weeks.ago" {
			x.effect(c, VCSDiscard, "gc", v, "unreachable commits are deleted for good")
			return
		}
	}
	x.execute(c)
}

func gitPrune(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{long: []string{"--expire"}})
	if p.has("-n", "--dry-run") {
		return
	}
	x.effect(c, VCSDiscard, "gc", "", "unreachable commits are deleted for good")
}

func gitUpdateRef(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "m"})
	if p.has("-d", "--stdin") {
		x.effect(c, VCSDiscard, "update-ref", p.operand(0), "a reference is deleted")
		return
	}
	x.execute(c)
}

func gitFilterBranch(x *evaluation, c *command, _ []shell.Word) {
	x.effect(c, VCSDiscard, "rewrite-history", "", "the history is rewritten")
}

func gitRm(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{long: []string{"--pathspec-from-file"}})
	if p.has("-n", "--dry-run") {
		return
	}
	if p.has("-f", "--force") && !p.has("--cached") {
		x.effect(c, VCSDiscard, "rm-force", p.operand(0), "files are deleted with their uncommitted changes")
		return
	}
	x.execute(c)
}

func gitCheckoutIndex(x *evaluation, c *command, args []shell.Word) {
	if p := parseArgs(args, optSpec{}); p.has("-f", "--force") {
		x.effect(c, VCSDiscard, "checkout-force", "", "uncommitted changes are thrown away")
	}
}

func gitReadTree(x *evaluation, c *command, args []shell.Word) {
	if p := parseArgs(args, optSpec{}); p.has("--reset") && p.has("-u") {
		x.effect(c, VCSDiscard, "reset-hard", p.operand(0), "uncommitted changes are thrown away")
	}
}

func gitSubmodule(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{posix: true})
	switch p.operand(0) {
	case "deinit":
		if q := parseArgs(args, optSpec{}); q.has("-f", "--force") {
			x.effect(c, VCSDiscard, "submodule-deinit", q.operand(1), "a submodule's work tree is deleted with its changes")
		}
	case "foreach":
		words := p.operands[1:]
		for len(words) > 0 && strings.HasPrefix(words[0].Text, "-") {
			words = words[1:]
		}
		if len(words) > 1 { // a single word is a text, which the shell analysis has run
			x.nestedWords(words, c, "git submodule foreach")
		}
	case "status", "summary", "":
	default:
		x.execute(c)
	}
}

func gitConfig(x *evaluation, c *command, args []shell.Word) {
	p := parseArgs(args, optSpec{short: "f", long: []string{"--file", "--type", "--default", "--blob"}})
	if len(p.operands) >= 2 && p.operand(0) != "get" && p.operand(0) != "list" {
		key := strings.ToLower(p.operand(len(p.operands) - 2))
		if strings.HasPrefix(key, "alias.") && strings.HasPrefix(lastText(p.operands), "!") || gitRuns(key) && key != "core.editor" && key != "core.pager" || key == "core.hookspath" {
			x.effect(c, Persistence, "git-config", key, "git will run this from now on")
			return
		}
		x.execute(c)
	}
}
