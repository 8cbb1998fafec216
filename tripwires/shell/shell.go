// SPDX-License-Identifier: Apache-2.0

// Package shell turns shell source into the list of simple commands that running it would start, with what is known of
// each word, its directory, its redirections, its standard input and the wrappers around it. It follows quoting,
// assignments, literal loops, cd, functions, substitutions, here-documents by consumer, and wrappers such as sudo, env,
// timeout, xargs, find -exec and sh -c. "Could not tell" is a value (Word.Known, Command.Opaque), never an error.
package shell

// Word is one expanded word (after brace expansion and field splitting).
type Word struct {
	// Text is the value when Known. Otherwise it holds the parts that are known, with \x00 where an unknown part stands:
	// "\x00/out" is an unknown directory's out, "src/\x00" something below src.
	Text  string
	Known bool
	// Glob is set when Text holds active (unquoted) pattern characters. GlobText then has literal characters that look
	// like pattern characters escaped by a backslash; otherwise GlobText is "".
	Glob     bool
	GlobText string
	// Quoted is set when any part of the word was quoted (so "" is an empty argument and not no argument).
	Quoted bool
	// Temp is set when the word is, or starts with, the output of a plain mktemp: Text then starts with TempPrefix.
	Temp bool
	// Unset is set when an unknown part comes from a variable that this source does not set (as in "$CACHE_ROOT/").
	Unset bool
	// Hidden is set when the value was computed through a decoder (base64 -d, xxd, rev ...) and could not be told.
	Hidden bool
	// Download is set when an unknown part comes out of a network client, as in python3 -c "$(curl ...)".
	Download bool
	// Flat is set when each unknown part is a plain piece of a name, such as a number, a date or a user name: it holds no
	// slash and no blank, so the word cannot climb out of the directory that its known part names.
	Flat bool
	// Split is set when an unknown part was not quoted: it may stand for several words, or for none.
	Split bool
	// Var names the first variable that made the word unknown, "" if none did.
	Var string
	Pos Pos

	setup bool   // an unknown part is set-up code that a known tool prints
	path  string // the whole is what this file holds
}

// TempPrefix stands for the fresh path that mktemp prints: strictly below /tmp, known to be ours.
const TempPrefix = "/tmp/tripline-mktemp"

// Pos is a position in the source, counted from 1; zero if the word was computed.
type Pos struct{ Line, Col uint }

// Redir is one redirection of a command.
type Redir struct {
	Op     string // ">", ">>", ">|", "<", "<>", "&>", "&>>", "<<<", "<<"
	FD     string // "" means the operator's default
	Target Word   // file operand; for <<< the text
	// Body is the text of a here-document (or here-string) as far as known.
	Body Word
}

// Assign is one NAME=value in front of a command, or an assignment on its own (Command with no Argv).
type Assign struct {
	Name   string
	Value  Word
	Append bool
}

// Command is one simple command that would be started. Builtins are commands too; a call of a function is not, its body is
// listed instead. Wrappers that are stripped (sudo, timeout, xargs, sh -c) are in Via only; find, ssh, docker and kubectl,
// scripts and project runners are listed beside what they start. Redirections of a group, a loop, a function call or a
// sh -c are listed with each command in it. A copy of a descriptor (2>&1) is not listed.
type Command struct {
	Argv   []Word   // program first; empty for a bare redirection or assignment
	Env    []Assign // assignments in front of it (and from env NAME=value)
	Redirs []Redir
	Cwd    Word     // directory it runs in; Known false if it could not be told
	Via    []string // wrappers and contexts, outermost first: "sudo", "xargs", "find -exec", "bash -c", "ssh host", "$()"
	Pos    Pos
	Stage  int // index within its pipeline, 0 = first
	Pipe   int // id of its pipeline; commands with the same id > 0 are joined left to right by |
	// Stdin is the known text on standard input (here-document, here-string, echo or printf piped in); Known false otherwise.
	Stdin Word
	// StdinNone is true when nothing is piped or redirected in.
	StdinNone bool
	// ArgsFromStdin is true when arguments not listed in Argv come from data (xargs without known input): Argv is what is known.
	ArgsFromStdin bool
	// Remote is true when the command runs on another machine or in a container (ssh host CMD, docker exec): its paths
	// are not this machine's. Host holds the target when known.
	Remote bool
	Host   string
	// Mounts lists host:container pairs of docker run -v and --mount, when Remote.
	Mounts [][2]string
	// Privileged is true below sudo, doas, su, pkexec, run0.
	Privileged bool
	// Background is true when it is started with & (or nohup, setsid ...).
	Background bool
	// NoExec is true when the shell only checks syntax (bash -n).
	NoExec bool
	// LinkedBefore is true when the same source makes links or mounts before this command.
	LinkedBefore bool
	// Conditional is true when the command may not run (if, &&, ||, loop of unknown count). It is judged as if it ran.
	Conditional bool
	// Zsh is set when only zsh would read the source this way.
	Zsh bool
	// Exported holds the variables that this source exported before the command, by name. The exports are commands of
	// their own as well.
	Exported []Assign
	// Script is the path of the script file that the command stands in, "" if it stands in the source itself or in a file
	// that the source wrote.
	Script string
}

// Opaque is something that would run but could not be read.
type Opaque struct {
	Why  string // short, never quotes content: "program name is computed", "eval of an unknown text", "script could not be read"
	Kind string // "program", "eval", "script", "stdin-shell", "interpreter"
	Via  []string
	Pos  Pos
	// Argv is the command that runs it, as far as known.
	Argv []Word
	// Download is true when the text comes out of a network client (curl | sh, sh <(curl), eval "$(wget -O- ...)").
	Download bool
	// Absent is true when the script was looked for and is not there.
	Absent bool
	// Partial is true when the known parts of the text were analysed, and unknown words stand in it.
	Partial bool
	// Remote is true when it would run on another machine or in a container.
	Remote bool
	// Script is the path of the script file that it stands in, as in Command.
	Script string
}

// Analysis is the result of Analyze.
type Analysis struct {
	Commands []Command // in source order, loops unrolled, wrappers stripped
	Opaque   []Opaque
	// Unparsable is set when neither reading of the source is valid shell; Why then says where, without quoting it.
	Unparsable bool
	// TooBig is set when the source is beyond the parser's caps (bytes or nested openers): nothing was analysed.
	TooBig bool
	Why    string
	// ForkBomb is set when a function starts itself in the background or pipes into itself.
	ForkBomb bool
	// Truncated is set when an unrolling bound was met (loops, brace expansion): what is listed is not all.
	Truncated bool
	// Computed reports that some text was computed through a decoder (for the trace).
	Computed bool
}

// Caps of the parser (see Analyze): beyond them a command line is not parsed at all.
const (
	MaxSource  = 16 << 10 // bytes
	MaxOpeners = 200      // (, {, $(, `, <<, and the like, one inside the other
	MaxWords   = 4096     // words of all commands together after expansion
	MaxScript  = 256 << 10
	MaxDepth   = 8 // nested sh -c, eval, scripts, functions
)

// Options are what the analysis may know of the place where the source runs.
type Options struct {
	Cwd  string // absolute directory; "" = unknown
	Home string // value of ~ and $HOME; "" = unknown
	User string // value of ~USER that equals Home; may be ""
	// ReadScript reads a script file that is about to run (sh FILE, source FILE, ./FILE): absolute path in, source out. nil or
	// an error = could not be read; one that wraps fs.ErrNotExist makes the Opaque Absent. The caller bounds it and remembers
	// it. It is called for shell operands and for programs given by a path outside the system's directories, also if they
	// turn out to be no shell scripts.
	ReadScript func(path string) (string, error)
}
