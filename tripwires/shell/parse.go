// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"mvdan.cc/sh/v3/syntax"
)

// The parser is recursive and has no depth limit of its own, and a stack overflow ends the process. It reads its source
// through a pieceReader, which looks at the stack before each small piece and refuses to go on when it is too deep. This
// bounds the real nesting, whatever the text looks like, while any number of openers side by side costs nothing.
const (
	readPiece = 256
	// maxFrames is the deepest stack at which more source is handed out. One level of nesting costs the parser 6 to 18
	// frames, in arithmetic up to 50, so MaxOpeners levels of ordinary kinds pass.
	maxFrames = 6000
)

var errTooDeep = errors.New("nested too deeply")

type pieceReader struct {
	src  string
	off  int
	deep bool
}

func (r *pieceReader) Read(p []byte) (int, error) {
	if r.off >= len(r.src) {
		return 0, io.EOF
	}
	if deeperThan(maxFrames) {
		r.deep = true
		return 0, errTooDeep
	}
	n := copy(p[:min(len(p), readPiece)], r.src[r.off:])
	r.off += n
	return n, nil
}

func deeperThan(frames int) bool {
	var pc [1]uintptr
	return runtime.Callers(frames, pc[:]) > 0
}

// parsed is one reading of a source.
type parsed struct {
	stmts []*syntax.Stmt // those before the error, if there is one
	deep  bool           // refused: nested too deeply
	err   string         // where it stops being valid shell, without quoting it; "" if it does not
}

// parse reads src as lang. It never panics.
func parse(src string, lang syntax.LangVariant) (p parsed) {
	r := &pieceReader{src: src}
	defer func() {
		if recover() != nil {
			p.err = "the parser gave up"
		}
		p.deep = r.deep
	}()
	for stmt, err := range syntax.NewParser(syntax.Variant(lang)).StmtsSeq(r) {
		if err != nil {
			p.err = where(err)
			break
		}
		p.stmts = append(p.stmts, stmt)
	}
	return p
}

// where tells the position of a parse error and nothing of its text, which may hold a secret.
func where(err error) string {
	var pe syntax.ParseError
	var le syntax.LangError
	switch {
	case errors.As(err, &pe):
		return fmt.Sprintf("not valid shell at line %d, column %d", pe.Pos.Line(), pe.Pos.Col())
	case errors.As(err, &le):
		return fmt.Sprintf("not valid shell at line %d, column %d", le.Pos.Line(), le.Pos.Col())
	}
	return "not valid shell"
}

// parseArith parses one arithmetic expression. It never panics.
func parseArith(src string, lang syntax.LangVariant) (x syntax.ArithmExpr, ok bool) {
	defer func() {
		if recover() != nil {
			x, ok = nil, false
		}
	}()
	x, err := syntax.NewParser(syntax.Variant(lang)).Arithmetic(&pieceReader{src: src})
	return x, err == nil
}
