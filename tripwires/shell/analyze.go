// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Bounds of the analysis. Beyond one of them Analysis.Truncated is set.
const (
	maxLoops  = 256   // iterations of all unrolled loops together
	maxSteps  = 80000 // units of work: a statement is stepCost, and a half for each variable that it may have to copy
	stepCost  = 4
	maxBraces = 1024 // words out of one brace expansion
	maxText   = 64 << 10
	maxDepth  = 2000 // nested statements and words
	maxStages = 400  // of one pipeline
	maxTotal  = 4 << 20
	maxVia    = 24 // wrappers around one command
)

// Analyze lists what running src in a shell would start. It executes and reads nothing but what o.ReadScript gives it, never
// panics, and is deterministic. It reads src as bash and, where that may differ, as zsh too; commands that only zsh would
// start are marked. Text before a syntax error is analysed, since a shell runs it line by line.
func Analyze(src string, o Options) Analysis {
	var an Analysis
	if len(src) > MaxSource {
		an.TooBig, an.Why = true, "longer than 16 KiB"
		return an
	}
	in := newInterp(o, &an)
	if strings.Contains(src, "\x00") {
		an.Unparsable, an.Why = true, "holds a NUL byte"
	}
	in.top(cleanSource(src))
	return an
}

// AnalyzeArgv lists what starting argv without a shell would start: wrappers, sh -c and scripts are followed.
func AnalyzeArgv(argv []string, o Options) Analysis {
	words := make([]Word, 0, len(argv))
	for _, a := range argv {
		words = append(words, Word{Text: a, Known: true, Quoted: true})
	}
	return AnalyzeWords(words, o)
}

// AnalyzeWords is AnalyzeArgv for words that may be known in part: NUL stands in Text for what is not.
func AnalyzeWords(argv []Word, o Options) Analysis {
	var an Analysis
	in := newInterp(o, &an)
	words := make([]Word, 0, len(argv))
	size := 0
	for _, w := range argv {
		size += len(w.Text)
		parts := strings.Split(w.Text, "\x00")
		for i, p := range parts {
			parts[i] = cleanSource(p)
		}
		w.Text = strings.Join(parts, "\x00")
		words = append(words, w)
	}
	if size > MaxSource || len(words) > MaxWords {
		an.TooBig, an.Why = true, "longer than 16 KiB"
		return an
	}
	if len(words) > 0 {
		in.guard(func() { in.dispatch(in.root(), in.start(), call{argv: words}) })
	}
	return an
}

type interp struct {
	o        Options
	an       *Analysis
	zsh      bool // read as zsh does
	second   bool // this is the second reading
	depth    int
	steps    int
	loops    int
	words    int
	bytes    int
	temps    int
	pipes    int
	pipeOf   map[pipeKey]int
	nestedIn Pos // the command that runs the text being analysed
	seen     map[string]struct{}
	opaque   map[string]struct{}
}

// pipeKey tells pipelines apart; the same one keeps its number in both readings and in each pass of a loop.
type pipeKey struct {
	in  Pos
	at  uint
	via string
}

func newInterp(o Options, an *Analysis) *interp {
	return &interp{o: o, an: an, pipeOf: map[pipeKey]int{}, seen: map[string]struct{}{}, opaque: map[string]struct{}{}}
}

// guard runs f; a bug in it becomes "could not tell" and not a crash.
func (in *interp) guard(f func()) {
	defer func() {
		if recover() != nil {
			in.an.Truncated = true
			in.an.Opaque = append(in.an.Opaque, Opaque{Why: "the analysis gave up", Kind: "eval"})
		}
	}()
	f()
}

func (in *interp) top(src string) {
	p := parse(src, syntax.LangBash)
	if p.deep {
		in.an.TooBig, in.an.Why = true, "nested too deeply"
		return
	}
	var z parsed
	zsh := p.err != "" || readsOtherwise(src)
	if zsh {
		z = parse(src, syntax.LangZsh)
		if z.deep {
			in.an.TooBig, in.an.Why = true, "nested too deeply"
			return
		}
	}
	in.guard(func() { in.runTraps(in.root(), in.stmts(in.root(), []*state{in.start()}, p.stmts)) })
	if zsh && (z.err == "" || len(z.stmts) > 0) {
		in.zsh, in.second = true, true
		in.steps, in.loops, in.temps, in.depth = 0, 0, 0, 0
		in.guard(func() { in.runTraps(in.root(), in.stmts(in.root(), []*state{in.start()}, z.stmts)) })
		in.zsh, in.second = false, false
	}
	if p.err != "" && z.err != "" {
		in.an.Unparsable, in.an.Why = true, p.err
	}
	in.sortCommands()
}

// sortCommands puts the commands that only the zsh reading has behind the others; each reading is in source order.
func (in *interp) sortCommands() {
	slices.SortStableFunc(in.an.Commands, func(a, b Command) int {
		switch {
		case a.Zsh == b.Zsh:
			return 0
		case b.Zsh:
			return -1
		}
		return 1
	})
}

// root is the context of a source that is started as it stands.
func (in *interp) root() ctx { return ctx{} }

func (in *interp) start() *state {
	s := &state{in: stream{none: true}, oldpwd: val{s: unk, f: fUnset, name: "OLDPWD"}, arg0: unknown}
	s.cwd = unknown
	if in.o.Cwd != "" {
		s.cwd = text(in.o.Cwd)
	}
	s.open = true // what $1 and $@ are at the top is not known
	return s
}

// ctx is what surrounds the commands being analysed.
type ctx struct {
	via         []string
	env         []Assign // from prefixes and env NAME=value
	redirs      []Redir  // of enclosing compound commands
	frames      []string // functions and scripts being run
	forkMark    int      // how many of frames are outside the innermost pipe or background
	pipe        int
	stage       int
	host        string
	script      string // file that the text stands in
	mounts      [][2]string
	scripts     int // nested sources
	wraps       int // wrappers around
	empty       int // words in front that are taken to be empty
	inFunc      int
	inLoop      int
	priv        bool
	remote      bool
	background  bool
	noExec      bool
	conditional bool
	argsStdin   bool
	captured    bool
	sourced     bool
	found       bool // words hold names that find or xargs puts in
	condMark    int  // how many of frames are outside the innermost condition
}

// maybe notes that what follows may not run.
func (c *ctx) maybe() { c.conditional, c.condMark = true, len(c.frames) }

// under is c inside a wrapper or another context.
func (c ctx) under(via string) ctx {
	c.via = append(slices.Clip(c.via), via)
	if via[0] != '$' && via[0] != '<' && via[0] != '>' {
		c.wraps++
	}
	return c
}
