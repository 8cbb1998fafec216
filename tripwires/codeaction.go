// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"path"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/tripwires/shell"
)

// codeAction is what a call of a known function does: 'd' deletes, 's' starts a shell text or an argument list, 'v' starts an
// argument vector, 'c' makes something empty, 'e' runs program text, 'w' writes a file, 'r' reads one, 'm' moves one over another, 'p' changes permissions.
type codeAction struct {
	kind      byte
	recursive bool
	copies    bool // 'm' that leaves its source
	all       bool // every argument is a target
	skip      int  // arguments in front of the argument vector
}

// codeActions finds what a call does, by language. Names that are common methods of harmless things count only behind the
// module that makes them dangerous.
func codeActions(lang string, call codeCall) (codeAction, bool) {
	qualifier := strings.TrimSuffix(strings.TrimSuffix(call.name, call.base), ".")
	if i := strings.LastIndexByte(qualifier, '.'); i >= 0 {
		qualifier = qualifier[i+1:]
	}
	computed := strings.HasPrefix(call.name, ".")
	free := call.name == call.base
	if a, ok := moveAction(call, qualifier, free); ok {
		return a, true
	}
	if a, ok := openAction(lang, call); ok {
		return a, true
	}
	if makers[call.base] {
		return codeAction{kind: 'c'}, true // its arguments count only among our own files
	}
	switch lang {
	case "python":
		return pythonAction(call, qualifier, free, computed)
	case "js":
		return jsAction(call, qualifier, free, computed)
	case "perl":
		switch call.base {
		case "unlink", "rmdir":
			return codeAction{kind: 'd', all: true}, true
		case "rmtree", "remove_tree":
			return codeAction{kind: 'd', recursive: true, all: true}, true
		case "system", "exec":
			return codeAction{kind: 's'}, true
		}
	case "ruby":
		switch call.base {
		case "rm_rf", "rm_r", "rmtree", "remove_dir", "remove_entry", "remove_entry_secure":
			return codeAction{kind: 'd', recursive: true}, true
		case "rm", "rm_f", "remove":
			return codeAction{kind: 'd'}, qualifier == "FileUtils"
		case "delete", "unlink", "rmdir":
			return codeAction{kind: 'd', all: true}, qualifier == "File" || qualifier == "Dir"
		case "system", "exec", "spawn", "popen", "capture2", "capture2e", "capture3", "popen3":
			return codeAction{kind: 's'}, true
		case "write", "binwrite":
			return codeAction{kind: 'w'}, qualifier == "File" || qualifier == "IO"
		case "read", "binread", "readlines":
			return codeAction{kind: 'r'}, qualifier == "File" || qualifier == "IO"
		case "eval":
			return codeAction{kind: 'e'}, free
		}
	case "php":
		switch call.base {
		case "unlink", "rmdir":
			return codeAction{kind: 'd'}, true
		case "system", "exec", "shell_exec", "passthru", "popen", "proc_open":
			return codeAction{kind: 's'}, free
		case "file_put_contents":
			return codeAction{kind: 'w'}, true
		case "file_get_contents", "readfile":
			return codeAction{kind: 'r'}, true
		case "eval":
			return codeAction{kind: 'e'}, true
		}
	case "lua":
		switch call.name {
		case "os.execute", "io.popen":
			return codeAction{kind: 's'}, true
		case "os.remove":
			return codeAction{kind: 'd'}, true
		}
	case "go":
		switch call.name {
		case "exec.Command":
			return codeAction{kind: 'v'}, true
		case "exec.CommandContext":
			return codeAction{kind: 'v', skip: 1}, true
		case "os.RemoveAll":
			return codeAction{kind: 'd', recursive: true}, true
		case "os.Remove", "syscall.Unlink", "syscall.Rmdir":
			return codeAction{kind: 'd'}, true
		case "os.WriteFile", "os.Create", "os.Truncate":
			return codeAction{kind: 'w'}, true
		}
	case "awk", "r":
		if call.base == "system" || call.base == "shell" {
			return codeAction{kind: 's'}, true
		}
		if call.base == "unlink" && lang == "r" {
			return codeAction{kind: 'd', recursive: true}, true
		}
	case "applescript", "tcl":
		return codeAction{}, false
	}
	return codeAction{}, false
}

// makers are calls, in whatever language, that make an empty file, a directory, a FIFO or a device.
var makers = wordSet("touch", "mknod", "mkfifo", "mkdir", "makedirs", "mkdirs", "mkdirp", "mkdir_p", "makedir", "make_path", "mkpath", "mkdirSync", "ensureDirSync", "ensureFileSync",
	"outputFileSync", "Mkdir", "MkdirAll", "Mkfifo", "Mknod")

// openAction covers calls that open a file for writing by a flag or by their name.
func openAction(lang string, call codeCall) (codeAction, bool) {
	mode := ""
	if len(call.args) > 1 {
		mode = call.args[1].text
	}
	flagged := slices.ContainsFunc(call.text, func(t codeToken) bool {
		return t.kind == 'n' && (strings.Contains(t.text, "O_CREAT") || strings.Contains(t.text, "O_WRONLY") || strings.Contains(t.text, "O_RDWR") || strings.Contains(t.text, "O_TRUNC"))
	})
	writes := strings.ContainsAny(mode, "wax+")
	switch {
	case flagged && (call.base == "open" || call.base == "openSync" || call.base == "sysopen" || call.name == "os.OpenFile" || call.name == "syscall.Open"):
		writes = true
	case lang == "js" && (call.base == "openSync" || call.base == "open" && strings.Contains(call.name, "fs")):
	case lang == "js" && (call.base == "appendFileSync" || call.base == "createWriteStream" || call.base == "writeTextFileSync" || call.base == "writeTextFile"),
		lang == "js" && call.base == "appendFile" && call.name != call.base:
		writes = true
	case lang == "lua" && call.name == "io.open", lang == "php" && call.base == "fopen":
	case lang == "go" && call.name == "os.OpenFile": // with a number for its flags
		return codeAction{}, false
	default:
		return codeAction{}, false
	}
	return codeAction{kind: 'w'}, writes
}

// moveAction covers moves, copies and changes of mode, whose names are much the same in every language.
func moveAction(call codeCall, qualifier string, free bool) (codeAction, bool) {
	files := free && len(call.args) == 2
	switch qualifier {
	case "os", "shutil", "fs", "promises", "fsp", "fse", "File", "FileUtils", "Deno":
		files = true
	}
	switch call.base {
	case "rename", "renames", "move", "mv", "Rename", "renameSync", "moveSync":
		return codeAction{kind: 'm'}, files || strings.HasSuffix(call.base, "Sync")
	case "replace":
		return codeAction{kind: 'm'}, qualifier == "os"
	case "copy", "copy2", "copyfile", "copytree", "cp", "cp_r", "copyFile", "copyFileSync", "cpSync", "copySync", "symlink", "link", "symlinkSync", "linkSync":
		return codeAction{kind: 'm', copies: true}, files || strings.HasSuffix(call.base, "Sync")
	case "chmod", "chown", "chmodSync", "chownSync", "lchown":
		return codeAction{kind: 'p'}, qualifier == "os" || qualifier == "fs" || strings.HasSuffix(call.base, "Sync")
	}
	return codeAction{}, false
}

func pythonAction(call codeCall, qualifier string, free, computed bool) (codeAction, bool) {
	inOS := qualifier == "os" || computed
	switch call.base {
	case "rmtree":
		return codeAction{kind: 'd', recursive: true}, true
	case "remove":
		return codeAction{kind: 'd'}, qualifier == "os" || free && len(call.args) == 1
	case "unlink":
		if len(call.args) == 0 {
			return codeAction{kind: 'd'}, true // Path(...).unlink()
		}
		return codeAction{kind: 'd'}, qualifier == "os" || free
	case "rmdir", "removedirs":
		return codeAction{kind: 'd'}, true
	case "system":
		return codeAction{kind: 's'}, len(call.args) > 0
	case "popen", "getoutput", "getstatusoutput":
		return codeAction{kind: 's'}, true
	case "run", "call", "check_call", "check_output", "Popen":
		return codeAction{kind: 's'}, qualifier == "subprocess" || qualifier == "sp" || call.base == "Popen" || call.base == "check_call" || call.base == "check_output" ||
			free && len(call.args) > 0 && call.args[0].isList || computed && len(call.args) > 0 && call.args[0].isList
	case "create_subprocess_shell":
		return codeAction{kind: 's'}, true
	case "create_subprocess_exec":
		return codeAction{kind: 'v'}, true
	case "execl", "execlp", "execle", "spawnl", "spawnlp":
		skip := 1
		if strings.HasPrefix(call.base, "spawn") {
			skip = 2
		}
		return codeAction{kind: 'v', skip: skip}, inOS
	case "posix_spawn", "posix_spawnp":
		return codeAction{kind: 'v', skip: 1}, inOS
	case "execv", "execvp", "execve", "execvpe":
		if len(call.args) > 1 {
			return codeAction{kind: 'v', skip: 1}, inOS
		}
		return codeAction{kind: 's'}, inOS
	case "spawn":
		return codeAction{kind: 's'}, qualifier == "pty"
	case "truncate":
		return codeAction{kind: 'w'}, qualifier == "os"
	case "open":
		write := len(call.args) > 1 && strings.ContainsAny(call.args[1].text, "wxa+")
		if write {
			return codeAction{kind: 'w'}, true
		}
		return codeAction{kind: 'r'}, true
	case "exec", "eval":
		return codeAction{kind: 'e'}, free || qualifier == "builtins"
	}
	return codeAction{}, false
}

func jsAction(call codeCall, qualifier string, free, computed bool) (codeAction, bool) {
	inFS := qualifier == "fs" || qualifier == "promises" || qualifier == "fsp" || qualifier == "fse" || free || computed
	switch call.base {
	case "rmSync", "unlinkSync", "rmdirSync":
		return codeAction{kind: 'd'}, true
	case "removeSync", "emptyDirSync", "rimraf", "rimrafSync":
		return codeAction{kind: 'd', recursive: true}, true
	case "rm", "unlink", "rmdir":
		return codeAction{kind: 'd'}, inFS && len(call.args) > 0
	case "remove":
		return codeAction{kind: 'd'}, qualifier == "Deno" || qualifier == "fse"
	case "Command":
		return codeAction{kind: 's'}, qualifier == "Deno"
	case "execSync", "execFileSync", "spawnSync", "execFile", "spawn":
		return codeAction{kind: 's'}, true
	case "exec":
		return codeAction{kind: 's'}, qualifier == "child_process" || qualifier == "cp" || free || computed && len(call.args) > 0 && call.args[0].known
	case "writeFileSync", "truncateSync":
		return codeAction{kind: 'w'}, true
	case "writeFile", "truncate":
		return codeAction{kind: 'w'}, inFS
	case "readFileSync":
		return codeAction{kind: 'r'}, true
	case "readFile":
		return codeAction{kind: 'r'}, inFS
	case "eval", "Function":
		return codeAction{kind: 'e'}, free && len(call.args) == 1
	}
	return codeAction{}, false
}

// codePath is a path as a program text means it: no shell expands it, but ~ came out of a call that does.
func (x *evaluation) codePath(t string) shell.Word {
	if (t == "~" || strings.HasPrefix(t, "~/")) && len(x.homes) > 0 {
		t = path.Join(x.homes[0], strings.TrimPrefix(t, "~"))
	}
	return literal(t)
}

// codeShell judges a text that a program hands to a shell.
func (x *evaluation) codeShell(c *command, v codeValue) {
	if v.known {
		x.nested(v.text, c, "sh -c")
		return
	}
	// The first word may be known and harmless: git log of something computed.
	if prog, _, ok := strings.Cut(strings.TrimSpace(v.text), " "); ok && !strings.Contains(prog, "\x00") && quietProgram(prog) && !strings.ContainsAny(v.text, ";|&`$>\n") {
		return
	}
	x.opaqueCode(c, "a program text starts a command that is computed")
}

// quietProgram reports whether a program does no harm whatever its arguments are.
func quietProgram(name string) bool {
	return harmless[name] && name != "env" && name != "command" && name != "builtin"
}

// codeStart judges a call that takes a shell text, an argument list, or a program and a list.
func (x *evaluation) codeStart(c *command, call codeCall) {
	if len(call.args) == 0 {
		return
	}
	first := call.args[0]
	named, hasNamed := listNamed(call, "args", "js")
	switch {
	case hasNamed && first.known && !first.isList:
		x.codeArgv(c, []codeValue{first, named})
	case first.isList:
		x.codeArgv(c, call.args[:1])
	case len(call.args) > 1 && call.args[1].isList && first.known:
		x.codeArgv(c, []codeValue{first, call.args[1]})
	case first.known && len(call.args) > 1 && slices.ContainsFunc(call.args[1:], func(v codeValue) bool { return v.known && !v.isList }) && !strings.ContainsAny(first.text, " \t;|&"):
		x.codeArgv(c, call.args)
	default:
		x.codeShell(c, first)
	}
}

// codeArgv judges an argument vector given as values. Parts that are computed stay unknown: git show of something is git show.
func (x *evaluation) codeArgv(c *command, args []codeValue) {
	var argv []shell.Word
	for _, a := range args {
		switch {
		case a.isList:
			for _, t := range a.list {
				argv = append(argv, shell.Word{Text: t, Known: !strings.Contains(t, "\x00"), Quoted: true})
			}
		case a.known:
			argv = append(argv, shell.Word{Text: a.text, Known: true, Quoted: true})
		case len(argv) == 0:
			argv = append(argv, shell.Word{Text: "\x00", Quoted: true})
		}
	}
	if len(argv) == 0 {
		return
	}
	if !argv[0].Known {
		x.opaqueCode(c, "a program text starts a command that is computed")
		return
	}
	x.nestedWords(argv, c, "exec")
}

// judgeExfiltration looks for a program text that both has the environment and speaks to the network, or joins a shell to a
// socket.
func (x *evaluation) judgeExfiltration(c *command, toks []codeToken) {
	var env, sends, socket, spawns, dup bool
	for i, t := range toks {
		if t.kind != 'n' {
			continue
		}
		switch t.text {
		case "environ", "ENV", "getenv", "env":
			if t.text == "env" && (i < 2 || toks[i-1].text != "." || toks[i-2].text != "process") {
				continue
			}
			// One variable by name is configuration; all of them are secrets.
			env = env || i+1 >= len(toks) || toks[i+1].text != "[" && toks[i+1].text != "." && toks[i+1].text != "("
		case "urlopen", "post", "put", "HTTPConnection", "HTTPSConnection", "fetch", "sendall", "Request", "post_form":
			sends = true
		case "socket", "Socket", "TCPSocket", "createConnection", "connect", "fsockopen":
			socket = true
		case "pty", "spawn", "Popen", "exec", "call", "system", "proc_open":
			spawns = true
		case "dup2", "fileno", "pipe", "STDIN", "TCPSocket.new", "$sock":
			dup = true
		}
	}
	if env && sends {
		x.effect(c, NetworkSend, "secret", "", "the environment would be sent to the network")
	}
	if socket && spawns && dup {
		x.effect(c, NetworkSend, "reverse-shell", "", "a program would be joined to the network")
	}
}
