// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
)

// Bounds of the scanner of program texts.
const (
	maxCode   = 256 << 10
	maxTokens = 40000
)

// codeToken is a piece of a program text: a name, a string, or one other character.
type codeToken struct {
	kind byte // 'n' name, 's' string, 'x' shell string (backticks, qx), 'p' punctuation
	text string
	line int
	obj  bool // a text that is a path object of the language
}

// lexCode splits a program text, drops comments and tells strings from code, which is all that the scanner needs of a
// language's syntax. Parts of a string that the language computes become NUL.
func lexCode(lang, src string) []codeToken {
	if len(src) > maxCode {
		src = src[:maxCode]
	}
	var out []codeToken
	line := 1
	for i := 0; i < len(src) && len(out) < maxTokens; {
		c := src[i]
		switch {
		case c == '\n':
			line++
			out = append(out, codeToken{'p', "\n", line, false})
			i++
		case c <= ' ':
			i++
		case startsComment(lang, src, i):
			i = commentEnd(lang, src, i)
		case c == '"' || c == '\'' || c == '`':
			s, end := stringAt(lang, src, i)
			kind := byte('s')
			if c == '`' && (lang == "perl" || lang == "ruby" || lang == "php") {
				kind = 'x'
			}
			out = append(out, codeToken{kind, s, line, false})
			line += strings.Count(src[i:end], "\n")
			i = end
		case isWordByte(c) || c == '$' || c == '@' && lang != "python":
			j := i + 1
			for j < len(src) && isWordByte(src[j]) {
				j++
			}
			name := src[i:j]
			if s, kind, end, ok := quoteLike(lang, name, src, j); ok {
				out = append(out, codeToken{kind, s, line, false})
				i = end
				continue
			}
			if lang == "python" && j < len(src) && (src[j] == '"' || src[j] == '\'') && isStringPrefix(name) {
				s, end := stringAt(lang, src, j)
				if strings.ContainsAny(strings.ToLower(name), "f") {
					s = holes(s, "{", "}")
				}
				out = append(out, codeToken{'s', s, line, false})
				i = end
				continue
			}
			out = append(out, codeToken{'n', name, line, false})
			i = j
		default:
			out = append(out, codeToken{'p', src[i : i+1], line, false})
			i++
		}
	}
	return out
}

func isStringPrefix(s string) bool {
	return len(s) <= 2 && strings.Trim(strings.ToLower(s), "rbuf") == ""
}

func startsComment(lang, src string, i int) bool {
	rest := src[i:]
	switch lang {
	case "js", "go", "php":
		if strings.HasPrefix(rest, "//") || strings.HasPrefix(rest, "/*") {
			return true
		}
		return lang == "php" && rest[0] == '#'
	case "lua", "applescript":
		return strings.HasPrefix(rest, "--")
	}
	return rest[0] == '#' && (i == 0 || src[i-1] <= ' ' || src[i-1] == ';' || lang == "python" || lang == "r")
}

func commentEnd(lang, src string, i int) int {
	if strings.HasPrefix(src[i:], "/*") && (lang == "js" || lang == "go" || lang == "php") {
		if n := strings.Index(src[i+2:], "*/"); n >= 0 {
			return i + n + 4
		}
		return len(src)
	}
	if n := strings.IndexByte(src[i:], '\n'); n >= 0 {
		return i + n
	}
	return len(src)
}

// stringAt reads a quoted string; the result holds NUL where the language puts something in.
func stringAt(lang, src string, i int) (string, int) {
	q := src[i : i+1]
	if lang == "python" && strings.HasPrefix(src[i:], q+q+q) {
		q = q + q + q
	}
	raw := lang == "go" && q == "`"
	var b strings.Builder
	j := i + len(q)
	for j < len(src) {
		if strings.HasPrefix(src[j:], q) {
			j += len(q)
			break
		}
		if src[j] == '\\' && !raw && j+1 < len(src) {
			switch src[j+1] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case '\n':
			case 'x':
				if v, ok := hexByte(src, j+2); ok {
					b.WriteByte(v)
					j += 2
				} else {
					b.WriteByte('x')
				}
			default:
				b.WriteByte(src[j+1])
			}
			j += 2
			continue
		}
		b.WriteByte(src[j])
		j++
	}
	s := b.String()
	switch {
	case lang == "js" && q == "`":
		s = holes(s, "${", "}")
	case lang == "ruby" && q != "'":
		s = holes(s, "#{", "}")
	case (lang == "perl" || lang == "php") && q != "'":
		s = variableHoles(s)
	}
	return s, j
}

func hexByte(s string, i int) (byte, bool) {
	if i+2 > len(s) {
		return 0, false
	}
	v := 0
	for _, c := range []byte(s[i : i+2]) {
		n := strings.IndexByte("0123456789abcdef", c|0x20)
		if n < 0 {
			return 0, false
		}
		v = v*16 + n
	}
	return byte(v), v != 0
}

// holes replaces open...close by NUL.
func holes(s, open, end string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, open)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:i])
		n := strings.Index(s[i:], end)
		if n < 0 {
			b.WriteByte(0)
			return b.String()
		}
		if n > len(open) && homeExpression(s[i+len(open):i+n]) {
			b.WriteString(homeMark)
		} else {
			b.WriteByte(0)
		}
		s = s[i+n+len(end):]
	}
}

// homeExpression reports whether what a string puts in is the home directory.
func homeExpression(e string) bool {
	switch strings.NewReplacer("\"", "'", " ", "", "pathlib.", "", "require('os').", "os.").Replace(e) {
	case "Dir.home", "ENV['HOME']", "Path.home()", "os.environ['HOME']", "os.getenv('HOME')", "os.environ.get('HOME')", "process.env.HOME", "os.homedir()", "homedir()", "ENV.fetch('HOME')":
		return true
	}
	return false
}

// variableHoles replaces $name and @name by NUL.
func variableHoles(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if rest, ok := strings.CutPrefix(s[i:], "$ENV{HOME}"); ok {
			b.WriteString(homeMark)
			i = len(s) - len(rest) - 1
			continue
		}
		if (s[i] == '$' || s[i] == '@') && i+1 < len(s) && (isWordByte(s[i+1]) || s[i+1] == '{') {
			b.WriteByte(0)
			for i+1 < len(s) && (isWordByte(s[i+1]) || strings.IndexByte("{}[]->'", s[i+1]) >= 0) {
				i++
			}
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// quoteLike reads perl's q qq qx and ruby's %x %w-free forms.
func quoteLike(lang, name, src string, i int) (s string, kind byte, end int, ok bool) {
	if lang != "perl" && lang != "ruby" || i >= len(src) {
		return "", 0, 0, false
	}
	kind = 's'
	switch {
	case lang == "perl" && (name == "q" || name == "qq"):
	case lang == "perl" && name == "qx", lang == "ruby" && name == "x" && i >= 2 && src[i-2] == '%':
		kind = 'x'
	default:
		return "", 0, 0, false
	}
	open := src[i]
	if isWordByte(open) || open <= ' ' || open == ',' || open == ';' || open == '=' || open == ')' {
		return "", 0, 0, false
	}
	closing := open
	if n := strings.IndexByte("([{<", open); n >= 0 {
		closing = ")]}>"[n]
	}
	n := strings.IndexByte(src[i+1:], closing)
	if n < 0 {
		return "", 0, 0, false
	}
	s = src[i+1 : i+1+n]
	if name != "q" {
		s = variableHoles(holes(s, "#{", "}"))
	}
	return s, kind, i + n + 2, true
}
