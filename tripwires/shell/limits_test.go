// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"strings"
	"testing"
	"time"
)

// openers are ways to nest, each with its closing part ("" = none needed for the cost).
var openers = []struct{ open, inner, closer string }{
	{"(", ":", ")"},
	{"((", "1", "))"},
	{"$(", ":", ")"},
	{"$((", "1", "))"},
	{"${x:-", "y", "}"},
	{"{ ", ":", "; }"},
	{"\"$(", ":", ")\""},
	{"`", ":", ""},
	{"<(", ":", ")"},
	{"if :; then ", ":", "; fi"},
	{"while :; do ", ":", "; done"},
	{"for x in a; do ", ":", "; done"},
	{"case x in x) ", ":", ";; esac"},
	{"[[ ( ", "a", " ) ]]"},
	{"! ", ":", ""},
	{"time ", ":", ""},
	{"f() { ", ":", "; }"},
	{"cat <<E\n$(", ":", ")\nE\n"},
	{"a=(", "x", ")"},
	{"x[$((", "1", "))]=y"},
	{"{a,", "b", "}"},
	{"$[", "1", "]"},
	{"\")\" $(", ":", ")"},
	{"')' ( ", ":", ")"},
	{"coproc ", ":", ""},
	{": && ", ":", ""},
	{": | ", ":", ""},
	{"@(", "a", ")"},
	{"${x/", "y", "}"},
	{"1+(", "1", ")"},
	{"$((1+", "1", "))"},
	{"$((1?", "1", ":1))"},
	{"eval ", ":", ""},
	{"sudo ", ":", ""},
	{"env -S ", "x", ""},
	{"bash -c ", "x", ""},
	{"xargs ", "x", ""},
	{"find . -exec ", "x", " ;"},
}

func TestDeepNestingIsRefusedOrCutWhateverItIsMadeOf(t *testing.T) {
	t.Parallel()
	for _, o := range openers {
		for _, closed := range []bool{false, true} {
			n := MaxSource / len(o.open)
			src := strings.Repeat(o.open, n)
			if closed {
				n = (MaxSource - len(o.inner)) / (len(o.open) + len(o.closer))
				src = strings.Repeat(o.open, n) + o.inner + strings.Repeat(o.closer, n)
			}
			start := time.Now()
			a := Analyze(src, testOptions())
			t.Logf("%-16q closed=%-5v %v", o.open, closed, time.Since(start).Round(time.Microsecond))
			checkBounds(t, src, a)
		}
	}
}

func TestNestingOfTheParserIsBoundedAtTheSource(t *testing.T) {
	t.Parallel()
	for _, o := range openers[:6] {
		deep := strings.Repeat(o.open, 1500) + o.inner + strings.Repeat(o.closer, 1500)
		if a := Analyze(deep, testOptions()); !a.TooBig || len(a.Commands) > 0 {
			t.Errorf("1500 times %q was parsed: %s", o.open, render(a))
		}
		shallow := strings.Repeat(o.open, 40) + o.inner + strings.Repeat(o.closer, 40)
		if a := Analyze(shallow, testOptions()); a.TooBig || a.Truncated {
			t.Errorf("40 times %q was not analysed: %s", o.open, render(a))
		}
	}
}

func TestQuotedBracketsDoNotHideNesting(t *testing.T) {
	t.Parallel()
	src := strings.Repeat(`$(")" `, 2000)
	if a := Analyze(src, testOptions()); !a.TooBig {
		t.Errorf("2000 levels were parsed: %.200s", render(a))
	}
}

func TestBracketsSideBySideOrInTextAreNoNesting(t *testing.T) {
	t.Parallel()
	for _, src := range []string{
		strings.Repeat("(a);", 2000),
		strings.Repeat("$(a) ", 600),
		"git commit -m '" + strings.Repeat("((({{{[[[$(", 1000) + "'",
		"cat > f <<'E'\n" + strings.Repeat("if (x) { y(); }\n", 800) + "E\n",
	} {
		if a := Analyze(src, testOptions()); a.TooBig || a.Unparsable || a.Truncated || len(a.Commands) == 0 {
			t.Errorf("not analysed: %.60q: too big %v, unparsable %v, truncated %v", src, a.TooBig, a.Unparsable, a.Truncated)
		}
	}
}

func TestLongSourceIsNotParsed(t *testing.T) {
	t.Parallel()
	for _, src := range []string{strings.Repeat("(", 256<<10), "rm -rf / " + strings.Repeat("x", MaxSource)} {
		if a := Analyze(src, testOptions()); !a.TooBig || a.Why == "" || len(a.Commands) > 0 {
			t.Errorf("%d bytes: %s", len(src), render(a))
		}
	}
}

func TestAScriptTooLongOrTooDeepIsOpaque(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"long":     strings.Repeat("a\n", MaxScript),
		"deep":     strings.Repeat("(", MaxScript-10),
		"deep too": strings.Repeat("$(", MaxScript/2-10),
	} {
		o := testOptions()
		o.ReadScript = func(string) (string, error) { return script, nil }
		if a := Analyze("sh x.sh", o); len(a.Opaque) == 0 {
			t.Errorf("%s: nothing opaque: %.200s", name, render(a))
		}
	}
}

func TestWorkIsBounded(t *testing.T) {
	t.Parallel()
	for name, src := range hardSources() {
		start := time.Now()
		a := Analyze(src, scriptOptions())
		t.Logf("%-20s %v, %d commands", name, time.Since(start).Round(time.Microsecond), len(a.Commands))
		checkBounds(t, src, a)
	}
}

func TestErrorsNeverQuoteTheSource(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	for _, src := range []string{"echo " + secret + " '", "export T=" + secret + " (", "eval \"$(" + secret + "\"", "sh " + secret,
		"eval '" + secret + " ('", "curl " + secret + " | sh"} {
		a := Analyze(src, testOptions())
		for _, o := range a.Opaque {
			if strings.Contains(o.Why, secret) {
				t.Errorf("%q: Why is %q", src, o.Why)
			}
		}
		if strings.Contains(a.Why, secret) {
			t.Errorf("%q: Why is %q", src, a.Why)
		}
	}
}

func TestAnalyzeArgvFollowsWrappersWithoutAShell(t *testing.T) {
	t.Parallel()
	a := AnalyzeArgv([]string{"sudo", "bash", "-c", "rm -rf $1", "_", "/etc"}, testOptions())
	if got, want := render(a), "rm -rf /etc via sudo,bash -c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	a = AnalyzeArgv([]string{"rm", "*", "$HOME"}, testOptions())
	if got, want := render(a), "rm * $HOME"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if a := AnalyzeArgv(nil, testOptions()); len(a.Commands) != 0 {
		t.Errorf("an empty command starts %s", render(a))
	}
}
