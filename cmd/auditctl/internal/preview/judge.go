// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"encoding/json"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// verdict is what is kept of a decision.
type verdict struct {
	decision event.Decision
	rule     string
	layer    string
	why      string // of the rule
	reason   string // of this call
	project  string
	floor    bool
	today    bool // it depends on files
	touches  bool // it passes, and deletes, empties or replaces something
}

func (v *verdict) stopped() bool { return v.decision == event.Deny || v.decision == event.Ask }

// judge runs calls through the engine and remembers its answers: agents repeat themselves. It is safe for concurrent use.
type judge struct {
	engine *tripwires.Engine
	snap   *snapshot
	homes  []string
	seed   maphash.Seed

	mu        sync.Mutex
	new, old  map[uint64]*verdict
	hits      int
	evaluated int
}

// cacheSize is how many answers a generation holds; there are two.
const cacheSize = 1 << 12

func newJudge(e *tripwires.Engine, snap *snapshot, homes []string) *judge {
	return &judge{engine: e, snap: snap, homes: homes, seed: maphash.MakeSeed(), new: make(map[uint64]*verdict)}
}

// judge answers for one call. A verdict depends on the tool, its input without commentary, and the two directories; not on the
// session.
func (j *judge) judge(ctx context.Context, tool string, input json.RawMessage, cwd, first string) *verdict {
	canonical, err := claude.Adapter{}.CanonicalInput(tool, input)
	if err != nil {
		return &verdict{decision: event.Deny, rule: "input.undecodable", layer: string(tripwires.LayerBuiltin),
			floor: true, why: "the tool's input cannot be read with certainty", reason: "the input of this call has more than one reading"}
	}
	key := j.key(tool, canonical, cwd, first)
	if v := j.cached(key); v != nil {
		return v
	}
	c := tripwires.Call{Agent: claude.Name, Tool: tool, Input: input, Cwd: cwd, FirstCwd: first, Homes: j.homes}
	reader := j.snap.reader(ctx)
	d := j.engine.Evaluate(ctx, c, reader)
	v := &verdict{decision: d.Verdict, rule: d.Rule, reason: d.Reason, project: d.Project, floor: d.Floor}
	for _, m := range d.Matches {
		if m.Rule == d.Rule {
			v.why, v.layer = m.Why, m.Layer
			break
		}
	}
	switch {
	case v.stopped():
		v.today = reader.content || j.dependsOnFiles(ctx, c, &d)
	default:
		v.touches = slices.ContainsFunc(d.Effects, touches)
	}
	if ctx.Err() == nil { // the answer to an expired context is not one
		j.keep(key, v)
	}
	return v
}

// dependsOnFiles reports whether the same call would be judged otherwise on a machine without any files.
func (j *judge) dependsOnFiles(ctx context.Context, c tripwires.Call, d *tripwires.Decision) bool {
	bare := j.engine.Evaluate(ctx, c, view.NewMemory().NewReader())
	return bare.Verdict != d.Verdict || bare.Rule != d.Rule
}

// touches reports whether an effect is judged by what is there.
func touches(e tripwires.Effect) bool {
	switch e.Kind {
	case tripwires.Delete, tripwires.Empty, tripwires.Overwrite:
		return e.Place != "" && e.Place != "temp"
	}
	return false
}

func (j *judge) key(tool string, input []byte, cwd, first string) uint64 {
	var h maphash.Hash
	h.SetSeed(j.seed)
	for _, s := range []string{tool, cwd, first} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	_, _ = h.Write(input)
	return h.Sum64()
}

func (j *judge) cached(key uint64) *verdict {
	j.mu.Lock()
	defer j.mu.Unlock()
	v, ok := j.new[key]
	if !ok {
		if v, ok = j.old[key]; ok {
			j.put(key, v)
		}
	}
	if ok {
		j.hits++
	}
	return v
}

func (j *judge) keep(key uint64, v *verdict) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.evaluated++
	j.put(key, v)
}

// put is called with the lock held. A full generation becomes the old one, and what was not asked for since goes.
func (j *judge) put(key uint64, v *verdict) {
	if len(j.new) >= cacheSize {
		j.old, j.new = j.new, make(map[uint64]*verdict)
	}
	j.new[key] = v
}
