// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/tripwires"
)

func (a *app) rulesTest() *cobra.Command {
	return &cobra.Command{
		Use:   "test [FILE...]",
		Short: "Run the own cases of rules",
		Long: `Run the cases (match, no_match) of your rules, or of those in FILE..., and name each that comes out differently as
FILE:LINE:COLUMN. Nothing is run but the judgement: cases are text.

Exit codes: 0 all pass, 1 a case fails, or a file cannot be read, 2 usage.`,
		RunE: func(_ *cobra.Command, args []string) error { return a.runRulesTest(args) },
	}
}

func (a *app) runRulesTest(args []string) error {
	files, _, err := a.rulesFiles(args)
	if err != nil {
		return err
	}
	failures, rules, cases, err := tripwires.TestFiles(files)
	for _, f := range failures {
		fmt.Fprintln(a.Out, show.Line(fmt.Sprintf("%s:%d:%d: %s", f.File, f.Line, f.Col, f), 2000))
	}
	if err != nil {
		return failf("", "%v", err)
	}
	if len(failures) > 0 {
		fmt.Fprintf(a.Err, "%d of %s of %s fail\n", len(failures), words.Count(cases, "case"), words.Count(rules, "rule"))
		return quiet(exitError)
	}
	if len(files) == 0 {
		a.sayNoRules()
		return nil
	}
	fmt.Fprintf(a.Out, "%s, %s: all pass\n", words.Count(rules, "rule"), words.Count(cases, "case"))
	return nil
}
