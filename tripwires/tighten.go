// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"fmt"
	"slices"
	"strings"

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
			loosened = append(loosened, fmt.Sprintf("rule %s: allow added: %s", r.id, r.allows()))
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

// maxAllows bounds how much of an allow rule a line shows.
const maxAllows = 300

// allows says what an allow rule allows, for the person whose word puts it in force. Its hash makes sure that the rule which a
// person was shown is the one that comes in force.
func (r *rule) allows() string {
	text := strings.Join(patternTexts(r.patterns), ", ")
	if except := patternTexts(r.except); len(except) > 0 {
		text += " except " + strings.Join(except, ", ")
	}
	if when := r.scope.words(); when != "" {
		text += " " + when
	}
	return shorten(text, maxAllows) + " (" + r.hash[:min(len(r.hash), 16)] + ")"
}

// mergeTunes takes over what cannot soften. Of several entries for a rule the last one that applies counts, so an entry goes at
// once only if nothing that would count in its place is weaker, and comes at once only if it is as strict as all of that.
func mergeTunes(old, next, merged *Set, tightened, loosened *[]string) {
	both := func(list []*tune, t *tune) bool {
		return slices.ContainsFunc(list, func(o *tune) bool { return o.hash == t.hash })
	}
	waits := map[string]bool{} // by rule: the person is told of it anyway
	for i, t := range old.tunes {
		switch {
		case both(next.tunes, t):
			merged.tunes = append(merged.tunes, t)
		case t.to.Rank() > weakest(old, old.tunes[:i], t.rule):
			waits[t.rule] = true
			*loosened = append(*loosened, t.String()+": removed")
			merged.tunes = append(merged.tunes, t)
		default:
			*tightened = append(*tightened, t.String()+": removed")
		}
	}
	for _, t := range next.tunes {
		switch {
		case both(old.tunes, t):
		case t.to.Rank() >= strictest(old, old.tunes, t.rule):
			*tightened = append(*tightened, t.String()+": added")
			merged.tunes = append(merged.tunes, t)
		default:
			waits[t.rule] = true
			*loosened = append(*loosened, t.String()+": added")
		}
	}
	for _, t := range next.tunes {
		same := func(o *tune) bool { return o.rule == t.rule }
		if all := hashes(merged.tunes, same); !slices.Equal(all, hashes(next.tunes, same)) && !waits[t.rule] {
			waits[t.rule] = true
			*loosened = append(*loosened, "tune "+t.rule+": the order of its entries changed")
		}
	}
}

func hashes(tunes []*tune, which func(*tune) bool) []string {
	var out []string
	for _, t := range tunes {
		if which(t) {
			out = append(out, t.hash)
		}
	}
	return out
}

// verdicts are what a built-in rule may say without the entry that is looked at: in any profile, and by other entries.
func verdicts(s *Set, tunes []*tune, id string) []int {
	var out []int
	if r := s.find(id); r != nil {
		out = append(out, r.verdict.Rank())
		for _, v := range r.profiles {
			out = append(out, v.Rank())
		}
	}
	for _, t := range tunes {
		if t.rule == id {
			out = append(out, t.to.Rank())
		}
	}
	if len(out) == 0 { // there is no such rule: nothing is said
		out = append(out, 0)
	}
	return out
}

func weakest(s *Set, tunes []*tune, id string) int { return slices.Min(verdicts(s, tunes, id)) }

func strictest(s *Set, tunes []*tune, id string) int { return slices.Max(verdicts(s, tunes, id)) }

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
