// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

// ruleSets is what the commands about rules look at.
type ruleSets struct {
	places  config.Places
	set     *tripwires.Set // in force: the daemon's if one runs, else what the files say
	profile string
	daemon  bool
	disk    *tripwires.Set // what the files say; nil if they cannot be used
	diskErr error
}

// rulesInForce asks the daemon for the rules in force, or reads the files if no daemon runs, and says so on stderr.
func (a *app) rulesInForce(ctx context.Context) (*ruleSets, error) {
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	v := &ruleSets{places: p, profile: tripwires.ProfileStandard}
	v.disk, v.diskErr = readRules(p)
	if c, err := config.Load(p.ConfigFile); err == nil {
		v.profile = c.Profile
	} else if v.diskErr == nil {
		v.diskErr = err
	}
	r, err := (&control.Client{Socket: p.ControlSocket}).Rules(ctx)
	switch {
	case errors.Is(err, control.ErrUnreachable):
		if v.diskErr != nil {
			return nil, failf("mend the file; until then the daemon keeps the last good rules", "%v", v.diskErr)
		}
		v.set = v.disk
		fmt.Fprintln(a.Err, "the daemon is not running; these are the rules of the files")
		return v, nil
	case err != nil:
		return nil, a.controlError(err)
	}
	if v.set, err = daemonRules(r); err != nil {
		return nil, failf("use an auditctl of the same version as the daemon", "the daemon's rules cannot be read: %v", err)
	}
	v.profile, v.daemon = r.Profile, true
	if v.set.Hash() != r.RuleSet {
		fmt.Fprintln(a.Err, "warning: the daemon is of another version; its built-in rules differ from those shown")
	}
	if v.diskErr != nil {
		fmt.Fprintf(a.Err, "warning: the files on disk are not in force: %s\n", show.Line(v.diskErr.Error(), 500))
	}
	return v, nil
}

// daemonRules loads the rules that a daemon has in force.
func daemonRules(r control.RulesResponse) (*tripwires.Set, error) {
	var files []tripwires.File
	for _, f := range r.Files {
		files = append(files, tripwires.File{Path: f.Path, Layer: tripwires.Layer(f.Layer), Data: f.Data, Generation: f.Generation})
	}
	return tripwires.Load(files)
}

// readRules loads the user's rules as they stand on disk.
func readRules(p config.Places) (*tripwires.Set, error) {
	files, err := tripwires.ReadRulesDir(p.RulesDir, tripwires.LayerUser)
	if err != nil {
		return nil, err
	}
	return tripwires.Load(files)
}

// find returns what is in force under an id. Where there is nothing, the error names what may be meant.
func (v *ruleSets) find(id string) ([]tripwires.RuleInfo, error) {
	var out []tripwires.RuleInfo
	for _, r := range v.set.Rules() {
		if r.ID == id {
			out = append(out, r)
		}
	}
	if len(out) == 0 && v.disk != nil {
		for _, r := range v.disk.Rules() {
			if r.ID == id {
				out = append(out, r)
			}
		}
	}
	if len(out) > 0 {
		return out, nil
	}
	e := &Error{Code: exitNothing, Msg: fmt.Sprintf("there is no rule %q", show.Line(id, 100))}
	if near := tripwires.Near(id, v.set.RuleIDs()); len(near) > 0 {
		e.Hints = []string{"did you mean " + strings.Join(near, ", ") + "?"}
	}
	return nil, e
}

// verdict is what a rule says in a profile to calls of any project, as one word; "floor" for what nothing lifts.
func verdictOf(r tripwires.RuleInfo, profile string) string {
	if r.Floor {
		return "floor"
	}
	verdict := r.Verdict
	if d, ok := r.Profiles[profile]; ok {
		verdict = d
	}
	for _, t := range r.Tuned {
		if t.When == "" {
			verdict = t.To
		}
	}
	return string(verdict)
}

// tunedWords says what tune entries make of a rule.
func tunedWords(r tripwires.RuleInfo) []string {
	var out []string
	for _, t := range r.Tuned {
		text := "tuned to " + string(t.To)
		if t.When != "" {
			text += " " + t.When
		}
		out = append(out, text)
	}
	return out
}

// waits says what of a rule's edits on disk waits for a person's reload, "" if nothing does.
func (v *ruleSets) waits(r tripwires.RuleInfo, disk []tripwires.RuleInfo) string {
	if !v.daemon || v.disk == nil {
		return ""
	}
	same := func(o tripwires.RuleInfo) bool { return o.ID == r.ID && o.Hash == r.Hash }
	i := slices.IndexFunc(disk, same)
	switch {
	case i < 0 && slices.ContainsFunc(disk, func(o tripwires.RuleInfo) bool { return o.ID == r.ID }):
		return "changed on disk, this form waits for rules reload"
	case i < 0:
		return "gone from disk, waits for rules reload"
	}
	tuned := func(list []tripwires.TuneInfo) (out []string) {
		for _, t := range list {
			out = append(out, string(t.To)+" "+t.When)
		}
		return out
	}
	now, next := tuned(r.Tuned), tuned(disk[i].Tuned)
	if !slices.Equal(now, next) {
		return "a tune entry waits for rules reload"
	}
	return ""
}

// ruleIDs completes rule ids, from the files; with tunable set only those that relax takes.
func (a *app) ruleIDs(tunable bool) func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return func(_ *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		p, err := config.FindPlaces(a.Getenv)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		set, err := readRules(p)
		if err != nil {
			if set, err = tripwires.Load(nil); err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
		}
		var out []string
		for _, r := range set.Rules() {
			if strings.HasPrefix(r.ID, prefix) && (!tunable || r.Layer == tripwires.LayerBuiltin && !r.Floor && r.Verdict != event.Allow) {
				out = append(out, cobra.CompletionWithDesc(r.ID, show.Line(r.Why, 60)))
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
}
