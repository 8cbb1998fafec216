// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// braces returns the words that brace expansion makes of w, as lists of parts, and whether these are all.
func braces(w *syntax.Word) ([][]syntax.WordPart, bool) {
	if !hasBrace(w) {
		return [][]syntax.WordPart{w.Parts}, true
	}
	opened := 0
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			opened += strings.Count(lit.Value, "{")
		}
	}
	if opened > 32 {
		return nil, false // the cost of splitting grows faster than their number
	}
	syntax.SplitBraces(w)
	left := maxBraces
	alts := braceParts(w.Parts, &left, 0)
	return alts, left > 0
}

func hasBrace(w *syntax.Word) bool {
	for _, p := range w.Parts {
		switch p := p.(type) {
		case *syntax.BraceExp:
			return true // split before, in an earlier iteration
		case *syntax.Lit:
			if strings.Contains(p.Value, "{") {
				return true
			}
		}
	}
	return false
}

func braceParts(parts []syntax.WordPart, left *int, depth int) [][]syntax.WordPart {
	out := [][]syntax.WordPart{nil}
	for _, p := range parts {
		br, ok := p.(*syntax.BraceExp)
		if !ok {
			for i := range out {
				out[i] = append(out[i], p)
			}
			continue
		}
		if depth > 64 {
			*left = 0
		}
		alts := braceAlts(br, left, depth)
		if *left -= len(out) * len(alts); *left <= 0 {
			*left = 0
			return out
		}
		next := make([][]syntax.WordPart, 0, len(out)*len(alts))
		for _, o := range out {
			for _, a := range alts {
				next = append(next, append(append(make([]syntax.WordPart, 0, len(o)+len(a)+1), o...), a...))
			}
		}
		out = next
	}
	return out
}

func braceAlts(br *syntax.BraceExp, left *int, depth int) [][]syntax.WordPart {
	if *left <= 0 {
		return nil
	}
	if br.Sequence {
		return braceSequence(br, left)
	}
	var alts [][]syntax.WordPart
	for _, e := range br.Elems {
		alts = append(alts, braceParts(e.Parts, left, depth+1)...)
	}
	return alts
}

// braceSequence is {x..y} and {x..y..step}, of numbers or letters.
func braceSequence(br *syntax.BraceExp, left *int) [][]syntax.WordPart {
	from, to := br.Elems[0].Lit(), br.Elems[1].Lit()
	a, errA := strconv.ParseInt(from, 10, 64)
	z, errZ := strconv.ParseInt(to, 10, 64)
	letters := errA != nil || errZ != nil
	if letters {
		if len(from) != 1 || len(to) != 1 {
			*left = 0
			return nil
		}
		a, z = int64(from[0]), int64(to[0])
	}
	step := int64(1)
	if len(br.Elems) > 2 {
		if n, err := strconv.ParseInt(br.Elems[2].Lit(), 10, 64); err == nil && n != 0 {
			step = max(n, -n)
		}
	}
	if step <= 0 || a < -1<<60 || a > 1<<60 || z < -1<<60 || z > 1<<60 || (max(a, z)-min(a, z))/step >= maxBraces {
		*left = 0
		return nil
	}
	width := 0
	if !letters && (padded(from) || padded(to)) {
		width = max(len(from), len(to))
	}
	if a > z {
		step = -step
	}
	var alts [][]syntax.WordPart
	for n := a; step > 0 && n <= z || step < 0 && n >= z; n += step {
		s := string(rune(n))
		if !letters {
			s = pad(n, width)
		} else if strings.ContainsAny(s, `\*?[~`) {
			s = `\` + s
		}
		alts = append(alts, []syntax.WordPart{&syntax.Lit{Value: s, ValuePos: br.Pos(), ValueEnd: br.End()}})
	}
	return alts
}

func padded(s string) bool {
	s = strings.TrimPrefix(s, "-")
	return len(s) > 1 && s[0] == '0'
}

func pad(n int64, width int) string {
	s := strconv.FormatInt(n, 10)
	if len(s) >= width {
		return s
	}
	sign := ""
	if n < 0 {
		sign, s = "-", s[1:]
	}
	return sign + strings.Repeat("0", width-len(s)-len(sign)) + s
}
