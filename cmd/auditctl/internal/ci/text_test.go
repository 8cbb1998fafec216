// SPDX-License-Identifier: Apache-2.0

package ci_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
)

// hostile is text that means something to a terminal, a runner, a renderer of Markdown or a browser.
var hostile = []string{
	"", " ", "  ", "`", "``", "`` ` ``", strings.Repeat("`", 5), strings.Repeat("`", 100), "a`b``c```d````e`````f", "`a", "a`", "\\`", "\\", "a\\",
	"|", "\\|", "a | b", "::error::x", "  ::error file=a::x", "\t::add-mask::x", "\u00a0::stop-commands::x", "\ufeff::set-output name=a::b", "::",
	"##[error]x", "x ##[add-mask]y", "##[", "##vso[task.setvariable variable=a;]b", "##teamcity[buildStatus]", "####[group]", "##a##[b]", "# # [",
	"a\n::error::b", "a\r::error::b", "a\r\n::error::b", "a\u2028::error::b", "a\u0085::error::b", "a\v::error::b",
	"<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<!--", "-->", "</code></pre><b>", "&lt;b&gt;", "&#96;",
	"[a](javascript:alert(1))", "![a](http://example.invalid/a.png)", "[a]: http://example.invalid", "<http://example.invalid>", "http://example.invalid",
	"www.example.invalid", "@everyone", "@org/team", "#1", "GH-1", "org/repo#1", "a@example.invalid", ":tada:", "$`x`$", "$$x$$", "**b** _i_ ~~s~~",
	"# heading", "> quote", "- list", "1. list", "---", "***", "    code", "```mermaid\ngraph", "~~~", "[x] task", "|---|", "\x1b[31m", "\x1b]8;;http://x\x07",
	"\x00", "\x7f", "\u202e", "\u200b", "\u2066", "\xff\xfe", "\xed\xa0\x80", "é", "日本語", "😀", "a\u0301\u0301\u0301\u0301\u0301\u0301",
	"${{ secrets.TOKEN }}", "%0A::error::x", strings.Repeat("x", 5000), strings.Repeat("##[", 2000),
}

func TestCodeIsOneInertSpan(t *testing.T) {
	t.Parallel()
	for _, s := range hostile {
		for _, limit := range []int{0, 1, 7, 40, 300} {
			checkSpan(t, s, ci.Code(s, limit), false)
			checkSpan(t, s, ci.Cell(s, limit), true)
		}
	}
}

func FuzzCode(f *testing.F) {
	for _, s := range hostile {
		f.Add(s, 100)
	}
	f.Fuzz(func(t *testing.T, s string, limit int) {
		checkSpan(t, s, ci.Code(s, limit%1000), false)
		checkSpan(t, s, ci.Cell(s, limit%1000), true)
		checkLine(t, s, ci.Inert(show.Line(s, 0)))
	})
}

// checkSpan reads a code span as renderers do: it ends at the first run of as many backticks as it began with.
func checkSpan(t *testing.T, s, span string, cell bool) {
	t.Helper()
	n := len(span) - len(strings.TrimLeft(span, "`"))
	if n == 0 || n > 5 {
		t.Fatalf("%q: a fence of %d in %q", s, n, span)
	}
	rest := span[n:]
	for {
		i := strings.IndexByte(rest, '`')
		if i < 0 {
			t.Fatalf("%q: %q never ends", s, span)
		}
		rest = rest[i:]
		run := len(rest) - len(strings.TrimLeft(rest, "`"))
		rest = rest[run:]
		if run == n {
			break
		}
	}
	if rest != "" {
		t.Fatalf("%q: %q ends early, before %q", s, span, rest)
	}
	if strings.Trim(span, "`") == "" || strings.Trim(strings.Trim(span, "`"), " ") == "" {
		t.Fatalf("%q: %q is empty", s, span)
	}
	if cell && strings.Contains(span, "|") {
		t.Fatalf("%q: %q begins another cell", s, span)
	}
	checkLine(t, s, span)
}

var command = regexp.MustCompile(`##[A-Za-z.]*\[`)

func checkLine(t *testing.T, s, line string) {
	t.Helper()
	for _, r := range line {
		if !show.Visible(r) && !unicode.Is(unicode.M, r) {
			t.Fatalf("%q: %q holds %U", s, line, r)
		}
	}
	if command.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "::") {
		t.Fatalf("%q: %q is a command", s, line)
	}
}

func TestOrdinaryTextStaysAsItIs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"rm -rf src":                 "`rm -rf src`",
		"echo `date` | wc":           "`` echo `date` | wc ``",
		"delete.project":             "`delete.project`",
		"std::string a::b # [x] ##y": "`std::string a::b # [x] ##y`",
		"":                           "`-`",
	} {
		if got := ci.Code(in, 100); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func TestTheWriterMakesEveryLineInert(t *testing.T) {
	t.Parallel()
	for _, s := range hostile {
		var whole, bytewise strings.Builder
		w := &ci.Writer{W: &whole}
		if _, err := w.Write([]byte("first\n" + s + "\n" + s)); err != nil {
			t.Fatal(err)
		}
		b := &ci.Writer{W: &bytewise}
		for _, c := range []byte("first\n" + s + "\n" + s) {
			if _, err := b.Write([]byte{c}); err != nil {
				t.Fatal(err)
			}
		}
		for _, w := range []*ci.Writer{w, b} {
			if err := w.Flush(); err != nil {
				t.Fatal(err)
			}
		}
		if whole.String() != bytewise.String() {
			t.Errorf("%q: %q in one piece, %q in many", s, whole.String(), bytewise.String())
		}
		for _, line := range strings.FieldsFunc(whole.String(), func(r rune) bool { return r == '\n' || r == '\r' }) {
			if command.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "::") {
				t.Errorf("%q: the line %q is a command", s, line)
			}
		}
	}
}
