// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/tripwires"
)

type newRuleOptions struct {
	deny, ask []string
	why       string
}

func (a *app) rulesNew() *cobra.Command {
	o := &newRuleOptions{}
	cmd := &cobra.Command{
		Use:   "new ID [-]",
		Short: "Write a rule of your own, with comments and own cases to start from",
		Long: `Write ID.yaml into the rules directory: a rule that denies or asks what the patterns match, with own cases that pass. A
daemon that runs has it in force within two seconds, or this fails. Nothing is asked, so that there is no --yes: a new rule only
tightens, and a file that is there is never overwritten. With - the rule goes to stdout instead.

Exit codes: 0 ok, 1 error or refused, 2 usage.`,
		Example: `  auditctl rules new deploys --ask 'Bash(deploy-tool:*)' --why 'deploys reach customers'
  auditctl rules new no-secrets --deny 'Read(./secrets/**)' -`,
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 2 && args[1] != "-" {
				return usagef("after the id only - may stand, for stdout")
			}
			return a.runRulesNew(cmd.Context(), o, args[0], len(args) == 2)
		},
	}
	f := cmd.Flags()
	f.StringArrayVar(&o.deny, "deny", nil, "deny what this pattern matches (may be repeated)")
	f.StringArrayVar(&o.ask, "ask", nil, "ask about what this pattern matches (may be repeated)")
	f.StringVar(&o.why, "why", "", "the reason, as the agent and the person are told it")
	return cmd
}

func (a *app) runRulesNew(ctx context.Context, o *newRuleOptions, id string, stdout bool) error {
	if len(o.deny) > 0 && len(o.ask) > 0 {
		return usagef("a rule either denies or asks: give --deny or --ask")
	}
	if !stdout {
		if err := a.needPerson("writing a rule"); err != nil {
			return err
		}
	}
	text, err := newRule(o, id)
	if err != nil {
		return err
	}
	name := id + ".yaml"
	// the id becomes a part of the text, and a name: it must be one that the loader takes whole
	if err := onlyRule(name, text, id); err != nil {
		return err
	}
	if stdout {
		_, err := io.WriteString(a.Out, text)
		return err
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	c, err := planRules(p, name)
	if err != nil {
		return err
	}
	if c.old != nil {
		return failf("edit that file, or choose another id", "%s is there already", c.path)
	}
	c.new = []byte(text)
	set, err := c.check(p)
	if err != nil {
		return err
	}
	if err := c.write(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "written: %s\n", show.Line(c.path, 500))
	switch err := a.awaitRule(ctx, p, set, id); {
	case errors.Is(err, control.ErrUnreachable):
		fmt.Fprintln(a.Err, "the daemon is not running; the rule is in force once it runs")
	case err != nil:
		return failf("the file stays; "+a.paste("status")+" says what is wrong", "the daemon does not have the rule in force: %v", err)
	default:
		fmt.Fprintln(a.Err, "it is in force; edit the file, and what tightens is in force again at once")
	}
	return nil
}

// adoptTime bounds the wait for the daemon, which looks at its files a moment after they change.
const adoptTime = 2 * time.Second

// awaitRule waits until the daemon has a rule of the set in force.
func (a *app) awaitRule(ctx context.Context, p config.Places, set *tripwires.Set, id string) error {
	ctx, cancel := context.WithTimeout(ctx, adoptTime)
	defer cancel()
	has := func(set *tripwires.Set, hash string) bool {
		return slices.ContainsFunc(set.Rules(), func(r tripwires.RuleInfo) bool { return r.ID == id && r.Hash == hash })
	}
	rules := set.Rules()
	hash := rules[slices.IndexFunc(rules, func(r tripwires.RuleInfo) bool { return r.ID == id })].Hash
	cl := &control.Client{Socket: p.ControlSocket}
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for {
		r, err := cl.Rules(ctx)
		if err == nil {
			var now *tripwires.Set
			if now, err = daemonRules(r); err == nil && has(now, hash) {
				return nil
			}
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it did not take the file over within %v", adoptTime)
		case <-tick.C:
		}
	}
}

// onlyRule makes sure that a text holds one rule of the user, called id.
func onlyRule(name, text, id string) error {
	set, err := tripwires.Load([]tripwires.File{{Path: name, Layer: tripwires.LayerUser, Data: []byte(text)}})
	if err != nil {
		return usagef("%v", err)
	}
	n := 0
	for _, r := range set.Rules() {
		if r.Layer != tripwires.LayerUser {
			continue
		}
		if n++; n > 1 || r.ID != id {
			return usagef("%q is no id of a rule", id)
		}
	}
	return nil
}

// newRule makes the text of a file with one rule.
func newRule(o *newRuleOptions, id string) (string, error) {
	verdict, patterns := "ask", o.ask
	if len(o.deny) > 0 {
		verdict, patterns = "deny", o.deny
	}
	example := len(patterns) == 0
	if example {
		patterns = []string{"Bash(example-tool:*)"}
	}
	for _, p := range patterns {
		if problem := tripwires.PatternProblem(p); problem != "" {
			return "", usagef("%q: %s", p, problem)
		}
	}
	why := o.why
	if why == "" {
		why = "say here what it would harm"
	}
	var b strings.Builder
	b.WriteString("# A rule of your own. All about rules: contrib/docs/rules.md. Check it with: auditctl rules lint && auditctl rules test\n")
	b.WriteString("version: 1\nrules:\n")
	fmt.Fprintf(&b, "  - id: %s\n", id)
	if example {
		b.WriteString("    # What it matches: Bash(words:*), Read(PATH), Write(PATH), WebFetch(domain:HOST), mcp__server__tool, {effect: delete, place: temp}\n")
	}
	fmt.Fprintf(&b, "    %s: [%s]\n", verdict, yamlList(patterns))
	fmt.Fprintf(&b, "    why: %s\n", yamlText(why))
	b.WriteString("    # instead: \"what the agent should do instead\"\n")
	b.WriteString("    # except: [\"Bash(words that are fine)\"]\n")
	b.WriteString("    # scope: {project: [\"~/shop\"], agent: [claude]}\n")
	if verdict == "ask" {
		b.WriteString("    # gate: hold   # the call waits for: auditctl approvals approve\n")
	}
	b.WriteString(ownCases(verdict, patterns, "    "))
	return b.String(), nil
}

func yamlList(texts []string) string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = yamlText(t)
	}
	return strings.Join(out, ", ")
}

// maxOwnCases bounds the cases that are made up for a rule.
const maxOwnCases = 6

// ownCases makes cases for patterns, as lines of a rule: only those that pass.
func ownCases(verdict string, patterns []string, indent string) string {
	var match, noMatch []string
	add := func(list []string, key, c string) []string {
		if c == "" || len(list) >= maxOwnCases || slices.Contains(list, c) || !ownCasePasses(verdict, patterns, key, c) {
			return list
		}
		return append(list, c)
	}
	for _, p := range patterns {
		good, bad := caseOf(p)
		match, noMatch = add(match, "match", good), add(noMatch, "no_match", bad)
	}
	var b strings.Builder
	for _, l := range []struct {
		key   string
		cases []string
	}{{"match", match}, {"no_match", noMatch}} {
		if len(l.cases) > 0 {
			fmt.Fprintf(&b, "%s%s: [%s]\n", indent, l.key, strings.Join(l.cases, ", "))
		}
	}
	return b.String()
}

func ownCasePasses(verdict string, patterns []string, key, c string) bool {
	text := fmt.Sprintf("version: 1\nrules:\n  - id: x\n    %s: [%s]\n    %s: [%s]\n", verdict, yamlList(patterns), key, c)
	failures, _, _, err := tripwires.TestFiles([]tripwires.File{{Path: "x", Layer: tripwires.LayerUser, Data: []byte(text)}})
	return err == nil && len(failures) == 0
}

// caseOf makes up a call that a pattern should match, and one that it should not, as entries of a list.
func caseOf(p string) (match, noMatch string) {
	tool, arg, has := strings.Cut(strings.TrimSuffix(p, ")"), "(")
	call := func(tool string, input map[string]string) string {
		b, _ := json.Marshal(input) // texts always marshal
		return fmt.Sprintf("{tool: %s, input: %s}", yamlText(tool), yamlText(string(b)))
	}
	if !has {
		name := strings.TrimSuffix(strings.TrimSuffix(p, "*"), "_")
		name, _, _ = strings.Cut(name, "@")
		if strings.HasPrefix(name, "mcp__") && strings.Count(name, "__") < 2 {
			name += "__tool"
		}
		input := map[string]string{}
		switch name {
		case "WebFetch":
			input["url"] = "https://example.com/"
		case "WebSearch":
			input["query"] = "x"
		case "Read", "Write", "Edit", "NotebookEdit":
			input["file_path"] = "/home/user/project/a"
		case "Bash":
			return yamlText("true"), ""
		}
		return call(name, input), yamlText("true")
	}
	switch tool {
	case "Bash":
		words := strings.TrimSuffix(strings.TrimSuffix(arg, ":*"), " *")
		return yamlText(words), yamlText("echo " + words)
	case "WebFetch":
		host := strings.TrimPrefix(strings.TrimPrefix(arg, "domain:"), "*.")
		return call("WebFetch", map[string]string{"url": "https://" + host + "/", "prompt": "x"}), call("WebFetch", map[string]string{"url": "https://example.org/", "prompt": "x"})
	case "Read", "Write", "Edit":
		path := strings.NewReplacer("**", "a", "*", "a", "?", "a").Replace(arg)
		switch {
		case strings.HasPrefix(path, "~/"):
			path = "/home/user/" + path[2:]
		case !strings.HasPrefix(path, "/"):
			path = filepath.Join("/home/user/project", path)
		}
		input := map[string]string{"file_path": path}
		if tool == "Read" {
			return call("Read", input), call("Read", map[string]string{"file_path": "/home/user/project/another-file"})
		}
		input["content"] = ""
		return call("Write", input), call("Write", map[string]string{"file_path": "/home/user/project/another-file", "content": ""})
	}
	return "", ""
}
