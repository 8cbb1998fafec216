// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

// FuzzAnalyze checks on any input that the analysis ends, keeps its bounds, says what it could not tell, and says the same
// when it is asked again.
func FuzzAnalyze(f *testing.F) {
	for _, table := range tables() {
		for _, tc := range table {
			f.Add(tc.src)
		}
	}
	for _, src := range differentialSources {
		f.Add(src)
	}
	for _, o := range openers {
		f.Add(strings.Repeat(o.open, 20) + o.inner + strings.Repeat(o.closer, 20))
	}
	o := testOptions()
	o.ReadScript = func(p string) (string, error) {
		if strings.HasSuffix(p, ".sh") {
			return "#!/bin/sh\n. ./other.sh\nrm -rf \"$1\" $0 $FOO\n./me.sh &\n", nil
		}
		return "", errors.New("no such script")
	}
	f.Fuzz(func(t *testing.T, src string) {
		a := Analyze(src, o)
		checkBounds(t, src, a)
		if b := Analyze(src, o); !reflect.DeepEqual(a, b) {
			t.Errorf("two analyses of %q differ:\n%s\n--\n%s", src, render(a), render(b))
		}
	})
}

func checkBounds(t *testing.T, src string, a Analysis) {
	t.Helper()
	if len(src) > MaxSource && (!a.TooBig || len(a.Commands) > 0) {
		t.Errorf("%d bytes were parsed", len(src))
	}
	if len(a.Commands) > MaxWords || len(a.Opaque) > 300 {
		t.Errorf("%d commands, %d opaque", len(a.Commands), len(a.Opaque))
	}
	word := func(w Word) {
		if w.Known == strings.Contains(w.Text, "\x00") {
			t.Errorf("Known is %v for %q in %q", w.Known, w.Text, src)
		}
		if strings.ContainsAny(w.Text+w.GlobText, "\x01\x02\x03\x04\x05\x06\ue0ff\ue0fe") {
			t.Errorf("a mark got out: %q in %q", w.Text, src)
		}
		if w.Glob == (w.GlobText == "") && w.Text != "" {
			t.Errorf("Glob is %v with pattern %q in %q", w.Glob, w.GlobText, src)
		}
		if w.Temp && w.Known && !strings.HasPrefix(w.Text, TempPrefix) {
			t.Errorf("%q is said to be temporary in %q", w.Text, src)
		}
	}
	for _, c := range a.Commands {
		for _, w := range c.Argv {
			word(w)
		}
		for _, e := range c.Env {
			word(e.Value)
		}
		for _, r := range c.Redirs {
			word(r.Target)
			word(r.Body)
		}
		word(c.Cwd)
		if !c.StdinNone {
			word(c.Stdin)
		}
	}
	for _, w := range a.Opaque {
		if w.Kind == "" || w.Why == "" {
			t.Errorf("an opaque without a reason in %q", src)
		}
	}
}

func TestAnalysisIsBoundedAndDeterministicOnTheTables(t *testing.T) {
	t.Parallel()
	for _, table := range tables() {
		for _, tc := range table {
			a := Analyze(tc.src, testOptions())
			checkBounds(t, tc.src, a)
			if b := Analyze(tc.src, testOptions()); !reflect.DeepEqual(a, b) {
				t.Errorf("two analyses of %q differ", tc.src)
			}
		}
	}
}
