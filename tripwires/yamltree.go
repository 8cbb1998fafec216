// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// Bounds of one rules file. They are checked on the bytes before the YAML parser sees them: the parser's memory grows with
// the square of the nesting.
const (
	maxRulesFile  = 256 << 10
	maxRulesFiles = 64
	maxFlowDepth  = 16
	maxFlowOpens  = 4000
	maxIndent     = 64
	maxDashes     = 4
	maxKeys       = 64   // of one mapping
	maxColons     = 6000 // keys of the whole file: the parser compares each with all others of its mapping
)

// node is a YAML value with its position: a scalar, a list or a mapping. It exists so that the rules loader sees nothing of
// YAML's anchors, tags, merges and aliases.
type node struct {
	line, col int
	kind      nodeKind
	text      string // scalar
	quoted    bool
	list      []*node
	keys      []*node // mapping: keys in order, values in list
}

type nodeKind int

const (
	scalarNode nodeKind = iota
	listNode
	mapNode
	nullNode
)

// posError is an error at a place of a file.
type posError struct {
	line, col int
	msg       string
}

func (e *posError) Error() string { return fmt.Sprintf("%d:%d: %s", e.line, e.col, e.msg) }

func errAt(line, col int, format string, args ...any) *posError {
	return &posError{line: max(line, 1), col: max(col, 1), msg: fmt.Sprintf(format, args...)}
}

func (n *node) err(format string, args ...any) *posError {
	return errAt(n.line, n.col, format, args...)
}

// checkYAML refuses, by looking at bytes alone, what would be costly or surprising to parse.
func checkYAML(data []byte) *posError {
	if len(data) > maxRulesFile {
		return errAt(1, 1, "file is larger than %d bytes", maxRulesFile)
	}
	if !utf8.Valid(data) {
		return errAt(1, 1, "file is not UTF-8 text")
	}
	line, col, depth, opens, dashes, colons := 1, 0, 0, 0, 0, 0
	start := true // only indicators and blanks so far on this line
	var quote byte
	for i := 0; i < len(data); i++ {
		c := data[i]
		col++
		switch {
		case c == '\n':
			line, col, dashes, start = line+1, 0, 0, true
			continue
		case c == '\r' && i+1 < len(data) && data[i+1] == '\n':
			continue
		case c == '\t' && start && quote == 0:
			return errAt(line, col, "a tab cannot indent")
		case c < 0x20 && c != '\t', c == 0x7f:
			return errAt(line, col, "control character")
		case c == '[' || c == '{':
			// Counted inside quotes too: whatever the parser takes for a quote, the total stays small.
			if opens++; opens > maxFlowOpens {
				return errAt(line, col, "more than %d brackets", maxFlowOpens)
			}
		}
		if c == ':' && (i+1 == len(data) || strings.IndexByte(" \n\r\t", data[i+1]) >= 0 || i > 0 && strings.IndexByte("'\"", data[i-1]) >= 0) {
			if colons++; colons > maxColons {
				return errAt(line, col, "more than %d keys", maxColons)
			}
		}
		if start {
			switch c {
			case ' ':
			case '-', '?':
				if i+1 < len(data) && data[i+1] != ' ' && data[i+1] != '\n' {
					start = false
					break
				}
				if dashes++; dashes > maxDashes {
					return errAt(line, col, "more than %d nested lists on a line", maxDashes)
				}
			default:
				start = false
			}
			if !start && col > maxIndent+1 {
				return errAt(line, col, "indented by more than %d columns", maxIndent)
			}
		}
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				i, col = i+1, col+1
			} else if c == quote {
				quote = 0
			}
		case c == '#' && (col == 1 || data[i-1] == ' '):
			for i+1 < len(data) && data[i+1] != '\n' {
				if i++; data[i] < 0x20 && data[i] != '\t' && data[i] != '\r' {
					return errAt(line, col, "control character")
				}
			}
		case (c == '"' || c == '\'') && i > 0 && quoteMayStart(data[i-1]):
			quote = c
		case c == '[' || c == '{':
			if depth++; depth > maxFlowDepth {
				return errAt(line, col, "nested deeper than %d", maxFlowDepth)
			}
		case c == ']' || c == '}':
			depth = max(depth-1, 0)
		}
	}
	return nil
}

func quoteMayStart(prev byte) bool {
	return prev == ' ' || prev == '[' || prev == '{' || prev == ',' || prev == ':' || prev == '\n'
}

// parseYAML reads one document. A panic of the parser is an error like any other.
func parseYAML(data []byte) (root *node, err error) {
	if e := checkYAML(data); e != nil {
		return nil, e
	}
	defer func() {
		if p := recover(); p != nil {
			root, err = nil, errAt(1, 1, "the file cannot be parsed")
		}
	}()
	f, perr := parser.ParseBytes(data, 0)
	if perr != nil {
		var ye yaml.Error
		if errors.As(perr, &ye) && ye.GetToken() != nil && ye.GetToken().Position != nil {
			p := ye.GetToken().Position
			return nil, errAt(p.Line, p.Column, "%s", ye.GetMessage())
		}
		return nil, errAt(1, 1, "the file cannot be parsed")
	}
	var body ast.Node
	for _, d := range f.Docs {
		if d.Body == nil {
			continue
		}
		if body != nil {
			line, col := position(d.Body)
			return nil, errAt(line, col, "only one document is allowed")
		}
		body = d.Body
	}
	if body == nil {
		return nil, errAt(1, 1, "the file is empty")
	}
	return convert(body, 0)
}

func position(n ast.Node) (line, col int) {
	if t := n.GetToken(); t != nil && t.Position != nil {
		return t.Position.Line, t.Position.Column
	}
	return 1, 1
}

func convert(n ast.Node, depth int) (*node, error) {
	out := &node{}
	out.line, out.col = position(n)
	if depth > maxFlowDepth+maxIndent {
		return nil, out.err("nested too deep")
	}
	switch v := n.(type) {
	case *ast.NullNode:
		out.kind = nullNode
	case *ast.StringNode:
		out.text, out.quoted = v.Value, v.Token != nil && (v.Token.Type.String() == "SingleQuote" || v.Token.Type.String() == "DoubleQuote")
	case *ast.LiteralNode:
		out.text, out.quoted = v.Value.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode, *ast.InfinityNode, *ast.NanNode:
		out.text = n.GetToken().Value
	case *ast.SequenceNode:
		out.kind = listNode
		for _, e := range v.Values {
			c, err := convert(e, depth+1)
			if err != nil {
				return nil, err
			}
			out.list = append(out.list, c)
		}
	case *ast.MappingNode:
		out.kind = mapNode
		for _, e := range v.Values {
			if err := out.addPair(e, depth); err != nil {
				return nil, err
			}
		}
	case *ast.MappingValueNode:
		out.kind = mapNode
		if err := out.addPair(v, depth); err != nil {
			return nil, err
		}
	case *ast.AnchorNode, *ast.AliasNode, *ast.MergeKeyNode:
		return nil, out.err("anchors, aliases and merges are not allowed")
	case *ast.TagNode:
		return nil, out.err("tags are not allowed")
	default:
		return nil, out.err("unexpected YAML")
	}
	if len(out.keys) > 0 { // the parser's own place of a mapping is its first colon
		out.line, out.col = out.keys[0].line, out.keys[0].col
	}
	return out, nil
}

func (n *node) addPair(p *ast.MappingValueNode, depth int) error {
	k, err := convert(p.Key, depth+1)
	if err != nil {
		return err
	}
	if k.kind != scalarNode {
		return k.err("a key must be a plain word")
	}
	if len(n.keys) >= maxKeys {
		return k.err("more than %d keys", maxKeys)
	}
	for _, old := range n.keys {
		if old.text == k.text {
			return k.err("key %q is given twice", shorten(k.text, 80))
		}
	}
	v, err := convert(p.Value, depth+1)
	if err != nil {
		return err
	}
	n.keys, n.list = append(n.keys, k), append(n.list, v)
	return nil
}
