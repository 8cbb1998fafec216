// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/tripwires"
)

type rulesListOptions struct {
	layer  string
	output *outputFlag
}

// listedRule is a rule in the machine formats of rules list.
type listedRule struct {
	tripwires.RuleInfo
	Effective string `json:"effective"`       // floor, deny, ask, allow or pass: in the profile in force, where no scope limits it
	InForce   bool   `json:"in_force"`        // false: only on disk
	Waits     string `json:"waits,omitempty"` // what waits for a person's reload
}

func (a *app) rulesList() *cobra.Command {
	o := &rulesListOptions{output: newOutput(formatTable, formatJSON, formatJSONL)}
	cmd := &cobra.Command{
		Use:   "list [PATTERN]",
		Short: "List the rules in force, built-in ones included",
		Long: `List the rules in force: from the daemon if one runs, else from the files. PATTERN is a part of the id, or a pattern such
as 'git.*'. What is on disk and waits for a person's reload is marked.

Exit codes: 0 ok, 1 error, 2 usage, 3 nothing found.`,
		Example: `  auditctl rules list delete.
  auditctl rules list --layer user -o json`,
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: a.ruleIDs(false),
		RunE: func(cmd *cobra.Command, args []string) error {
			pattern := ""
			if len(args) == 1 {
				pattern = args[0]
			}
			return a.runRulesList(cmd.Context(), o, pattern)
		},
	}
	cmd.Flags().StringVar(&o.layer, "layer", "", "only this layer: builtin, system, user or project")
	cmd.Flags().VarP(o.output, "output", "o", "output format")
	return cmd
}

func (a *app) runRulesList(ctx context.Context, o *rulesListOptions, pattern string) error {
	switch tripwires.Layer(o.layer) {
	case "", tripwires.LayerBuiltin, tripwires.LayerSystem, tripwires.LayerUser, tripwires.LayerProject:
	default:
		return usagef("unknown layer %q: it is one of builtin, system, user, project", o.layer)
	}
	if _, err := path.Match(pattern, ""); err != nil {
		return usagef("%q is not a pattern", pattern)
	}
	v, err := a.rulesInForce(ctx)
	if err != nil {
		return err
	}
	out := []listedRule{}
	for _, r := range v.all() {
		if (o.layer == "" || string(r.Layer) == o.layer) && namedBy(pattern, r.ID) {
			r.Source = ""
			out = append(out, r)
		}
	}
	switch o.output.value {
	case formatJSON:
		err = writeJSON(a.Out, out)
	case formatJSONL:
		for _, r := range out {
			if err = writeJSONL(a.Out, r); err != nil {
				return err
			}
		}
	default:
		err = a.printRules(out)
	}
	if err == nil && len(out) == 0 {
		fmt.Fprintln(a.Err, "nothing found")
		return quiet(exitNothing)
	}
	return err
}

// all are the rules in force, and those that wait on disk to be.
func (v *ruleSets) all() []listedRule {
	var disk []tripwires.RuleInfo
	if v.disk != nil {
		disk = v.disk.Rules()
	}
	var out []listedRule
	inForce := v.set.Rules()
	for _, r := range inForce {
		out = append(out, listedRule{RuleInfo: r, Effective: verdictOf(r, v.profile), InForce: true, Waits: v.waits(r, disk)})
	}
	for _, r := range disk {
		if !slices.ContainsFunc(inForce, func(o tripwires.RuleInfo) bool { return o.ID == r.ID && o.Hash == r.Hash }) {
			out = append(out, listedRule{RuleInfo: r, Effective: verdictOf(r, v.profile), Waits: "on disk only, waits for rules reload"})
		}
	}
	return out
}

func (a *app) printRules(rules []listedRule) error {
	if len(rules) == 0 {
		return nil
	}
	t := &table{header: []string{"ID", "VERDICT", "LAYER", "WHY"}, color: a.verdictColor(1)}
	for _, r := range rules {
		var notes []string
		if r.Waits != "" {
			notes = append(notes, r.Waits)
		}
		notes = append(notes, tunedWords(r.RuleInfo)...)
		why := r.Why
		if len(notes) > 0 {
			why = "(" + strings.Join(notes, "; ") + ") " + why
		}
		t.add(r.ID, r.Effective, string(r.Layer), dash(strings.TrimSpace(why)))
	}
	return t.print(a.Out, a.Width)
}

// namedBy reports whether an id matches what was asked for: a part of it, or a pattern.
func namedBy(pattern, id string) bool {
	if strings.ContainsAny(pattern, "*?[") {
		ok, err := path.Match(pattern, id)
		return err == nil && ok
	}
	return strings.Contains(id, pattern)
}
