// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"path"
	"strings"
)

// quoteText puts a text in single quotes.
func quoteText(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// quoteWord makes source text of a word.
func quoteWord(w Word) string {
	if !w.Known {
		return strings.ReplaceAll(w.Text, unk, srcUnknown)
	}
	return quoteText(w.Text)
}

// output models what programs write to standard output.
func (in *interp) output(c ctx, s *state, k call, name string) {
	if !c.captured && name != "tee" {
		return
	}
	args := k.argv[1:]
	v := in.programOutput(c, s, name, args)
	if c.argsStdin {
		v = v.lost()
	}
	s.out = bounded(s.out.add(v.loose()))
}

// input is what the program reads: its files, else standard input.
func (in *interp) input(s *state, files []Word) val {
	if len(files) == 0 {
		return s.in.v.orUnknown(s.in.none)
	}
	var v val
	for _, f := range files {
		if f.Text == "-" {
			v = v.add(s.in.v.orUnknown(s.in.none))
			continue
		}
		v = v.add(in.content(s, f))
	}
	return v
}

func operands(args []Word, withValue string) []Word {
	var out []Word
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a.Text == "--" && a.Known:
			return append(out, args[i+1:]...)
		case len(a.Text) > 1 && a.Text[0] == '-' && a.Known:
			if len(a.Text) == 2 && strings.Contains(withValue, a.Text[1:]) {
				i++
			}
		default:
			out = append(out, a)
		}
	}
	return out
}

func (in *interp) programOutput(c ctx, s *state, name string, args []Word) val {
	if v, ok := in.decode(s, name, args); ok {
		return v
	}
	if isDownloader(name, args) {
		return val{s: unk, f: fDownload}
	}
	switch name {
	case "echo":
		return echo(args)
	case "printf":
		return printf(args)
	case "cat", "gcat", "bat", "batcat", "sponge", "pv", "unbuffer":
		if len(args) > 0 && strings.HasPrefix(args[0].Text, "-") && args[0].Text != "-" && name != "pv" {
			return spoiled(in.input(s, operands(args, "")))
		}
		return in.input(s, operands(args, "L"))
	case "tee":
		v := in.input(s, nil)
		appended := false
		for _, a := range args {
			appended = appended || a.Text == "-a" || a.Text == "--append"
		}
		for _, f := range operands(args, "") {
			in.write(s, f, v, appended)
		}
		if !c.captured {
			return val{}
		}
		return v
	case "mktemp":
		return in.mktemp(s, args)
	case "basename", "dirname", "realpath", "readlink", "greadlink", "grealpath":
		return in.pathOutput(s, name, args)
	case "date", "nproc", "hostname", "arch", "uname", "wc", "uuidgen", "stat", "du", "cksum", "md5sum", "sha1sum", "sha256sum", "shasum",
		"tput", "getconf", "pgrep", "pidof", "lsof":
		switch name {
		case "date":
			for _, a := range args {
				if strings.HasPrefix(a.Text, "+") && strings.ContainsAny(a.Text, "/ D\x00") {
					return unknown
				}
			}
			if len(args) == 0 {
				return unknown
			}
		case "wc", "stat", "du", "cksum", "md5sum", "sha1sum", "sha256sum", "shasum", "pgrep", "pidof", "lsof", "uname":
			if len(args) > 1 || len(args) == 1 && name != "uname" && name != "wc" {
				return unknown
			}
		}
		return val{s: unkFlat}
	case "whoami", "logname", "id":
		if name == "id" && (len(args) != 1 || args[0].Text != "-un") {
			return val{s: unkFlat}
		}
		if in.o.User != "" {
			return text(in.o.User + "\n")
		}
		return val{s: unkFlat}
	case "git":
		return gitOutput(args)
	case "seq":
		return seq(args)
	case "which":
		return locate(args)
	case "yes":
		return unknown
	case "ssh-agent", "dircolors", "keychain", "direnv", "pyenv", "rbenv", "nodenv", "goenv", "jenv", "starship", "zoxide", "fnm", "mise",
		"rtx", "asdf", "opam", "luarocks", "conda", "mamba", "micromamba", "brew", "thefuck", "atuin", "mcfly", "minikube", "docker-machine",
		"register-python-argcomplete", "lesspipe", "gpg-agent", "hub", "gh", "kubectl", "helm", "npm", "rustup", "uv", "pip", "poetry", "volta",
		"nvm", "sdk", "devbox", "vfox", "fzf", "jump", "navi", "perl":
		if printsSetup(name, args) {
			return val{s: unkInit}
		}
	}
	v := unknown
	if !s.in.none {
		v.f |= s.in.v.f & (fDownload | fHidden)
	}
	for _, a := range args {
		if p, ok := s.abs(a); ok {
			if f, ok := s.files[p]; ok {
				for _, t := range f.texts {
					v.f |= t.f & (fDownload | fHidden)
				}
			}
		}
	}
	return v
}

// printsSetup tells that a known tool prints the code which a shell's start file is meant to evaluate.
func printsSetup(name string, args []Word) bool {
	if len(args) == 0 {
		return name == "ssh-agent" || name == "dircolors" || name == "lesspipe"
	}
	first := args[0].Text
	for _, a := range args {
		if !a.Known {
			return false
		}
	}
	switch name {
	case "ssh-agent", "keychain", "gpg-agent", "dircolors", "lesspipe", "register-python-argcomplete":
		return true
	case "brew":
		return first == "shellenv"
	case "conda", "mamba", "micromamba":
		return strings.HasPrefix(first, "shell")
	case "minikube":
		return first == "docker-env" || first == "completion"
	case "thefuck":
		return strings.HasPrefix(first, "--alias") || first == "-a"
	case "perl":
		return first == "-I" || strings.HasPrefix(first, "-Mlocal::lib")
	}
	switch first {
	case "init", "hook", "env", "activate", "export", "completion", "completions", "shell", "generate-shell-completion", "--bash", "--zsh",
		"virtualenv-init", "gen-completions", "alias", "path", "shellenv":
		return name != "npm" || first == "completion"
	}
	return false
}

func gitOutput(args []Word) val {
	if len(args) > 0 && args[0].Text == "rev-parse" {
		for _, a := range args[1:] {
			if strings.HasPrefix(a.Text, "--show-") || strings.HasPrefix(a.Text, "--git-") || a.Text == "--abbrev-ref" ||
				strings.HasPrefix(a.Text, "--symbolic") || !a.Known {
				return unknown
			}
		}
		return val{s: unkFlat}
	}
	return unknown
}

func seq(args []Word) val {
	var n [3]int64
	if len(args) == 0 || len(args) > 3 {
		return unknown
	}
	for i, a := range args {
		x, w := digits(a.Text, 10, 9)
		if w == 0 || w != len(a.Text) {
			return unknown
		}
		n[i] = x
	}
	from, step, to := int64(1), int64(1), n[0]
	switch len(args) {
	case 2:
		from, to = n[0], n[1]
	case 3:
		from, step, to = n[0], n[1], n[2]
	}
	if step == 0 || (to-from)/step > maxBraces {
		return unknown
	}
	var sb strings.Builder
	for i := from; i <= to; i += step {
		sb.WriteString(itoa(int(i)) + "\n")
	}
	return text(sb.String())
}

// mktemp is the fresh path that mktemp makes, if it is in the usual place.
func (in *interp) mktemp(s *state, args []Word) val {
	template, inTmp := Word{}, false
	for i := 0; i < len(args); i++ {
		a := args[i].Text
		switch {
		case !args[i].Known && !args[i].Flat:
			return unknown
		case a == "-p" || strings.HasPrefix(a, "-p") || strings.HasPrefix(a, "--tmpdir="):
			return unknown
		case a == "--tmpdir":
			inTmp = true
		case a == "--suffix":
			i++
		case strings.HasPrefix(a, "--"):
		case len(a) > 1 && a[0] == '-':
			if strings.Contains(a, "t") {
				inTmp = true
			}
			if strings.ContainsAny(a, "u") {
				return unknown // only a name: anyone may make it
			}
			if strings.Contains(a, "p") {
				return unknown
			}
		default:
			template = args[i]
		}
	}
	t := template.Text
	if i := strings.LastIndexByte(t, '/'); i >= 0 && !inTmp {
		dir := path.Clean(t[:i+1])
		if strings.Contains(dir, unk) || dir != "/tmp" && dir != "/var/tmp" && !strings.HasPrefix(dir, "/tmp/") {
			return unknown
		}
	} else if t != "" && !inTmp {
		return val{s: unkFlat} // a name in the current directory
	} else if strings.Contains(t, "/") {
		return unknown
	}
	if v, ok := s.vars["TMPDIR"]; ok && (!v.v.known() || !strings.HasPrefix(path.Clean(v.v.s), "/tmp")) && template.Text == "" {
		return unknown
	}
	in.temps++
	name := TempPrefix
	if in.temps > 1 {
		name += "-" + itoa(in.temps)
	}
	return val{s: name + "\n", f: fTemp}
}

// pathOutput computes basename, dirname, realpath and readlink -f. Links are the engine's matter.
func (in *interp) pathOutput(s *state, name string, args []Word) val {
	ops := operands(args, "s")
	if len(ops) != 1 && !(name == "basename" && len(ops) == 2) {
		return unknown
	}
	v := ops[0].val()
	for _, a := range args {
		if strings.HasPrefix(a.Text, "-") && (name == "basename" || strings.Contains(a.Text, "relative")) && a.Text != "--" {
			return unknown
		}
	}
	if !v.known() {
		if name == "basename" {
			return val{s: unkFlat, f: v.f & (fHidden | fDownload | fUnset), name: v.name}
		}
		return v.lost()
	}
	switch name {
	case "basename":
		v.s = path.Base(v.s)
		if len(ops) == 2 && ops[1].Text != v.s {
			v.s = strings.TrimSuffix(v.s, ops[1].Text)
		}
		v.f &^= fTemp
	case "dirname":
		v.s = path.Dir(strings.TrimRight(v.s, "/") + strings.Repeat("/", b2i(strings.Trim(v.s, "/") == "")))
		v = v.temp()
	default:
		if name == "readlink" || name == "greadlink" {
			if len(args) < 2 {
				return unknown // the link's own text
			}
		}
		p, ok := s.abs(Word{Text: v.s, Known: true})
		if !ok {
			return unknown
		}
		v.s = p
		v = v.temp()
	}
	return v.add(text("\n"))
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
