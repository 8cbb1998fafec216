// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
)

func getenv(env map[string]string) func(string) string {
	return func(name string) string { return env[name] }
}

func TestOnlyAShellWithoutAnAgentIsAPersons(t *testing.T) {
	t.Parallel()
	for _, name := range agentVariables {
		a := &app{Env: Env{Getenv: getenv(map[string]string{name: "1"})}}
		if err := a.needPerson("this"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, env := range []map[string]string{nil, {"CLAUDECODE": ""}, {"CODEX_HOME": "/x", "CLAUDE_CONFIG_DIR": "/y", "GEMINI_API_KEY": "z"}} {
		if err := (&app{Env: Env{Getenv: getenv(env)}}).needPerson("this"); err != nil {
			t.Errorf("%v: %v", env, err)
		}
	}
}

func TestOnlyATypedYesIsAYes(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		"yes\n": true, " yes \r\n": true, "yes": false, "": false, "\n": false, "y\n": false, "Yes\n": false, "yes please\n": false, "no\nyes\n": false,
	} {
		var out bytes.Buffer
		a := &app{Env: Env{In: strings.NewReader(answer), Err: &out}}
		if got := a.confirm(t.Context(), "do it?"); got != want || !strings.HasPrefix(out.String(), "do it? Type yes: ") {
			t.Errorf("%q: %v, asked %q", answer, got, out.String())
		}
	}
}

func TestAnInterruptAtTheQuestionIsANo(t *testing.T) {
	t.Parallel()
	in, typist := io.Pipe() // nobody types
	defer typist.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	a := &app{Env: Env{In: in, Err: io.Discard}}
	if a.confirm(ctx, "do it?") {
		t.Error("it was taken for a yes")
	}
}

// Whatever a command line that we print holds, a shell takes its words as they are.
func TestPrintedCommandLinesCanBePasted(t *testing.T) {
	t.Parallel()
	for _, word := range []string{
		"auditctl", "/home/a b/bin/auditctl", "it's", "$(id)", "`id`", "a;b", "a&b", "*", "~", "", "-x", "a\\b", `a"b`, "a\nb", "ü", "#x", "a=b", "!x", "{a,b}",
	} {
		out, err := exec.Command("/bin/sh", "-c", "printf %s "+words.Shell(word)).Output()
		if word == "-x" { // a word of printf itself
			out, err = exec.Command("/bin/sh", "-c", "printf -- %s "+words.Shell(word)).Output()
		}
		if err != nil || string(out) != word {
			t.Errorf("%q is written as %s, which is %q, %v", word, words.Shell(word), out, err)
		}
	}
}

func TestLastWordsAreThoseForPeopleIfThereAreAny(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                  "",
		`{"level":"info"}`:                  `{"level":"info"}`,
		"{\"a\":1}\ntriplined: no\n{\"b\"}": "triplined: no",
		"panic: x\n\ngoroutine 1":           "panic: x\n\ngoroutine 1",
	} {
		if got := strings.Join(forPeople(text), "\n"); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}
