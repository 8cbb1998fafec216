// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/tripwires"
)

func (a *app) rulesLint() *cobra.Command {
	out := newOutput(formatTable, formatJSON, formatJSONL)
	cmd := &cobra.Command{
		Use:   "lint [FILE...]",
		Short: "Look for mistakes in rules files",
		Long: `Check your rules, or FILE..., for what the daemon would refuse (error), for what does not do what it says (warning), and for
what could be said better (note). Only what can be proved is reported. Each finding is FILE:LINE:COLUMN: SEVERITY: TEXT.

Exit codes: 0 no errors, 1 a finding is an error, or the files cannot be read, 2 usage.`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runRulesLint(cmd.Context(), out.value, args) },
	}
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) runRulesLint(ctx context.Context, f format, args []string) error {
	files, dir, err := a.rulesFiles(args)
	if err != nil {
		return err
	}
	found, err := tripwires.Lint(ctx, files)
	if err != nil {
		return err
	}
	if fi, err := os.Stat(dir); dir != "" && err == nil && fi.Mode().Perm()&0o022 != 0 {
		found = append([]tripwires.LintFinding{{File: dir, Line: 1, Col: 1, Severity: tripwires.LintWarning,
			Text: fmt.Sprintf("other users may put rules into this directory (mode %#o): chmod 700", fi.Mode().Perm())}}, found...)
	}
	by := map[string]int{}
	for _, x := range found {
		by[x.Severity]++
	}
	switch f {
	case formatJSON:
		if found == nil {
			found = []tripwires.LintFinding{}
		}
		err = writeJSON(a.Out, found)
	case formatJSONL:
		for _, x := range found {
			if err = writeJSONL(a.Out, x); err != nil {
				return err
			}
		}
	default:
		for _, x := range found {
			fmt.Fprintln(a.Out, show.Line(x.String(), 2000))
		}
	}
	if err != nil {
		return err
	}
	if len(files) == 0 {
		a.sayNoRules()
	} else {
		fmt.Fprintf(a.Err, "%s: %s, %s, %s\n", words.Count(len(files), "file"), words.Count(by[tripwires.LintError], "error"), words.Count(by[tripwires.LintWarning], "warning"), words.Count(by[tripwires.LintNote], "note"))
	}
	if by[tripwires.LintError] > 0 {
		return quiet(exitError)
	}
	return nil
}

// rulesFiles reads the files that are named, or the user's rules; dir is then their directory.
func (a *app) rulesFiles(names []string) (files []tripwires.File, dir string, err error) {
	if len(names) == 0 {
		p, err := a.places()
		if err != nil {
			return nil, "", err
		}
		files, err := tripwires.ReadRulesDir(p.RulesDir, tripwires.LayerUser)
		if err != nil {
			return nil, "", failf("", "%v", err)
		}
		return files, p.RulesDir, nil
	}
	for _, name := range names {
		f, err := tripwires.ReadRulesFile(filepath.Clean(name), tripwires.LayerUser)
		if err != nil {
			return nil, "", failf("", "%v", err)
		}
		files = append(files, f)
	}
	return files, "", nil
}

// sayNoRules tells what there is to do for a person who has no rules yet.
func (a *app) sayNoRules() {
	fmt.Fprintf(a.Err, "you have no rules of your own; the built-in ones are in force: %s\n", a.paste("rules", "list"))
}
