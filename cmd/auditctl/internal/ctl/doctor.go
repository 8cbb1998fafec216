// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/doctor"
)

type doctorOptions struct {
	output   *outputFlag
	noCanary bool
	verbose  bool
}

func (a *app) doctor() *cobra.Command {
	o := &doctorOptions{output: newOutput(formatTable, formatJSON)}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Look for everything that keeps this install from working, and send a test call",
		Long: `Look at everything that status looks at, and at programs, versions, PATH, switches that turn hooks off, foreign entries, files,
sockets, the file system and the clock. Nothing is changed. Each finding comes with the command that mends it.

Then send two calls through the hook: "rm -rf /", which must be denied, and "ls", which must pass; both must be on record. They
are judged only: neither is run. The hook is run only if it is the one beside this program, nobody else can change it, and the
agent's settings hold byte for byte what install would write, or nothing of ours. Nothing else is ever run.

-o json gives one object: outcome (ok or problem), passed (number of checks), canary {ran, why, wired, deny_ms, pass_ms, recorded},
checks [{id, title, findings}], problems [{id, severity, text, command, evidence}]. Keys are added, never renamed.

Exit codes: 0 nothing but notes and warnings, 1 a problem, 2 usage.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runDoctor(cmd.Context(), o) },
	}
	cmd.Flags().VarP(o.output, "output", "o", "output format")
	cmd.Flags().BoolVar(&o.noCanary, "no-canary", false, "send no test call")
	cmd.Flags().BoolVarP(&o.verbose, "verbose", "v", false, "list the checks that passed, and what was seen")
	return cmd
}

// doctorView is what doctor shows; its JSON is a promise.
type doctorView struct {
	Outcome  string           `json:"outcome"`
	Passed   int              `json:"passed"`
	Canary   doctor.Canary    `json:"canary"`
	Checks   []doctor.Result  `json:"checks"`
	Problems []doctor.Finding `json:"problems"`
}

func (a *app) runDoctor(ctx context.Context, o *doctorOptions) error {
	f, err := a.look(ctx)
	if err != nil {
		return err
	}
	v := doctorView{Outcome: "ok", Checks: doctor.Run(ctx, doctor.Checks(), f), Canary: doctor.Canary{Why: "--no-canary was given"}}
	if !o.noCanary {
		var r doctor.Result
		v.Canary, r = doctor.RunCanary(ctx, f)
		v.Checks = append(v.Checks, r)
	}
	for i := range v.Checks {
		if v.Checks[i].Passed() {
			v.Passed++
		}
		v.Checks[i].Findings = append([]doctor.Finding{}, v.Checks[i].Findings...) // [] and not null
	}
	v.Problems = doctor.Findings(v.Checks)
	if has(v.Problems, doctor.Problem) {
		v.Outcome = "problem"
	}
	if o.output.value == formatJSON {
		err = writeJSON(a.Out, v)
	} else {
		err = a.printDoctor(a.Out, &v, o.verbose)
	}
	if err == nil && v.Outcome != "ok" {
		err = quiet(exitError)
	}
	return err
}

func (a *app) printDoctor(w io.Writer, v *doctorView, verbose bool) error {
	var b strings.Builder
	a.findings(&b, v.Problems, verbose)
	if verbose {
		r := rows{w: &b, width: a.screenWidth(), label: 9}
		for _, c := range v.Checks {
			if !c.Passed() {
				continue
			}
			text := c.Title
			for _, f := range c.Findings {
				text += ": " + f.Text
			}
			r.add("ok", text, a.severityPaint(doctor.OK))
		}
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	line := fmt.Sprintf("%d %s passed", v.Passed, plural(v.Passed, "check"))
	for _, s := range []doctor.Severity{doctor.Problem, doctor.Warning, doctor.Note} {
		n := 0
		for _, f := range v.Problems {
			if f.Severity == s {
				n++
			}
		}
		if n > 0 {
			line += fmt.Sprintf(", %d %s", n, plural(n, string(s)))
		}
	}
	if !verbose {
		line += " (-v lists all)"
	}
	b.WriteString(line + "\n")
	if v.Canary.Ran && v.Canary.Recorded == 2 {
		fmt.Fprintf(&b, "test calls through the hook: denied in %.1f ms, passed in %.1f ms, both recorded\n", v.Canary.DenyMS, v.Canary.PassMS)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
