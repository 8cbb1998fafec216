// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// maxBatchLine bounds one line of a batch.
const maxBatchLine = 32 << 20

type explainOptions struct {
	cwd, home, project, mode, profile string
	tool, input, batch                string
	output                            *outputFlag
}

func (a *app) explain() *cobra.Command {
	o := &explainOptions{output: newOutput(formatTable, formatJSON, formatJSONL)}
	cmd := &cobra.Command{
		Use:   "explain [flags] -- COMMAND | --tool NAME --input JSON | --batch FILE",
		Short: "Say what Tripline would do about a call, and why; nothing is run",
		Long: `Judge a call with the built-in rules and the rules and config in force for this user. It needs no daemon, runs nothing
and records nothing.

With --batch, each line of FILE (- = stdin) is a JSON object with id, tool, input (a command for shells, else an object or
its text), cwd, home, project; one JSON line comes out for each line in, in order:
{"id","verdict","rule","floor","reason","effects"}. A malformed line is a deny with rule input.undecodable.

Exit codes: 0 passes or allowed (always for a batch), 1 error, 2 usage, 4 denied, 5 would ask.`,
		Example: `  auditctl explain -- 'cd build && rm -rf *'
  auditctl explain --tool Edit --input '{"file_path":"/etc/hosts","old_string":"a","new_string":"b"}'
  auditctl explain --batch cases.jsonl`,
		RunE: func(cmd *cobra.Command, args []string) error { return a.runExplain(cmd.Context(), o, args) },
	}
	f := cmd.Flags()
	f.StringVar(&o.cwd, "cwd", "", "judge as if in this directory (default: the current one)")
	f.StringVar(&o.home, "home", "", "judge as if this were the only home directory")
	f.StringVar(&o.project, "project", "", "judge as if this were the project's root")
	f.StringVar(&o.mode, "mode", "", "judge in this mode (guard, ask, plan, auto, observe)")
	f.StringVar(&o.profile, "profile", "", "judge with this profile (standard, strict, ci)")
	f.StringVar(&o.tool, "tool", "", "name of the agent's tool")
	f.StringVar(&o.input, "input", "", "the tool's input as JSON")
	f.StringVar(&o.batch, "batch", "", "file with one call a line (- = stdin)")
	f.VarP(o.output, "output", "o", "output format")
	return cmd
}

// explainer judges calls with the rules in force.
type explainer struct {
	engine *tripwires.Engine
	pool   *view.Pool
	homes  []string
	cwd    string
	o      *explainOptions
}

func (a *app) runExplain(ctx context.Context, o *explainOptions, args []string) error {
	if o.batch != "" && (len(args) > 0 || o.tool != "") || o.tool != "" && len(args) > 0 || o.tool == "" && o.input != "" {
		return usagef("give one of: a command after --, --tool with --input, --batch")
	}
	if o.batch == "" && o.tool == "" && len(args) == 0 {
		return usagef("what should be explained? for example: %s explain -- 'rm -rf build'", a.paste())
	}
	x, err := a.newExplainer(o)
	if err != nil {
		return err
	}
	if o.batch != "" {
		return a.explainBatch(ctx, x, o.batch)
	}
	line := batchLine{ID: "1", Tool: "Bash"}
	if o.tool != "" {
		line.Tool = o.tool
		line.Input = json.RawMessage(o.input)
		switch {
		case o.input == "":
			return usagef(`--tool needs --input, for example: --tool Read --input '{"file_path":"/etc/hosts"}'`)
		case !json.Valid(line.Input):
			return usagef(`--input is not valid JSON; it is the tool's input as the agent sends it, for example '{"file_path":"/etc/hosts"}'`)
		}
	} else {
		line.Input, _ = json.Marshal(strings.Join(args, " "))
	}
	d, call := x.judge(ctx, line)
	if err := a.printExplained(o.output.value, d, call); err != nil {
		return err
	}
	switch d.Verdict {
	case event.Deny:
		return quiet(exitDenied)
	case event.Ask:
		return quiet(exitAsk)
	}
	return nil
}

func (a *app) newExplainer(o *explainOptions) (*explainer, error) {
	p, err := a.places()
	if err != nil {
		return nil, err
	}
	engine, err := a.engine(p, o.mode, o.profile)
	if err != nil {
		return nil, err
	}
	x := &explainer{engine: engine, pool: view.NewPool(4), o: o, cwd: o.cwd}
	if x.cwd == "" {
		if x.cwd, err = a.Getwd(); err != nil {
			return nil, failf("give --cwd", "the current directory cannot be told: %v", err)
		}
	}
	if !filepath.IsAbs(x.cwd) {
		if x.cwd, err = filepath.Abs(x.cwd); err != nil {
			return nil, err
		}
	}
	x.homes = a.homes(p)
	return x, nil
}

// errNoCall is a line of JSON that lacks what a call has.
var errNoCall = errors.New("tool and input are needed")

// batchLine is one line of a batch file. Unknown keys are allowed: other tools' corpora carry their own.
type batchLine struct {
	ID      string
	Tool    string
	Input   json.RawMessage
	Cwd     string
	Home    string
	Project string
}

// UnmarshalJSON takes ids that are numbers, too.
func (b *batchLine) UnmarshalJSON(data []byte) error {
	var raw struct {
		ID      json.RawMessage `json:"id"`
		Tool    string          `json:"tool"`
		Input   json.RawMessage `json:"input"`
		Cwd     string          `json:"cwd"`
		Home    string          `json:"home"`
		Project string          `json:"project"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	var id string
	switch {
	case len(raw.ID) == 0 || string(raw.ID) == "null":
	case json.Unmarshal(raw.ID, &id) == nil:
	default:
		var n json.Number
		if err := json.Unmarshal(raw.ID, &n); err != nil {
			return errors.New("id is neither a string nor a number")
		}
		id = n.String()
	}
	b.ID = id // also of a line that is no call: its answer must be told from others
	if raw.Tool == "" || len(raw.Input) == 0 || string(raw.Input) == "null" {
		return errNoCall
	}
	*b = batchLine{ID: id, Tool: raw.Tool, Input: raw.Input, Cwd: raw.Cwd, Home: raw.Home, Project: raw.Project}
	return nil
}

// toolInput gives a line's input the form that the agent would send: an object. A string is a shell tool's command, or the
// text of an object.
func (b *batchLine) toolInput() (json.RawMessage, error) {
	var text string
	if json.Unmarshal(b.Input, &text) != nil {
		return b.Input, nil
	}
	if key := tripwires.ShellKey(b.Tool); key != "" {
		return json.Marshal(map[string]string{key: text})
	}
	if !json.Valid([]byte(text)) {
		return nil, errors.New("input is not JSON")
	}
	return json.RawMessage(text), nil
}

func (x *explainer) judge(ctx context.Context, b batchLine) (tripwires.Decision, tripwires.Call) {
	in, err := b.toolInput()
	if err != nil {
		return undecodable(err), tripwires.Call{}
	}
	c := tripwires.Call{Agent: "claude", Tool: b.Tool, Input: in, Cwd: b.Cwd, Project: b.Project, Homes: x.homes}
	if c.Cwd == "" {
		c.Cwd = x.cwd
	}
	if c.Project == "" {
		c.Project = x.o.project
	}
	if b.Home != "" {
		c.Homes = []string{b.Home}
	} else if x.o.home != "" {
		c.Homes = []string{x.o.home}
	}
	return x.engine.Evaluate(ctx, c, x.pool.Reader(ctx)), c
}

func undecodable(err error) tripwires.Decision {
	return tripwires.Decision{Verdict: event.Deny, Enforced: true, Rule: "input.undecodable", Reason: "the line could not be read: " + show.Line(err.Error(), 200)}
}

func (a *app) explainBatch(ctx context.Context, x *explainer, name string) error {
	in := a.In
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return failf("", "the batch cannot be read: %v", err)
		}
		defer f.Close()
		in = f
	}
	r := bufio.NewReaderSize(in, 64<<10)
	w := bufio.NewWriter(a.Out)
	for n := 1; ; n++ {
		line, err := readLine(r)
		if errors.Is(err, io.EOF) {
			break
		}
		var b batchLine
		var d tripwires.Decision
		switch {
		case err != nil && !errors.Is(err, errLineTooLong):
			return failf("", "the batch cannot be read: %v", err)
		case err != nil:
			d = undecodable(err)
		default:
			switch uerr := json.Unmarshal(line, &b); {
			case errors.Is(uerr, errNoCall):
				d = undecodable(errNoCall)
			case uerr != nil:
				d = undecodable(errors.New("not a call in JSON"))
			default:
				d, _ = x.judge(ctx, b)
			}
		}
		if b.ID == "" {
			b.ID = strconv.Itoa(n)
		}
		if err := writeJSONL(w, d.Explain(b.ID)); err != nil {
			return err
		}
		if r.Buffered() == 0 { // a co-process waits for its answer
			if err := w.Flush(); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return w.Flush()
}

var errLineTooLong = errors.New("line is too long")

// readLine returns the next line without its end; a line beyond maxBatchLine is skipped whole.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long := false
	for {
		part, more, err := r.ReadLine()
		if err != nil {
			if errors.Is(err, io.EOF) && (line != nil || long) {
				break
			}
			return nil, err
		}
		if !long {
			line = append(line, part...)
			long = len(line) > maxBatchLine
		}
		if !more {
			if line == nil {
				line = []byte{}
			}
			break
		}
	}
	if long {
		return nil, errLineTooLong
	}
	return line, nil
}

func (a *app) printExplained(f format, d tripwires.Decision, c tripwires.Call) error {
	switch f {
	case formatJSON:
		return writeJSON(a.Out, d.Explain("1"))
	case formatJSONL:
		return writeJSONL(a.Out, d.Explain("1"))
	}
	var b strings.Builder
	verdict := string(d.Verdict)
	if d.Floor {
		verdict += " (floor: no rule, mode or approval lifts it)"
	}
	if !d.Enforced && d.Verdict.Rank() >= event.Ask.Rank() {
		verdict += " (mode observe: recorded, not enforced)"
	}
	fmt.Fprintf(&b, "verdict  %s\n", verdict)
	if d.Rule != "" {
		fmt.Fprintf(&b, "rule     %s\n", show.Line(d.Rule, 200))
	}
	if d.Reason != "" {
		fmt.Fprintf(&b, "why      %s\n", show.Line(d.Reason, 2000))
	}
	if d.Instead != "" {
		fmt.Fprintf(&b, "instead  %s\n", show.Line(d.Instead, 1000))
	}
	fmt.Fprintf(&b, "project  %s   mode %s, profile %s\n", show.Line(dash(d.Project), 500), d.Mode, d.Profile)
	if len(d.Effects) > 0 {
		b.WriteString("effects\n")
		for _, e := range d.Effects {
			fmt.Fprintf(&b, "  %s\n", show.Line(e.Words(), 500))
		}
	}
	if len(d.Matches) > 0 {
		b.WriteString("rules with an opinion\n")
		for _, m := range d.Matches {
			fmt.Fprintf(&b, "  %-5s %-28s %s %s\n", m.Verdict, show.Line(m.Rule, 100), m.Layer, show.Line(m.Token, 200))
		}
	}
	if len(d.Trace) > 0 {
		b.WriteString("trace\n")
		for _, t := range d.Trace {
			fmt.Fprintf(&b, "  %s\n", show.Line(t, 500))
		}
	}
	_, err := io.WriteString(a.Out, b.String())
	return err
}

// engine builds the engine that is in force for this user: built-in and own rules, config and flags.
func (a *app) engine(p config.Places, mode, profile string) (*tripwires.Engine, error) {
	c, err := config.Load(p.ConfigFile)
	if err != nil {
		return nil, failf("mend the file; until then the daemon keeps the last good configuration", "%v", err)
	}
	for key, value := range map[string]string{"mode": mode, "profile": profile} {
		if value == "" {
			continue
		}
		if err := c.Set(key, value); err != nil {
			return nil, usagef("--%v", err)
		}
	}
	return a.newEngine(p, c)
}
