// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestNothingThatBashRunsIsMissed writes random sources, runs them in real bash, and checks that each command which was
// started is listed, or that the analysis says it could not tell.
func TestNothingThatBashRunsIsMissed(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("NO BASH ON THIS MACHINE: random sources were not compared with a real shell")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(root, strings.Repeat("sub/", 12)) // so that cd .. and cd sub work nearly everywhere
	if err := os.MkdirAll(filepath.Join(work, strings.Repeat("sub/", 12)), 0o700); err != nil {
		t.Fatal(err)
	}
	const rounds = 200
	sure := 0
	for seed := range uint64(rounds) {
		g := generator{r: rand.New(rand.NewPCG(seed, 7))}
		src := g.list(4)
		log := filepath.Join(root, fmt.Sprint("log", seed))
		// show is a function here, so that no process is started for it; new shells get it as well.
		prelude := "show() { printf '%s\\0' \"$PWD\" \"$@\" $'\\1' >> \"$SHOW_LOG\"; }; export -f show\n"
		cmd := exec.Command(bash, "-c", prelude+src)
		cmd.Dir = work
		cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=/home/dev", "SHOW_LOG=" + log, "PWD=" + work}
		out, _ := cmd.CombinedOutput()
		if strings.Contains(string(out), "syntax error") {
			t.Fatalf("the generator made invalid shell: %s\n%s", src, out)
		}
		a := Analyze(src, Options{Cwd: work, Home: "/home/dev", User: "dev"})
		if len(a.Opaque) > 0 || a.Truncated || a.Unparsable || a.TooBig {
			continue
		}
		sure++
		for _, ran := range readLog(t, log) {
			if !covered(a, ran) {
				t.Errorf("seed %d: %q ran and is not listed\n--- source\n%s\n--- analysis\n%s", seed, ran, src, render(a))
			}
		}
	}
	if sure < rounds/2 {
		t.Errorf("only %d of %d sources could be told", sure, rounds)
	}
}

// covered tells whether a command that ran, its directory and its words joined by NUL, is one of those listed.
func covered(a Analysis, ran string) bool {
	for _, c := range a.Commands {
		if len(c.Argv) == 0 || c.Argv[0].Text != "show" {
			continue
		}
		var re strings.Builder
		re.WriteString(`(?s)\A`)
		re.WriteString(pattern(c.Cwd.Text))
		for _, w := range c.Argv[1:] {
			if w.Split {
				re.WriteString(`(\x00` + pattern(w.Text) + `)?`)
			} else {
				re.WriteString(`\x00` + pattern(w.Text))
			}
		}
		re.WriteString(`\z`)
		if regexp.MustCompile(re.String()).MatchString(ran) {
			return true
		}
	}
	return false
}

func pattern(s string) string {
	parts := strings.Split(s, "\x00")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return strings.Join(parts, ".*")
}

// generator writes random shell.
type generator struct {
	r     *rand.Rand
	loop  bool
	fn    bool
	depth int
}

func (g *generator) pick(s ...string) string { return s[g.r.IntN(len(s))] }

func (g *generator) name() string { return g.pick("x", "y", "z") }

func (g *generator) word() string {
	return g.pick("a", "b", `"c d"`, "$x", `"$x"`, "${y}", `"$y$z"`, "${z:-d}", `"${x:+e}"`, "$1", `"$@"`, `"$*"`, "{p,q}", "$(echo k)",
		`"$(echo "$x" m)"`, "~/h", "${x%a}", "${y#b}", "$((1+2))", "$#", "'$x'", `\$y`, "n$x", "${#x}", `"${z/a/o}"`, "$'t\\tu'")
}

func (g *generator) cond() string {
	return g.pick("true", "false", `[ "$x" = a ]`, "[ -d sub ]", "[ -d nope ]", `[ -z "$y" ]`, `[[ $x == "$y" ]]`, "! true", "cd sub",
		`test -n "$1"`, "((1))", "x=a", "f", "[ $# -gt 1 ]", "(exit 1)", "echo q >/dev/null", "{ cd sub && false; }")
}

func (g *generator) list(n int) string {
	var sb strings.Builder
	for range 1 + g.r.IntN(n) {
		sb.WriteString(g.stmt())
		sb.WriteString(g.pick("\n", "\n", "; "))
	}
	return strings.TrimRight(sb.String(), "; \n") + "\n"
}

func (g *generator) stmt() string {
	if g.depth > 3 {
		return "show deep " + g.word()
	}
	g.depth++
	defer func() { g.depth-- }()
	switch g.r.IntN(26) {
	case 0, 1, 2:
		return g.name() + "=" + g.pick("a", "b", `"c d"`, "$x", "$y", "", "$(echo k)", "${z:-v}", `"$@"`, "b$x")
	case 3, 4, 5, 6:
		return "show " + g.word() + " " + g.word()
	case 7:
		return g.pick("cd sub", "cd ..", "cd sub/sub", "cd - >/dev/null", "pushd sub >/dev/null", `cd "$PWD"`)
	case 8:
		return "if " + g.cond() + "; then\n" + g.list(2) + "else\n" + g.list(2) + "fi"
	case 9:
		return g.cond() + " && " + g.pick("show and $x", "x=and", "cd sub", "{ "+g.list(2)+"}")
	case 10:
		return g.cond() + " || " + g.pick("show or $x", "x=or", "cd sub", "{ "+g.list(2)+"}")
	case 11:
		old := g.loop
		g.loop = true
		s := "for " + g.name() + " in " + g.word() + " " + g.word() + "; do\n" + g.list(3) + "done"
		g.loop = old
		return s
	case 12:
		return "(\n" + g.list(3) + ")"
	case 13:
		return "{\n" + g.list(3) + "}"
	case 14:
		old, oldLoop := g.fn, g.loop
		g.fn, g.loop = true, false
		s := "f() {\n" + g.list(3) + "}"
		g.fn, g.loop = old, oldLoop
		if strings.Contains(s, "\nf") || strings.Contains(s, " f;") || strings.Contains(s, "f &&") || strings.Contains(s, "f ||") {
			return "show no-recursion" // it may not end
		}
		return s
	case 15:
		return g.pick("f "+g.word(), "f a b", "f")
	case 16:
		return g.pick("eval 'show ev $x'", `eval "show ev $y"`, "eval 'x=ev'", `eval "y=$x"`)
	case 17:
		return "echo " + g.word() + " | while read -r " + g.name() + "; do show rd $x $y; done"
	case 18:
		return "set -- " + g.word() + " " + g.word()
	case 19:
		return "case $x in a) show ca $y ;; " + g.pick("b", "*c*", `"$y"`, "[a-b]") + ") x=cb ;; *) show cd ;; esac"
	case 20:
		return "unset " + g.name()
	case 21:
		return g.pick("export x; bash -c 'show sh $x'", "x=env bash -c 'show sh $x $1' _ q", "bash -c 'show sh \"$@\"' _ "+g.word())
	case 22:
		switch {
		case g.loop:
			return g.pick("break", "continue", g.cond()+" && break", g.cond()+" && continue")
		case g.fn:
			return g.pick("return", g.cond()+" && return 1", "local x=lo", "local y")
		}
		return g.pick(g.cond()+" && exit 1", "shift")
	case 23:
		return "i=0; while [ $i -lt " + g.pick("1", "2", "3") + " ]; do i=$((i+1)); show wh $i $x; x=w$i; done"
	case 24:
		return "a=(" + g.word() + " " + g.word() + `); show "${a[@]}" ${#a[@]}`
	}
	return "x+=" + g.pick("a", "b") + "; show " + g.word() + " > /dev/null"
}
