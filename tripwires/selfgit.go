// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// gitWriters are verbs of git that change files of the work tree, or make some.
var gitWriters = wordSet("checkout", "restore", "reset", "clean", "rm", "mv", "clone", "worktree", "submodule", "init", "apply", "stash", "pull", "merge", "rebase",
	"switch", "archive", "bundle", "cherry-pick", "revert", "read-tree", "checkout-index")

// judgeGitOwn holds the floor for protected files as operands of git, and as a whole work tree.
func (x *evaluation) judgeGitOwn(c *command) {
	if c.Remote {
		return
	}
	at := *c
	args := c.args
	for len(args) > 1 && strings.HasPrefix(args[0].Text, "-") {
		switch args[0].Text {
		case "-C":
			dir := args[1]
			if strings.HasPrefix(dir.Text, "~/") && len(x.homes) > 0 {
				dir.Text = x.homes[0] + dir.Text[1:]
			}
			at.Cwd = shell.Word{Text: x.paths.Abs(at.Cwd.Text, dir.Text), Known: dir.Known && at.Cwd.Known}
			args = args[2:]
		case "-c", "--git-dir", "--work-tree", "--namespace", "--exec-path", "--config-env":
			args = args[2:]
		default:
			args = args[1:]
		}
	}
	if len(args) == 0 || !gitWriters[args[0].Text] || hasWord(c, "--cached", "-n", "--dry-run") && (args[0].Text == "rm" || args[0].Text == "clean") {
		return
	}
	verb, args := args[0].Text, args[1:]
	for _, w := range args {
		for _, part := range fileParts(w) {
			if x.changesOwn(&at, part) {
				return
			}
			for _, l := range x.locate(&at, part) {
				if l.res.Holds != "" && (verb == "rm" || verb == "mv") && l.place != string(paths.System) {
					x.tamper(c, &l, "protected files lie below it")
					return
				}
			}
		}
	}
	if len(operands(args)) > 0 && verb != "reset" && verb != "stash" && verb != "apply" || verb == "clone" || verb == "worktree" || verb == "init" {
		return
	}
	for _, l := range x.locateTarget(&at, shell.Word{Text: ".", Known: true}) {
		if l.place == string(paths.Tripline) || x.holdsDirectly(&l) && !slices.Contains(x.paths.Roots(), l.abs[0]) {
			x.tamper(c, &l, "protected files are in this work tree")
		}
	}
}
