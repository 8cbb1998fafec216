// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/transcript"
)

// Bounds of what is counted.
const (
	maxProjects = 20     // of a rule are named
	maxWhere    = 1000   // projects of a rule are counted
	maxDays     = 20_000 // are counted
)

// tally adds up. It is used by one goroutine.
type tally struct {
	stats    transcript.Stats
	known    map[uint64]struct{}
	seed     maphash.Seed
	sessions map[uint64]struct{} // hashes: there may be very many, and only their number is asked for
	projects map[uint64]struct{}
	rules    map[string]*Rule
	where    map[string]map[string]int // calls by project, by rule
	days     map[int32]dayCount
	copies   []seen // judged last: an original counts before its copies
	listed   []*Call
	held     int // bytes of listed, about
	max      int // bound of held
	sum      Summary
}

type dayCount struct{ asked, denied int }

func newTally(o *Options, s transcript.Stats) *tally {
	t := &tally{
		stats: s, known: map[uint64]struct{}{}, seed: maphash.MakeSeed(), sessions: map[uint64]struct{}{}, projects: map[uint64]struct{}{},
		rules: map[string]*Rule{}, where: map[string]map[string]int{}, days: map[int32]dayCount{}, max: maxListed,
	}
	if o.All {
		t.max = maxListedAll
	}
	return t
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
	day, worked := t.days[s.day]
	if !worked && s.day != noDay && len(t.days) < maxDays {
		t.days[s.day], worked = day, true
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
		t.rules[v.rule], t.where[v.rule] = r, map[string]int{}
	}
	where := t.where[v.rule]
	if _, ok := where[v.project]; ok || len(where) < maxWhere {
		where[v.project]++
	}
	if v.decision == event.Deny {
		t.sum.Denied++
		r.Denied++
		day.denied++
	} else {
		t.sum.Asked++
		r.Asked++
		day.asked++
	}
	if worked {
		t.days[s.day] = day
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
		r.Refused++
	}
	t.listed = append(t.listed, s.listed)
	if t.held += size(s.listed); t.held > t.max {
		t.forget()
	}
}

// size is what a listed call takes in memory, at most.
func size(c *Call) int {
	return 400 + len(c.Session) + len(c.Subagent) + len(c.Project) + len(c.Cwd) + len(c.ToolUseID) + len(c.Input) + len(c.Reason)
}

func (t *tally) sort() {
	slices.SortStableFunc(t.listed, func(a, b *Call) int { return a.Time.Compare(b.Time) })
}

// forget lets go of the oldest of the listed calls, so many that it is not called again soon.
func (t *tally) forget() {
	t.sort()
	n := 0
	for ; n < len(t.listed) && t.held > t.max/4*3; n++ {
		t.held -= size(t.listed[n])
	}
	t.sum.LeftOut += n
	t.listed = slices.Clone(t.listed[n:])
}

// busiest is the day with most stopped calls, nil if there is none.
func (t *tally) busiest() *Day {
	var best int32
	most := dayCount{}
	for day, n := range t.days {
		if d := n.asked + n.denied - most.asked - most.denied; d > 0 || d == 0 && n != (dayCount{}) && day < best {
			best, most = day, n
		}
	}
	if most == (dayCount{}) {
		return nil
	}
	return &Day{Date: time.Unix(int64(best)*86400, 0).UTC().Format(time.DateOnly), Asked: most.asked, Denied: most.denied}
}

func (t *tally) report() *Report {
	for i := range t.copies {
		t.count(&t.copies[i])
	}
	t.sort()
	rep := &Report{Summary: t.sum, Rules: []Rule{}, Calls: make([]Call, 0, len(t.listed))}
	for _, c := range t.listed {
		rep.Calls = append(rep.Calls, *c)
	}
	for _, r := range t.rules {
		where := t.where[r.Rule]
		r.Projects = slices.SortedFunc(maps.Keys(where), func(a, b string) int {
			return cmp.Or(cmp.Compare(where[b], where[a]), strings.Compare(a, b))
		})
		r.AllProjects = len(r.Projects)
		r.Projects = r.Projects[:min(len(r.Projects), maxProjects)]
		rep.Rules = append(rep.Rules, *r)
	}
	slices.SortFunc(rep.Rules, func(a, b Rule) int {
		all := func(r Rule) int { return r.Asked + r.Denied }
		return cmp.Or(cmp.Compare(all(b)-b.Refused, all(a)-a.Refused), cmp.Compare(all(b), all(a)), strings.Compare(a.Rule, b.Rule))
	})
	s := &rep.Summary
	s.Sessions, s.Projects, s.Days, s.Busiest = len(t.sessions), len(t.projects), len(t.days), t.busiest()
	if s.Calls > 0 {
		s.Stopped = float64(s.Asked+s.Denied) * 100 / float64(s.Calls)
	}
	s.Unread = Unread{
		Broken: t.stats.Broken, Oversized: t.stats.Oversized, Unfinished: t.stats.Unfinished, Files: t.stats.Irregular + t.stats.Unreadable,
		Links: t.stats.Links, Beyond: t.stats.Beyond,
	}
	return rep
}
