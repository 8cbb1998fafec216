// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

// ruleSelf is the built-in rule that keeps agents from acting on Tripline; the daemon's own process number is the one
// part of it that only the daemon knows.
const ruleSelf = "self.control"

// guardProcess puts a signal to this process on the floor, whatever the rules and the mode say.
func (d *Daemon) guardProcess(dec *tripwires.Decision) {
	pid := strconv.Itoa(d.pid)
	hit := slices.ContainsFunc(dec.Effects, func(e tripwires.Effect) bool {
		return e.Kind == tripwires.ProcessKill && strings.TrimLeft(e.Target, "-") == pid
	})
	if !hit || dec.Floor && dec.Verdict == event.Deny {
		return
	}
	why := "this would signal Tripline's daemon"
	dec.Verdict, dec.Floor, dec.Enforced = event.Deny, true, true
	dec.Rule, dec.RuleHash, dec.Gate = ruleSelf, ruleSelf, ""
	dec.Reason = why + ", process " + pid
	dec.Instead = "a person stops the daemon, in their own terminal."
	dec.Matches = slices.Insert(slices.Clone(dec.Matches), 0, tripwires.Match{
		Rule: ruleSelf, Layer: "floor", Verdict: event.Deny, Floor: true, Why: why, Token: pid,
	})
}
