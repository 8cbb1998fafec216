// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// Whatever tune entries come and go, in whatever order and profile, what is merged is never weaker than what was in force, and
// what a person puts in force is what the files say.
func TestNoEditOfTuneEntriesLoosensByItself(t *testing.T) {
	t.Parallel()
	entries := []string{
		"{rule: delete.regenerable, to: pass}", "{rule: delete.regenerable, to: ask}", "{rule: delete.regenerable, to: deny}",
		"{rule: delete.regenerable, to: pass, when: {project: [/home/dev/shop]}}", "{rule: delete.regenerable, to: ask, when: {project: [/home/dev/shop]}}",
		"{rule: delete.regenerable, to: deny, when: {project: [/home/dev/shop]}}", "{rule: delete.regenerable, to: pass, when: {agent: [claude]}}",
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	file := func() string {
		n := rnd.IntN(4)
		if n == 0 {
			return ""
		}
		var b strings.Builder
		b.WriteString("version: 1\ntune:\n")
		for _, i := range rnd.Perm(len(entries))[:n] {
			b.WriteString("  - " + entries[i] + "\n")
		}
		return b.String()
	}
	set := func(text string) *Set {
		if text == "" {
			return load(t)
		}
		return load(t, userFile(text))
	}
	m := view.NewMemory()
	for range 150 {
		a, b := file(), file()
		old, next := set(a), set(b)
		merged, tightened, loosened := Tighten(old, next)
		if len(tightened)+len(loosened) == 0 && old.Hash() != next.Hash() {
			t.Fatalf("nothing differs between\n%s\nand\n%s", a, b)
		}
		for _, profile := range []string{ProfileStandard, ProfileStrict, ProfileCI} {
			for _, cwd := range []string{"/home/dev/shop", "/home/dev/other"} {
				judge := func(s *Set) event.Decision {
					c := bashCall("rm -rf node_modules")
					c.Cwd, c.FirstCwd = cwd, cwd
					return newEngine(t, Options{Rules: s, Profile: profile}).Evaluate(t.Context(), c, m.NewReader()).Verdict
				}
				before, after, want := judge(old), judge(merged), judge(next)
				if after.Rank() < before.Rank() {
					t.Fatalf("%s in %s: %s became %s:\n%s\nto\n%s\ntightened %q, loosened %q", profile, cwd, before, after, a, b, tightened, loosened)
				}
				if len(loosened) == 0 && after != want {
					t.Fatalf("%s in %s: nothing waits, but %s is in force and the files say %s:\n%s\nto\n%s", profile, cwd, after, want, a, b)
				}
			}
		}
	}
}

func TestLinesOfADifferenceSayWhereATuneEntryCounts(t *testing.T) {
	t.Parallel()
	next := load(t, userFile("version: 1\ntune:\n  - {rule: delete.outside, to: ask, when: {project: [/home/dev/shop], agent: [claude]}}\n"))
	_, _, loosened := Tighten(load(t), next)
	if want := []string{"tune delete.outside to ask for claude; in /home/dev/shop: added"}; fmt.Sprint(loosened) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", loosened, want)
	}
}
