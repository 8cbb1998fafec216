// SPDX-License-Identifier: Apache-2.0

package tripwires

import "github.com/tripline-sh/tripline/hooks/event"

// modeOpinion is what the mode says of a call that no rule had an opinion on. It gives none in guard and observe.
func (x *evaluation) modeOpinion(matched event.Decision) (opinion, bool) {
	o := opinion{Match: Match{Layer: layerMode}}
	if x.unmapped && x.eng.unmapped != event.Pass && matched.Rank() < x.eng.unmapped.Rank() {
		o.Rule, o.Verdict, o.Why = "mode.unmapped", x.eng.unmapped, "no table knows this tool"
		return o, true
	}
	if matched != event.Pass {
		// plan refuses mutations even where a rule would let a person decide, or allows.
		if x.eng.mode == ModePlan && matched != event.Deny && x.mutates() {
			o.Rule, o.Verdict, o.Why = "mode.plan", event.Deny, "mode plan: nothing may be changed"
			return o, true
		}
		return o, false
	}
	switch x.eng.mode {
	case ModeAsk:
		if x.mutates() {
			o.Rule, o.Verdict, o.Why = "mode.ask", event.Ask, "mode ask: every change is asked for"
			return o, true
		}
	case ModePlan:
		if x.mutates() {
			o.Rule, o.Verdict, o.Why = "mode.plan", event.Deny, "mode plan: nothing may be changed"
			return o, true
		}
	case ModeAuto:
		if len(x.uncertain) == 0 && !x.unmapped {
			o.Rule, o.Verdict, o.Why = "mode.auto", event.Allow, "mode auto: nothing speaks against it"
			return o, true
		}
	}
	return o, false
}

// mutates reports whether the call would change anything, or might.
func (x *evaluation) mutates() bool {
	if x.unmapped || len(x.uncertain) > 0 {
		return true
	}
	for i := range x.findings {
		if f := &x.findings[i]; !f.quiet && f.Kind.mutates() {
			return true
		}
	}
	return false
}
