// SPDX-License-Identifier: Apache-2.0

package show

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

var table = []struct {
	name, in   string
	max        int
	line, text string
}{
	{"ordinary text is returned as it is", "rm -rf 'src' && echo \"done\" \\", 0, "rm -rf 'src' && echo \"done\" \\", "rm -rf 'src' && echo \"done\" \\"},
	{"letters of every script stay", "größe 漢字 עברית 👍 é", 0, "größe 漢字 עברית 👍 é", "größe 漢字 עברית 👍 é"},
	{"newline and tab stay in text only", "a\n\tb", 0, `a\n\tb`, "a\n\tb"},
	{"a carriage return never survives", "ok\rrm", 0, `ok\rrm`, `ok\rrm`},
	{"terminal escapes are shown", "\x1b[31mred\x1b[0m\x07", 0, `\x1b[31mred\x1b[0m\x07`, `\x1b[31mred\x1b[0m\x07`},
	{"NUL and DEL are shown", "a\x00b\x7f", 0, `a\x00b\x7f`, `a\x00b\x7f`},
	{"C1 as a code point is shown as such", "\u009b31m", 0, `\u009b31m`, `\u009b31m`},
	{"C1 as a raw byte is shown as a byte", "\x9b31m", 0, `\x9b31m`, `\x9b31m`},
	{"bidirectional overrides and marks", "\u202e\u2066\u2069\u200e\u200f\u061c", 0, `\u202e\u2066\u2069\u200e\u200f\u061c`, `\u202e\u2066\u2069\u200e\u200f\u061c`},
	{"zero-width characters and the byte order mark", "a\u200bb\u200d\u2060\ufeff\u00ad", 0, `a\u200bb\u200d\u2060\ufeff\u00ad`, `a\u200bb\u200d\u2060\ufeff\u00ad`},
	{"line and paragraph separators and next line", "a\u2028b\u2029c\u0085", 0, `a\u2028b\u2029c\u0085`, `a\u2028b\u2029c\u0085`},
	{"tags and variation selectors", "a\U000e0041\U000e0100\ufe0f", 0, `a\U000e0041\U000e0100\ufe0f`, `a\U000e0041\U000e0100\ufe0f`},
	{"letters that show nothing", "\u3164\u115f\u2800\uffa0\u034f", 0, `\u3164\u115f\u2800\uffa0\u034f`, `\u3164\u115f\u2800\uffa0\u034f`},
	{"a space that is none", "rm\u00a0-rf\u3000/", 0, `rm\u00a0-rf\u3000/`, `rm\u00a0-rf\u3000/`},
	{"private use and unassigned", "\ue000\U0010ffff", 0, `\ue000\U0010ffff`, `\ue000\U0010ffff`},
	{"half a character", "a\xe2\x80", 0, `a\xe2\x80`, `a\xe2\x80`},
	{"a surrogate in bytes is no UTF-8", "\xed\xa0\x80", 0, `\xed\xa0\x80`, `\xed\xa0\x80`},
	{"a real replacement character stays", "\ufffd", 0, "\ufffd", "\ufffd"},
	{"marks do not pile up", "a\u0301\u0301\u0301\u0301\u0301b", 0, "a\u0301\u0301\u0301\u0301\\u0301b", "a\u0301\u0301\u0301\u0301\\u0301b"},
	{"a cut ends in an ellipsis", "abcdefgh", 7, "abcd…", "abcd…"},
	{"what fits exactly is not cut", "abcdefg", 7, "abcdefg", "abcdefg"},
	{"a cut never splits a character", "aäöüß", 6, "aä…", "aä…"},
	{"a cut never splits an escape", "ab\x1bcd", 8, "ab\\x1bcd", "ab\\x1bcd"},
	{"an escape that does not fit goes whole", "ab\x1bcd", 7, "ab…", "ab…"},
	{"no room for an ellipsis", "abcdef", 2, "ab", "ab"},
	{"no room for anything", "äb", 1, "", ""},
	{"empty stays empty", "", 5, "", ""},
}

func TestHostileTextBecomesVisible(t *testing.T) {
	t.Parallel()
	for _, tc := range table {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := Line(tc.in, tc.max); got != tc.line {
				t.Errorf("Line = %q, want %q", got, tc.line)
			}
			if got := Text(tc.in, tc.max); got != tc.text {
				t.Errorf("Text = %q, want %q", got, tc.text)
			}
		})
	}
}

func TestEveryCodePointIsVisibleOrEscaped(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if r >= 0xd800 && r <= 0xdfff {
			continue
		}
		checkClean(t, Line(string(r), 0), false)
		checkClean(t, Text(string(r), 0), true)
	}
}

func TestALongTextIsNotReadBeyondTheLimit(t *testing.T) { // not parallel: it counts allocations
	in := strings.Repeat("\x1b", 32<<20)
	if n := testing.AllocsPerRun(5, func() { Line(in, 300) }); n > 400 {
		t.Errorf("%v allocations for 300 bytes", n)
	}
}

// checkClean holds the promise of the package, written down apart from its implementation.
func checkClean(t *testing.T, out string, multiline bool) {
	t.Helper()
	if !utf8.ValidString(out) {
		t.Errorf("not UTF-8: %q", out)
	}
	for _, r := range out {
		if multiline && (r == '\n' || r == '\t') {
			continue
		}
		switch {
		case r < 0x20, r >= 0x7f && r < 0xa0,
			r >= 0x200b && r <= 0x200f, r >= 0x2028 && r <= 0x202e, r >= 0x2060 && r <= 0x206f,
			r == 0x61c, r == 0xfeff, r == 0xad, r == 0x180e, r == 0x3164,
			r >= 0xfe00 && r <= 0xfe0f, r >= 0xe0000 && r <= 0xe0fff,
			unicode.Is(unicode.Cf, r), unicode.Is(unicode.Cc, r), unicode.Is(unicode.Zl, r), unicode.Is(unicode.Zp, r),
			r != ' ' && unicode.Is(unicode.Zs, r):
			t.Errorf("forbidden %U in %q", r, out)
		}
	}
}

func FuzzShow(f *testing.F) {
	for _, tc := range table {
		f.Add(tc.in, tc.max)
	}
	f.Fuzz(func(t *testing.T, in string, max int) {
		for _, multiline := range []bool{false, true} {
			out := visible(in, max, multiline)
			checkClean(t, out, multiline)
			if max > 0 && len(out) > max {
				t.Errorf("%d bytes, limit %d", len(out), max)
			}
			if again := visible(out, max, multiline); again != out {
				t.Errorf("not stable: %q then %q", out, again)
			}
			if max <= 0 && len(in) > 0 && out == "" {
				t.Errorf("%q vanished", in)
			}
		}
	})
}
