// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"fmt"
	"slices"

	"github.com/tripline-sh/tripline/hooks/event"
)

// maxGenerations bounds how many edits Set.Files keeps between two reloads by a person. Beyond it the set in force stays
// right, but only the oldest and the newest edits would survive a restart.
const maxGenerations = 16

// emptyGeneration is the path of the entry that stands for "no files".
const emptyGeneration = "none"

// Tighten merges a new set into the one in force so that nothing becomes weaker: merged holds everything that old refuses or
// asks, and what next adds to it. tightened lists what was taken over at once, loosened what waits for a person's reload,
// each as one line for the config.* record. When both are empty the sets say the same.
//
// A changed deny or ask rule is added beside its old form, under the same id: the strictest wins, so the result can only be
// as strict as both. Allow rules and softening tune entries count only while both sets have them.
func Tighten(old, next *Set) (merged *Set, tightened, loosened []string) {
	merged = &Set{files: old.files}
	both := func(list []*rule, r *rule) bool {
		return slices.ContainsFunc(list, func(o *rule) bool { return o.hash == r.hash })
	}
	for _, r := range old.rules {
		kept := both(next.rules, r)
		if !kept && r.verdict == event.Allow {
			tightened = append(tightened, fmt.Sprintf("rule %s: allow removed", r.id))
			continue
		}
		if !kept {
			loosened = append(loosened, fmt.Sprintf("rule %s: %s removed or changed", r.id, r.verdict))
		}
		merged.rules = append(merged.rules, r)
	}
	for _, r := range next.rules {
		switch {
		case both(old.rules, r):
		case r.verdict == event.Allow:
			loosened = append(loosened, fmt.Sprintf("rule %s: allow added", r.id))
		default:
			tightened = append(tightened, fmt.Sprintf("rule %s: %s added or changed", r.id, r.verdict))
			merged.rules = append(merged.rules, r)
		}
	}
	mergeTunes(old, next, merged, &tightened, &loosened)
	if len(tightened) > 0 {
		merged.files = laterGeneration(old.files, next.files)
	}
	merged.seal()
	return merged, tightened, loosened
}

func mergeTunes(old, next, merged *Set, tightened, loosened *[]string) {
	both := func(list []*tune, t *tune) bool {
		return slices.ContainsFunc(list, func(o *tune) bool { return o.hash == t.hash })
	}
	raises := func(s *Set, t *tune) bool {
		r := s.find(t.rule)
		return r != nil && t.to.Rank() >= r.verdict.Rank()
	}
	for _, t := range old.tunes {
		switch {
		case both(next.tunes, t):
			merged.tunes = append(merged.tunes, t)
		case raises(old, t):
			*loosened = append(*loosened, fmt.Sprintf("tune %s to %s: removed", t.rule, t.to))
			merged.tunes = append(merged.tunes, t)
		default:
			*tightened = append(*tightened, fmt.Sprintf("tune %s to %s: removed", t.rule, t.to))
		}
	}
	for _, t := range next.tunes {
		switch {
		case both(old.tunes, t):
		case raises(next, t):
			*tightened = append(*tightened, fmt.Sprintf("tune %s to %s: added", t.rule, t.to))
			merged.tunes = append(merged.tunes, t)
		default:
			*loosened = append(*loosened, fmt.Sprintf("tune %s to %s: added", t.rule, t.to))
		}
	}
}

// laterGeneration appends the files of next above every generation of old. Where old has no files, generation 0 is empty.
func laterGeneration(old, next []File) []File {
	top := 0
	for _, f := range old {
		top = max(top, f.Generation)
	}
	out := slices.Clone(old)
	if top >= maxGenerations {
		out = slices.DeleteFunc(out, func(f File) bool { return f.Generation == top })
		top--
	}
	if len(next) == 0 { // no rules at all is a generation too: it takes allow rules away
		next = []File{{Path: emptyGeneration}}
	}
	for _, f := range next {
		f.Generation = top + 1
		out = append(out, f)
	}
	return out
}
