// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"context"
	"fmt"
	"slices"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// Engine judges calls. It is immutable and safe for concurrent use.
type Engine struct {
	rules    *Set
	programs map[string]program
	mode     string
	profile  string
	unmapped event.Decision
	own      []string
	settings SettingsJudge
}

// New checks the options and makes an Engine.
func New(o Options) (*Engine, error) {
	e := &Engine{rules: o.Rules, programs: programTable(), mode: o.Mode, profile: o.Profile, unmapped: o.Unmapped, own: slices.Clone(o.OwnPaths), settings: o.Settings}
	if e.rules == nil {
		s, err := Load(nil)
		if err != nil {
			return nil, fmt.Errorf("built-in rules: %w", err)
		}
		e.rules = s
	}
	if e.mode == "" {
		e.mode = ModeGuard
	}
	if !slices.Contains([]string{ModeGuard, ModeAsk, ModePlan, ModeAuto, ModeObserve}, e.mode) {
		return nil, fmt.Errorf("unknown mode %q", o.Mode)
	}
	if e.profile == "" {
		e.profile = ProfileStandard
	}
	if !slices.Contains([]string{ProfileStandard, ProfileStrict, ProfileCI}, e.profile) {
		return nil, fmt.Errorf("unknown profile %q", o.Profile)
	}
	switch e.unmapped {
	case "":
		e.unmapped = event.Pass
	case event.Pass, event.Ask, event.Deny:
	default:
		return nil, fmt.Errorf("unmapped must be pass, ask or deny, not %q", o.Unmapped)
	}
	return e, nil
}

// Rules returns the set in force.
func (e *Engine) Rules() *Set { return e.rules }

// Evaluate judges one call. It never panics and its work is bounded by the caps of the parser and of the view; a fault of
// ours is a deny by rule engine.panic, an expired context a deny by engine.deadline. r serves this call only.
func (e *Engine) Evaluate(ctx context.Context, c Call, r view.Reader) (d Decision) {
	x := &evaluation{eng: e, ctx: ctx, call: c, meter: meter{left: maxWork}}
	x.view = metered{r, &x.meter}
	defer func() {
		if p := recover(); p != nil {
			d = x.fault("engine.panic", "the rules engine failed on this call")
		}
	}()
	if ctx.Err() != nil {
		return x.fault("engine.deadline", "there was no time left to judge this call")
	}
	x.prepare()
	x.effects()
	if x.meter.out {
		x.beyondBounds("the call names more files than can be looked at")
	}
	if ctx.Err() != nil {
		return x.fault("engine.deadline", "there was no time left to judge this call")
	}
	return x.decide()
}

// fault is the answer to a failure of ours: it denies and is enforced in every mode.
func (x *evaluation) fault(id, why string) Decision {
	return Decision{
		Verdict: event.Deny, Enforced: true, Rule: id, RuleHash: contentHash([]byte(id)), Reason: why,
		Instead: "tell the person; `auditctl query` shows this call",
		Effects: []Effect{}, Matches: []Match{{Rule: id, Layer: string(LayerBuiltin), Verdict: event.Deny, Why: why}},
		Mode: x.eng.mode, Profile: x.eng.profile, Project: x.root, RuleSet: x.eng.rules.hash,
	}
}

// decide turns findings into the decision: the strictest opinion wins.
func (x *evaluation) decide() Decision {
	ops := x.judge()
	d := Decision{
		Verdict: event.Pass, Enforced: true, Effects: []Effect{}, Matches: []Match{},
		Mode: x.eng.mode, Profile: x.eng.profile, Project: x.root, RuleSet: x.eng.rules.hash, ReadSet: x.view.ReadSet(),
	}
	matched := event.Pass
	for _, o := range ops {
		matched = event.Stricter(matched, o.Verdict)
	}
	if o, ok := x.modeOpinion(matched); ok {
		ops = append(ops, o)
		slices.SortStableFunc(ops, compareOpinions)
	}
	seen := map[string]bool{}
	for i := range x.findings {
		f := &x.findings[i]
		if key := f.key(); !f.quiet && !seen[key] && len(d.Effects) < maxEffects {
			seen[key] = true
			d.Effects = append(d.Effects, f.shown())
		}
	}
	for _, o := range ops {
		m := o.Match
		m.Token = shorten(m.Token, 200)
		d.Matches = append(d.Matches, m)
	}
	if len(ops) > 0 && ops[0].Verdict != event.Pass {
		x.explain(&d, ops)
	}
	if x.eng.mode == ModeObserve && !d.Floor {
		d.Enforced = false
	}
	d.Trace = x.steps
	return d
}

// explain fills in what the deciding opinion says.
func (x *evaluation) explain(d *Decision, ops []opinion) {
	o := ops[0]
	d.Verdict, d.Rule, d.Floor = o.Verdict, o.Rule, o.Floor
	d.RuleHash = contentHash([]byte(o.Rule))
	if o.rule != nil {
		d.RuleHash, d.Instead = o.rule.hash, o.rule.instead
	}
	d.Reason = x.reason(o)
	if d.Verdict == event.Ask {
		d.Gate = strictestGate(ops)
		d.Session = slices.ContainsFunc(ops, func(o opinion) bool { return o.Verdict == event.Ask && o.rule != nil && o.rule.scope.session })
	}
	if d.Verdict == event.Allow {
		d.Instead = ""
	}
}

// strictestGate is the gate of the asks that hold: a hold or webhook that any rule wants is not undercut by another rule's
// prompt.
func strictestGate(ops []opinion) string {
	order := []string{"", "native", "hold"}
	best := 0
	for _, o := range ops {
		if o.Verdict == event.Ask && o.rule != nil {
			best = max(best, slices.Index(order, o.rule.gate))
		}
	}
	return order[best]
}
