// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/transcript"
)

// Bounds of the projects of a rule.
const (
	maxProjects = 20   // are named
	maxWhere    = 1000 // are counted
)

// tally adds up. It is used by one goroutine.
type tally struct {
	stats    transcript.Stats
	known    map[uint64]struct{}
	seed     maphash.Seed
	sessions map[uint64]struct{} // hashes: there may be very many, and only their number is asked for
	projects map[uint64]struct{}
	rules    map[string]*Rule
	where    map[string]map[string]struct{} // projects, by rule
	copies   []seen                         // judged last: an original counts before its copies
	listed   []*Call
	sum      Summary
}

func newTally(s transcript.Stats) *tally {
	return &tally{stats: s, known: map[uint64]struct{}{}, seed: maphash.MakeSeed(), sessions: map[uint64]struct{}{}, projects: map[uint64]struct{}{}, rules: map[string]*Rule{},
		where: map[string]map[string]struct{}{}}
}

// take adds the calls of a file.
func (t *tally) take(res *fileResult) {
	t.stats.Add(res.stats)
	for _, s := range res.calls {
		if s.session != "" {
			t.sessions[maphash.String(t.seed, s.session)] = struct{}{}
		}
		if s.copied {
			t.copies = append(t.copies, s)
		} else {
			t.count(&s)
		}
	}
}

func (t *tally) count(s *seen) {
	if _, ok := t.known[s.key]; ok {
		t.sum.Repeated++
		return
	}
	t.known[s.key] = struct{}{}
	if s.tooLarge {
		t.sum.TooLarge++
		return
	}
	v := s.verdict
	t.sum.Calls++
	if v.project != "" {
		t.projects[maphash.String(t.seed, v.project)] = struct{}{}
	}
	if !v.stopped() {
		t.sum.AsBefore++
		if v.touches {
			t.sum.PassedToday++
		}
		return
	}
	r := t.rules[v.rule]
	if r == nil {
		r = &Rule{Rule: v.rule, Layer: v.layer, Why: v.why, Floor: v.floor}
		t.rules[v.rule], t.where[v.rule] = r, map[string]struct{}{}
	}
	if where := t.where[v.rule]; len(where) < maxWhere {
		where[v.project] = struct{}{}
	}
	if v.decision == event.Deny {
		t.sum.Denied++
		r.Denied++
	} else {
		t.sum.Asked++
		r.Asked++
	}
	if v.floor {
		t.sum.Floor++
	}
	if v.today {
		t.sum.Today++
		r.Today++
	}
	if s.listed.Refused != "" {
		t.sum.Refused++
	}
	t.listed = append(t.listed, s.listed)
	if len(t.listed) >= 2*maxListed {
		t.newest()
	}
}

// newest sorts the listed calls and forgets the oldest ones beyond the bound.
func (t *tally) newest() {
	slices.SortStableFunc(t.listed, func(a, b *Call) int { return a.Time.Compare(b.Time) })
	if n := len(t.listed) - maxListed; n > 0 {
		t.sum.LeftOut += n
		t.listed = slices.Clone(t.listed[n:])
	}
}

func (t *tally) report() *Report {
	for i := range t.copies {
		t.count(&t.copies[i])
	}
	t.newest()
	rep := &Report{Summary: t.sum, Rules: []Rule{}, Calls: make([]Call, 0, len(t.listed))}
	for _, c := range t.listed {
		rep.Calls = append(rep.Calls, *c)
	}
	for _, r := range t.rules {
		r.Projects = slices.Sorted(maps.Keys(t.where[r.Rule]))
		r.AllProjects = len(r.Projects)
		r.Projects = r.Projects[:min(len(r.Projects), maxProjects)]
		rep.Rules = append(rep.Rules, *r)
	}
	slices.SortFunc(rep.Rules, func(a, b Rule) int {
		return cmp.Or(cmp.Compare(b.Asked+b.Denied, a.Asked+a.Denied), strings.Compare(a.Rule, b.Rule))
	})
	s := &rep.Summary
	s.Sessions, s.Projects = len(t.sessions), len(t.projects)
	if s.Calls > 0 {
		s.Stopped = float64(s.Asked+s.Denied) * 100 / float64(s.Calls)
	}
	s.Unread = Unread{
		Broken: t.stats.Broken, Oversized: t.stats.Oversized, Unfinished: t.stats.Unfinished, Files: t.stats.Irregular + t.stats.Unreadable,
		Links: t.stats.Links, Beyond: t.stats.Beyond,
	}
	return rep
}
