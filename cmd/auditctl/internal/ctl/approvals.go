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

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/control"
)

func (a *app) approvals() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approvals",
		Short: "See and decide what waits for a person",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.approvalsList(), a.approvalsShow(), a.approvalsDecide("approve"), a.approvalsDecide("deny"))
	return cmd
}

func (a *app) approvalsList() *cobra.Command {
	all := false
	out := newOutput(formatTable, formatJSON, formatJSONL)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the calls that wait for a decision",
		Long: `List the calls that wait for a decision.

Exit codes: 0 ok (also when nothing waits), 1 error, 2 usage, 7 daemon unreachable.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			cards, err := c.Approvals(cmd.Context(), all)
			if err != nil {
				return a.controlError(err)
			}
			return a.printCards(out.value, cards)
		},
	}
	cmd.Flags().BoolVar(&all, "all", false, "also those that are decided or over")
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) printCards(f format, cards []control.Approval) error {
	if cards == nil {
		cards = []control.Approval{}
	}
	switch f {
	case formatJSON:
		return writeJSON(a.Out, cards)
	case formatJSONL:
		for _, c := range cards {
			if err := writeJSONL(a.Out, c); err != nil {
				return err
			}
		}
		return nil
	}
	if len(cards) == 0 {
		fmt.Fprintln(a.Err, "nothing waits for a decision")
		return nil
	}
	t := &table{header: []string{"ID", "STATE", "EXPIRES", "RULE", "SESSION", "TOOL", "INPUT"}}
	for _, c := range cards {
		t.add(c.ID, c.State, a.clock(c.Expires.In(a.Now().Location())), dash(c.Rule), short(c.Session), c.Tool, summary(c.Tool, c.Input))
	}
	return t.print(a.Out, a.Width)
}

func (a *app) approvalsShow() *cobra.Command {
	out := newOutput(formatTable, formatJSON)
	cmd := &cobra.Command{
		Use:   "show ID",
		Short: "Show one call that waits, with everything that is known of it",
		Long: `Show one card. ID is a unique prefix.

Exit codes: 0 ok, 1 error, 2 usage, 3 nothing found, 7 daemon unreachable.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := a.client()
			if err != nil {
				return err
			}
			card, err := c.Approval(cmd.Context(), args[0])
			if err != nil {
				return a.cardError(err)
			}
			if out.value == formatJSON {
				return writeJSON(a.Out, card)
			}
			return a.printCard(card)
		},
	}
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) printCard(c control.Approval) error {
	var b strings.Builder
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-10s %s\n", name, show.Line(value, 4000))
		}
	}
	row("id", c.ID)
	row("state", c.State)
	row("tool", c.Tool)
	row("input", summary(c.Tool, c.Input))
	row("why asked", c.Reason)
	row("rule", c.Rule)
	for _, e := range c.Effects {
		row("effect", e)
	}
	row("agent", c.Agent)
	row("session", c.Session)
	row("subagent", c.Subagent)
	row("directory", c.Cwd)
	row("project", c.Project)
	row("asked", stamp(c.Requested.In(a.Now().Location())))
	row("expires", fmt.Sprintf("%s (%s)", stamp(c.Expires.In(a.Now().Location())), remaining(c.Expires.Sub(a.Now()))))
	if c.Waiting {
		row("waiting", "the agent waits for the answer now")
	}
	if c.DecidedAt != nil {
		row("decided", fmt.Sprintf("%s by %s, proof %s", stamp(c.DecidedAt.In(a.Now().Location())), c.DecidedBy, c.Proof))
	}
	row("comment", c.Comment)
	for _, n := range c.NotBound {
		row("not bound", n)
	}
	for _, r := range c.Recent {
		row("before it", r)
	}
	row("call", c.Call)
	if c.State == "pending" {
		fmt.Fprintf(&b, "\napprove:   %[1]s approvals approve %[2]s\ndeny:      %[1]s approvals deny %[2]s --reason TEXT\n", a.paste(), c.ID)
	}
	_, err := io.WriteString(a.Out, b.String())
	return err
}

func remaining(d time.Duration) string {
	if d <= 0 {
		return "over"
	}
	return "in " + d.Round(time.Second).String()
}

func (a *app) approvalsDecide(verb string) *cobra.Command {
	reason := ""
	out := newOutput(formatTable, formatJSON)
	cmd := &cobra.Command{
		Use:   verb + " ID",
		Short: strings.ToUpper(verb[:1]) + verb[1:] + " one call that waits",
		Long: `Decide one card. ID is a unique prefix. Deciding twice in the same way changes nothing; a card that is over is refused
with its state. The decision is recorded with its proof level, here L0: the same user on this machine, which is weak.

Exit codes: 0 ok, 1 error (a stale card, too), 2 usage, 3 nothing found, 7 daemon unreachable.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.decide(cmd.Context(), verb, args[0], reason, out.value)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why; the agent is told, too")
	cmd.Flags().VarP(out, "output", "o", "output format")
	return cmd
}

func (a *app) decide(ctx context.Context, verb, id, reason string, f format) error {
	c, err := a.client()
	if err != nil {
		return err
	}
	card, err := c.Decide(ctx, id, control.DecideRequest{Decision: verb, Reason: reason, Proof: a.proof()})
	if err != nil {
		return a.cardError(err)
	}
	if f == formatJSON {
		return writeJSON(a.Out, card)
	}
	what := map[string]string{"approve": "approved", "deny": "denied"}[verb]
	fmt.Fprintf(a.Out, "%s %s: %s\n", what, card.ID, show.Line(summary(card.Tool, card.Input), 200))
	if verb == "approve" && !card.Waiting {
		fmt.Fprintf(a.Err, "the agent no longer waits; it runs once when the agent tries the same call again before %s\n",
			stamp(card.Expires.In(a.Now().Location())))
	}
	return nil
}

// cardError is an answer about one card. Where there is none, the list of all may show what was meant.
func (a *app) cardError(err error) error {
	err = a.controlError(err)
	var e *Error
	if errors.As(err, &e) && e.Code == exitNothing && len(e.Hints) == 0 {
		e.Hints = []string{"see " + a.paste("approvals", "list", "--all")}
	}
	return err
}

// proof is what this program can show for the person at the keyboard.
func (a *app) proof() control.Proof {
	p := control.Proof{Level: "L0"}
	if a.InTTY {
		p.TTY = "yes"
	}
	return p
}
