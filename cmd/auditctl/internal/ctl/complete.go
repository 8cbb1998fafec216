// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

// completeTimeout bounds the question to the daemon behind a press of the tab key.
const completeTimeout = time.Second

// closedLists are the values of flags that take one of a few words, whichever command has the flag.
var closedLists = map[string][]string{
	"mode": {"guard", "ask", "plan", "auto", "observe"}, "profile": {"standard", "strict", "ci"}, "on-down": {"deny", "allow"},
	"fail-on": {"never", "asked", "denied", "floor", "alarm"}, "to": {"ask", "pass"}, "verdict": {"deny", "ask", "allow", "pass"},
	"agent": {"claude"}, "kind": {"tamper", "config", "daemon", "session", "approval", "gap"},
	"since": {"today", "yesterday", "1h", "1d", "7d", "30d"}, "until": {"today", "yesterday", "1h", "1d", "7d", "30d"},
}

// completions gives the commands of the tree what the tab key offers; where that is nothing, file names are not offered either.
func (a *app) completions(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.completions(sub)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		words := closedLists[f.Name]
		if o, ok := f.Value.(*outputFlag); ok {
			words = strings.Split(o.list("|"), "|")
		}
		if len(words) > 0 {
			// it fails only for a flag that is not there or has one already
			_ = c.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	})
	if c.ValidArgsFunction != nil || len(c.ValidArgs) > 0 {
		return
	}
	_, takes, _ := strings.Cut(c.Use, " ")
	switch {
	case strings.Contains(takes, "AGENT"):
		c.ValidArgsFunction = one([]string{"claude"})
	case strings.Contains(takes, "WHEN"):
		c.ValidArgsFunction = one([]string{"today", "yesterday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"})
	case c.Name() == "paths":
		c.ValidArgsFunction = one(placeNames())
	case takes == "ID" && c.HasParent() && c.Parent().Name() == "approvals":
		c.ValidArgsFunction = a.cardIDs
	case takes == "" || takes == "ID":
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// one offers words for the first argument and nothing for later ones.
func one(words []string) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// cardIDs offers the calls that wait for a decision.
func (a *app) cardIDs(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
	p, err := config.FindPlaces(a.Getenv)
	if err != nil || len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(cmd.Context()), completeTimeout)
	defer cancel()
	cards, err := (&control.Client{Socket: p.ControlSocket}).Approvals(ctx, false)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var out []cobra.Completion
	for _, c := range cards {
		if strings.HasPrefix(c.ID, prefix) {
			out = append(out, cobra.CompletionWithDesc(c.ID, show.Line(summary(c.Tool, c.Input), 60)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
