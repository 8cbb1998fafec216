// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/paths"
	"github.com/tripline-sh/tripline/tripwires/shell"
)

// onlyRead are programs, beside the harmless ones, that leave the files they are given as they are.
var onlyRead = wordSet("code", "cursor", "open", "xdg-open", "gh", "glab", "ssh", "ssh-add", "ssh-copy-id", "auditctl", "tripline", daemonName, "tripline-hook", "yamllint", "jsonlint",
	"source", ".", "xargs", "parallel", "watch", "timeout", "systemd-analyze", "getfacl", "lsattr", "mosh", "npm", "pnpm", "yarn", "docker", "podman", "sha3sum", "zipinfo",
	"pbcopy", "delta", "glow", "exiftool", "vimdiff", "sudo", "doas")

// ownJudges are programs whose table looks at what they write.
var ownJudges = wordSet("rm", "grm", "unlink", "rmdir", "shred", "srm", "gshred", "wipe", "trash", "trash-put", "rmtrash", "rimraf", "del-cli", "del", "find", "gfind", "fd", "fdfind",
	"truncate", "gtruncate", "mv", "gmv", "cp", "gcp", "ln", "gln", "link", "install", "ginstall", "dd", "gdd", "tee", "gtee", "sponge", "sed", "gsed", "touch", "mkdir",
	"tar", "gtar", "bsdtar", "rsync", "scp", "sftp", "git", "chmod", "chown", "chgrp", "gchmod", "gchown", "chattr", "chflags", "setfacl", "mount", "umount", "kill", "curl", "wget",
	"awk", "gawk", "mawk", "nawk", "nc", "ncat", "netcat", "socat", "claude", "codex", "gemini", "cursor-agent", "copilot", "opencode", "qwen", "aider", "amp", "goose",
	"crush", "droid", "auggie", "apply_patch", "applypatch")

// outOptions are the options by which programs that otherwise only read write a file.
var outOptions = map[string][]string{"sort": {"-o", "--output"}, "tree": {"-o"}, "base64": {"-o", "--output"}, "less": {"-o", "-O", "--log-file"}, "yq": {"-i", "--inplace"},
	"jq": {"-i", "--output"}}

// judgeOwnOperands holds the floor for programs that no table describes: one that is given a protected file, and is not known to
// leave its files alone, would change it.
func (x *evaluation) judgeOwnOperands(c *command) {
	if c.Remote || c.NoExec {
		return
	}
	x.judgeUnpacked(c)
	x.judgeFound(c)
	name := c.name
	switch {
	case name == "git":
		x.judgeGitOwn(c)
		return
	case name == "make" || name == "gmake":
		p := parseArgs(c.args, optSpec{short: "CfIjloW", long: []string{"--directory", "--file"}})
		for _, d := range p.all("-C", "--directory") {
			if !p.has("-n", "--dry-run") {
				x.worksAmongOwn(c, d)
			}
		}
	case ownJudges[name], onlyRead[name], shells[name]:
		return
	case harmless[name], outOptions[name] != nil:
		x.judgeReaderOutput(c)
		return
	case hasWord(c, "--check", "--dry-run", "--list-different", "--stdout") || (name == "gzip" || name == "xz" || name == "zstd" || name == "bzip2") && hasWord(c, "-c", "-l", "-t", "-dc"):
		return
	case languageOf(name) != "" && hasWord(c, "json.tool"):
		return
	}
	args := c.args
	switch name {
	case "zip":
		if !hasWord(c, "-m", "--move", "-rm", "-mr") {
			args = firstOperand(args)
		}
	case "aws", "gsutil", "gcloud", "rclone", "kubectl": // they copy the last operand's way
		args = args[max(len(args)-1, 0):]
	}
	for _, w := range args {
		for _, part := range fileParts(w) {
			if x.changesOwn(c, part) {
				return
			}
		}
	}
}

// worksAmongOwn asks where a program would work among protected files.
func (x *evaluation) worksAmongOwn(c *command, dir shell.Word) {
	for _, l := range x.locateTarget(c, dir) {
		if l.place == string(paths.Tripline) || x.holdsDirectly(&l) {
			x.unknown("target", "a program would work among protected files", c.Via)
		}
	}
}

func firstOperand(args []shell.Word) []shell.Word {
	if i := slices.IndexFunc(args, func(w shell.Word) bool { return !strings.HasPrefix(w.Text, "-") }); i >= 0 {
		return args[i : i+1]
	}
	return nil
}

// fileParts are the parts of a word that may name a file: the word, what follows "=", what is glued to an option.
func fileParts(w shell.Word) []shell.Word {
	t := w.Text
	if !pathLike(t) {
		return nil
	}
	var out []shell.Word
	if !strings.HasPrefix(t, "-") {
		out = append(out, w)
	} else if i := strings.IndexAny(t, "/~"); i > 1 {
		out = append(out, subWord(w, t[i:]))
	}
	if _, rest, ok := strings.Cut(t, "="); ok && rest != "" {
		out = append(out, subWord(w, rest))
	}
	return out
}

// changesOwn adds a floor finding if a word names something protected.
func (x *evaluation) changesOwn(c *command, w shell.Word) bool {
	if rest, ok := strings.CutPrefix(w.Text, "~/"); ok && len(x.homes) > 0 {
		w.Text = x.homes[0] + "/" + rest
	}
	for _, l := range x.locateTarget(c, w) {
		if l.place == string(paths.Tripline) {
			x.tamper(c, &l, "a program that may change it is given a protected file")
			return true
		}
	}
	return false
}

func (x *evaluation) tamper(c *command, l *located, note string) {
	f := l.finding(SelfTamper)
	f.Place, f.form, f.Note = string(paths.Tripline), "settings", note
	f.Program, f.Via, f.cmd, f.privileged = c.name, c.Via, c.index, c.Privileged
	x.add(f)
}

// judgeReaderOutput covers the few options by which a reader writes.
func (x *evaluation) judgeReaderOutput(c *command) {
	opts := outOptions[c.name]
	inPlace := slices.Contains(opts, "-i") && hasWord(c, opts...)
	for i, w := range c.args {
		name, val, eq := strings.Cut(w.Text, "=")
		switch {
		case inPlace:
			x.changesOwn(c, w)
		case slices.Contains(opts, name) && eq:
			x.changesOwn(c, subWord(w, val))
		case slices.Contains(opts, w.Text) && i+1 < len(c.args):
			x.changesOwn(c, c.args[i+1])
		case (c.name == "uniq" || c.name == "xxd") && i > 0 && i == len(c.args)-1 && len(operands(c.args)) > 1:
			x.changesOwn(c, w)
		}
	}
}

func operands(args []shell.Word) []shell.Word {
	return slices.DeleteFunc(slices.Clone(args), func(w shell.Word) bool { return strings.HasPrefix(w.Text, "-") })
}

// judgeUnpacked covers programs that put files whose names they do not show into a directory.
func (x *evaluation) judgeUnpacked(c *command) {
	here := shell.Word{Text: ".", Known: true}
	var dirs []shell.Word
	var members []shell.Word // what is unpacked, if that is said
	switch c.name {
	case "tar", "gtar", "bsdtar":
		p := parseArgs(c.args, optSpec{short: "fCTXbgHIKLNVF", long: []string{"--file", "--directory", "--exclude", "--checkpoint-action", "--to-command", "--use-compress-program", "--transform", "--strip-components"}})
		bundle := ""
		if len(c.args) > 0 && !strings.HasPrefix(c.args[0].Text, "-") {
			bundle = c.args[0].Text
		}
		if !p.has("-x", "--extract", "--get") && !strings.Contains(bundle, "x") || p.has("-O", "--to-stdout") {
			return
		}
		members = p.operands
		if bundle != "" {
			members = members[min(1+strings.Count(bundle, "f"), len(members)):]
		}
		dirs = p.all("-C", "--directory")
	case "unzip":
		p := parseArgs(c.args, optSpec{short: "dxP"})
		if p.has("-l", "-p", "-t", "-Z", "-z", "-v") {
			return
		}
		if len(p.operands) > 1 {
			members = p.operands[1:]
		}
		dirs = p.all("-d")
	case "7z", "7za", "7zr", "7zz":
		if len(c.args) == 0 || c.args[0].Text != "x" && c.args[0].Text != "e" {
			return
		}
		for _, w := range c.args {
			if dir, ok := strings.CutPrefix(w.Text, "-o"); ok {
				dirs = append(dirs, subWord(w, dir))
			}
		}
	case "cpio":
		p := parseArgs(c.args, optSpec{short: "DEFHIMORCl", long: []string{"--directory"}})
		if !p.has("-i", "--extract", "-p", "--pass-through") {
			return
		}
		if dirs = p.all("-D", "--directory"); p.has("-p", "--pass-through") {
			dirs = p.operands
		}
	case "patch":
		p := parseArgs(c.args, optSpec{short: "dipoBDFgrVxYz", long: []string{"--directory"}})
		if members = p.operands; p.has("--dry-run") {
			return
		}
		dirs = p.all("-d", "--directory")
	case "rsync":
		p := parseArgs(c.args, optSpec{short: "efBMT", long: []string{"--rsh", "--exclude", "--include", "--filter"}})
		if p.has("-n", "--dry-run") || len(p.operands) < 2 {
			return
		}
		dst := p.operands[len(p.operands)-1]
		if _, remote := remoteSpec(dst.Text); remote {
			return
		}
		for _, src := range p.operands[:len(p.operands)-1] {
			if strings.HasSuffix(src.Text, "/") {
				dirs = append(dirs, dst)
			} else {
				x.putInto(c, src, dst, strings.HasSuffix(dst.Text, "/") || x.isDirectory(c, dst), true)
			}
		}
		if len(dirs) == 0 {
			return
		}
	case "curl", "wget", "aria2c":
		x.judgeFetched(c)
		return
	default:
		return
	}
	if len(dirs) == 0 {
		dirs = []shell.Word{here}
	}
	for _, d := range dirs {
		if len(members) > 0 {
			for _, m := range members {
				x.putInto(c, literal(m.Text), d, true, true)
			}
			continue
		}
		x.fills(c, d)
	}
}

// judgeFetched covers files that are named by the address that they come from.
func (x *evaluation) judgeFetched(c *command) {
	p := parseArgs(c.args, optSpec{short: "PdoO", long: []string{"--output-dir", "--directory-prefix", "--dir", "--out", "--output"}})
	dir, there := p.value("--output-dir", "-P", "--directory-prefix", "-d", "--dir")
	if !there || c.name == "curl" && len(p.all("--output-dir")) == 0 {
		dir = shell.Word{Text: ".", Known: true}
	}
	if c.name == "curl" && !hasWord(c, "-O", "--remote-name", "--remote-name-all", "-OL", "-LO", "-sO", "-sSLO", "-fsSLO", "-OJ", "-JO", "-LOJ") {
		return
	}
	put := p.all("-o", "--out")
	if c.name != "aria2c" {
		put = nil
	}
	for _, w := range c.args {
		if strings.Contains(w.Text, "://") {
			u, _, _ := strings.Cut(w.Text, "?")
			put = append(put, literal(baseName(u)))
		}
	}
	for _, w := range put {
		x.putInto(c, w, dir, true, false)
	}
}

// putInto judges one thing that lands in a directory, with what is below it if deep is set.
func (x *evaluation) putInto(c *command, src, dst shell.Word, dir, deep bool) {
	for _, l := range x.locateTarget(c, into(src, dst, dir)) {
		if l.place == string(paths.Tripline) || deep && l.res.Holds != "" && l.place != string(paths.System) && x.holdsDirectly(&l) {
			x.tamper(c, &l, "something would be put over what is protected")
			return
		}
	}
}

// fills judges a directory into which files of unknown names go.
func (x *evaluation) fills(c *command, d shell.Word) {
	for _, l := range x.locateTarget(c, d) {
		switch {
		case l.place == string(paths.Tripline), x.holdsDirectly(&l):
			x.tamper(c, &l, "files of unknown names would be put among what is protected")
		case l.res.Holds != "" && l.place == string(paths.HomeRoot):
			x.unknown("target", "files of unknown names would be put above protected ones", c.Via)
		}
	}
}

// holdsDirectly reports whether protected files lie in the directory itself and not further below.
func (x *evaluation) holdsDirectly(l *located) bool {
	return slices.ContainsFunc(l.abs, func(p string) bool {
		return l.res.Holds != "" && path.Dir(l.res.Holds) == p || l.place != string(paths.System) && !slices.Contains(x.paths.Roots(), p) && len(x.guarded()[p]) > 0 && !slices.Contains(x.homes, p) && path.Base(p) != ".config"
	})
}

// judgeFound covers programs that are started for what find comes across.
func (x *evaluation) judgeFound(c *command) {
	if harmless[c.name] && len(outOptions[c.name]) == 0 || onlyRead[c.name] || c.name == "find" || c.name == "gfind" {
		return
	}
	var plan findPlan
	if up := x.findUpstream(c); up != nil {
		plan = planFind(up.args, len(up.args))
	} else if foundByFind(c) {
		var from *command
		for _, u := range x.cmds[:c.index] {
			if u.name == "find" || u.name == "gfind" {
				from = u
			}
		}
		if from == nil {
			return
		}
		end := slices.IndexFunc(from.args, func(w shell.Word) bool { return findActions[w.Text] })
		plan = planFind(from.args, max(end, 0))
	} else {
		return
	}
	for _, start := range plan.starts {
		for _, l := range x.locateTarget(c, start) {
			if l.place != string(paths.Tripline) && l.res.Holds == "" {
				continue
			}
			if l.place == string(paths.Tripline) || !plan.narrow || plan.loose || x.findsOwn(&l, plan.tests) {
				x.tamper(c, &l, "protected files are among what is found")
				return
			}
		}
	}
}

// findsOwn reports whether a name test matches something protected below a directory.
func (x *evaluation) findsOwn(l *located, tests []string) bool {
	for _, p := range append(x.paths.Guarded(), l.res.Holds) {
		if !slices.ContainsFunc(l.abs, func(dir string) bool { return within(dir, p) }) {
			continue
		}
		for _, t := range tests {
			if ok, err := path.Match(baseName(t), path.Base(p)); ok || err != nil {
				return true
			}
		}
	}
	return false
}
