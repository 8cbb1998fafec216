// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

const (
	firedDays = 7
	firedTime = 2 * time.Second // for counting: the log may be long
)

// shownRule is a rule in the machine format of rules show.
type shownRule struct {
	listedRule
	Fired *int   `json:"fired_7d"` // calls that it decided in the last seven days; null = could not be counted
	Relax string `json:"relax"`    // the command line that relaxes it, or why there is none
}

func (a *app) rulesShow() *cobra.Command {
	out := newOutput(formatTable, formatJSON)
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show everything about one rule: its YAML, cases, tuning, and how often it decided",
		Long: `Show one rule: what it says as it is written, its own cases, what tunes it, how many calls it decided in the last seven
days, and how it is relaxed.

Exit codes: 0 ok, 1 error, 2 usage, 3 no such rule.`,
		Example:           `  auditctl rules show delete.regenerable`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: a.ruleIDs(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.runRulesShow(cmd.Context(), args[0], out.value)
		},
	}
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) runRulesShow(ctx context.Context, id string, f format) error {
	v, err := a.rulesInForce(ctx)
	if err != nil {
		return err
	}
	if _, err := v.find(id); err != nil {
		return err
	}
	fired := a.fired(ctx, v.places, id)
	var forms []shownRule
	for _, r := range v.all() {
		if r.ID == id {
			forms = append(forms, shownRule{listedRule: r, Fired: fired, Relax: a.relaxLine(r.RuleInfo, v.profile)})
		}
	}
	if f == formatJSON {
		return writeJSON(a.Out, forms)
	}
	for i, r := range forms {
		if i > 0 {
			fmt.Fprintln(a.Out)
		}
		if err := a.printRule(r); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) printRule(r shownRule) error {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-9s %s\n", name, show.Line(value, 4000))
		}
	}
	row("rule", r.ID)
	verdict := r.Effective
	if r.Floor {
		verdict += " (a deny that no rule, mode or approval lifts)"
	} else if r.Effective != string(r.Verdict) {
		verdict += " (as written: " + string(r.Verdict) + ")"
	}
	row("verdict", verdict)
	row("waits", r.Waits)
	row("layer", string(r.Layer))
	row("severity", r.Severity)
	row("why", r.Why)
	row("instead", r.Instead)
	row("gate", r.Gate)
	row("scope", r.Scope)
	for _, p := range []string{tripwires.ProfileStrict, tripwires.ProfileCI} {
		if d, ok := r.Profiles[p]; ok {
			row("profile", p+": "+string(d))
		}
	}
	for i, t := range tunedWords(r.RuleInfo) {
		row("tuned", fmt.Sprintf("%s (%s:%d)", strings.TrimPrefix(t, "tuned "), r.Tuned[i].File, r.Tuned[i].Line))
	}
	for _, c := range r.Match {
		row("matches", c)
	}
	for _, c := range r.NoMatch {
		row("not", c)
	}
	switch {
	case r.Fired == nil:
	case *r.Fired == 1:
		row("fired", fmt.Sprintf("decided 1 call in the last %d days", firedDays))
	default:
		row("fired", fmt.Sprintf("decided %d calls in the last %d days", *r.Fired, firedDays))
	}
	row("relax", r.Relax)
	row("written", fmt.Sprintf("%s:%d", r.File, r.Line))
	for line := range strings.SplitSeq(r.Source, "\n") {
		if line != "" {
			fmt.Fprintf(&b, "  %s\n", show.Line(line, 4000))
		}
	}
	_, err := io.WriteString(a.Out, b.String())
	return err
}

// relaxLine says how a rule is made milder.
func (a *app) relaxLine(r tripwires.RuleInfo, profile string) string {
	switch {
	case r.Floor:
		return "never: it is on the floor"
	case r.Layer != tripwires.LayerBuiltin:
		return fmt.Sprintf("it is your own: edit %s:%d", r.File, r.Line)
	case verdictOf(r, profile) == string(event.Pass):
		return "it passes already"
	}
	return a.paste("rules", "relax", r.ID, "--here")
}

// fired counts the calls that a rule decided lately; nil if that cannot be told, or not soon.
func (a *app) fired(ctx context.Context, p config.Places, id string) *int {
	ctx, cancel := context.WithTimeout(ctx, firedTime)
	defer cancel()
	n := 0
	f := record.Filter{Rule: id, From: a.Now().AddDate(0, 0, -firedDays), To: a.Now()}
	count := func(record.Call) error { n++; return nil }
	err := (&control.Client{Socket: p.ControlSocket}).Calls(ctx, f, count)
	if errors.Is(err, control.ErrUnreachable) {
		r, oerr := audit.OpenReader(p.LogDir, audit.ReaderOptions{KeyDir: p.KeysDir})
		if oerr != nil {
			return nil
		}
		defer r.Close()
		err = r.Calls(ctx, f, count)
	}
	if err != nil {
		return nil
	}
	return &n
}
