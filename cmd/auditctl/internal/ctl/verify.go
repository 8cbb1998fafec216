// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/control"
)

type verifyOptions struct {
	key    string
	anchor []string
	output *outputFlag
}

func (a *app) verify() *cobra.Command {
	o := &verifyOptions{output: newOutput(formatTable, formatJSON)}
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Check that the log is whole: nothing edited, removed, reordered or forked",
		Long: `Check every record against the tree, every checkpoint's signature, and the chain of segments. The live segment is checked
by the daemon while it runs, else from the files.

Outcomes: OK, EDITED, FORKED, TRUNCATED, CORRUPT, KEY, GAP. "unanchored" is a warning beside OK: whoever owns the key could have
rewritten the log, as far as can be told from it alone. Give positions that were seen elsewhere with --anchor: every denial that
the daemon recorded carries one, as in [log 4711 ab12...].

With --key while a daemon runs, the daemon only compares the key with the one it uses; stop it to have the files themselves checked.

Exit codes: 0 OK (warnings included), 1 error, 2 usage, 3 no log, 6 verification failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runVerify(cmd.Context(), o) },
	}
	cmd.Flags().StringVar(&o.key, "key", "", "the verifier key that was printed at the first start (or a file that holds it)")
	cmd.Flags().StringArrayVar(&o.anchor, "anchor", nil, `"SEQ ROOT" as a denial shows it; may be repeated`)
	cmd.Flags().VarP(o.output, "output", "o", "output format")
	return cmd
}

func (a *app) runVerify(ctx context.Context, o *verifyOptions) error {
	anchors, err := parseAnchors(o.anchor)
	if err != nil {
		return err
	}
	key := o.key
	if key != "" && !strings.Contains(key, "+") {
		b, err := os.ReadFile(key)
		if err != nil {
			return usagef("--key is neither a verifier key nor a file that can be read: %v", err)
		}
		key = strings.TrimSpace(string(b))
	}
	v, err := a.verifyLog(ctx, key, anchors)
	if err != nil {
		return err
	}
	if o.output.value == formatJSON {
		if err := writeJSON(a.Out, v); err != nil {
			return err
		}
	} else {
		a.printVerification(v)
	}
	if v.Outcome != "OK" {
		return quiet(exitVerify)
	}
	return nil
}

func parseAnchors(texts []string) ([]audit.Anchor, error) {
	var out []audit.Anchor
	for _, t := range texts {
		f := strings.FieldsFunc(t, func(r rune) bool { return r == ' ' || r == ':' || r == '[' || r == ']' })
		if len(f) == 3 && f[0] == "log" { // pasted from a denial
			f = f[1:]
		}
		if len(f) != 2 {
			return nil, usagef(`--anchor %q is not "SEQ ROOT", as a denial says it: [log SEQ ROOT]`, t)
		}
		seq, err := strconv.ParseUint(f[0], 10, 64)
		if err != nil || seq == 0 || len(f[1]) < 16 {
			return nil, usagef(`--anchor %q is not "SEQ ROOT" with at least 16 characters of the root`, t)
		}
		out = append(out, audit.Anchor{Seq: seq, Root: f[1]})
	}
	return out, nil
}

// verifyLog lets the daemon check what it holds; with a key or anchors of the caller's own the files are the only thing to
// trust, but a running daemon holds the live one, so it is asked all the same.
func (a *app) verifyLog(ctx context.Context, key string, anchors []audit.Anchor) (record.Verification, error) {
	p, err := a.places()
	if err != nil {
		return record.Verification{}, err
	}
	c := &control.Client{Socket: p.ControlSocket}
	req := control.VerifyRequest{Key: key}
	for _, an := range anchors {
		req.Anchors = append(req.Anchors, control.Anchor{Seq: an.Seq, Root: an.Root})
	}
	v, err := c.Verify(ctx, req)
	if err == nil {
		return v, nil
	}
	if !errors.Is(err, control.ErrUnreachable) {
		return v, a.controlError(err)
	}
	r, err := audit.OpenReader(p.LogDir, audit.ReaderOptions{KeyDir: p.KeysDir, VerifierKey: key})
	if err != nil {
		if errors.Is(err, audit.ErrNotFound) || errors.Is(err, audit.ErrLocked) {
			_, err = a.openFiles(p)
		}
		return v, err
	}
	defer r.Close()
	return r.Verify(ctx, anchors...)
}

func (a *app) printVerification(v record.Verification) {
	word := v.Outcome
	if a.color() {
		word = map[bool]string{true: green, false: red}[v.Outcome == "OK"] + v.Outcome + reset
	}
	fmt.Fprintf(a.Out, "%s  %d records, root %s\n", word, v.Size, dash(v.Root))
	if v.FirstBad > 0 {
		fmt.Fprintf(a.Out, "first bad record: #%d\n", v.FirstBad)
	}
	if v.Detail != "" {
		fmt.Fprintf(a.Out, "%s\n", show.Line(v.Detail, 1000))
	}
	if v.Anchored > 0 {
		fmt.Fprintf(a.Out, "anchored up to #%d\n", v.Anchored)
	}
	for _, s := range v.Segments {
		if s.Outcome != "OK" {
			fmt.Fprintf(a.Out, "  %-9s %s  %s\n", s.Outcome, show.Line(s.File, 200), show.Line(s.Detail, 500))
		}
	}
	for _, w := range v.Warnings {
		fmt.Fprintf(a.Out, "warning: %s\n", show.Line(w, 500))
		if strings.HasPrefix(w, "unanchored") {
			fmt.Fprintf(a.Err, "  a position from a denial vouches for it, [log 4711 ab12...]: %s\n", a.paste("verify", "--anchor", "4711 ab12..."))
		}
	}
}
