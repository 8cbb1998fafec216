// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

const (
	importedFile  = "imported-claude.yaml"
	maxImportFile = 1 << 20
	importedRules = 200 // patterns of one rule
)

type importOptions struct {
	file        string
	allow       bool
	dryRun, yes bool
}

func (a *app) rulesImport() *cobra.Command {
	o := &importOptions{}
	cmd := &cobra.Command{
		Use:   "import claude-settings",
		Short: "Propose rules from an agent's own permission lists, as a diff",
		Long: `Read permissions.deny and permissions.ask of Claude Code's settings (yours, and those of the current project) and propose
rules that say the same, in imported-claude.yaml of the rules directory. Nothing is written without a person's word. Entries
of the allow list are only listed: the agent decides on those itself; with --with-allow they become allow rules, which skip
the agent's prompt and wait for rules reload. Entries that have no counterpart are listed with the reason.

Exit codes: 0 ok, 1 error or refused, 2 usage, 3 nothing to import.`,
		Example:   `  auditctl rules import claude-settings --dry-run`,
		Args:      cobra.ExactArgs(1),
		ValidArgs: []string{"claude-settings"},
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "claude-settings" {
				return usagef("unknown source %q: it is claude-settings", args[0])
			}
			return a.runImport(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.file, "file", "", "only this settings file")
	f.BoolVar(&o.allow, "with-allow", false, "make allow rules, too")
	f.BoolVar(&o.dryRun, "dry-run", false, "show the rules and write nothing")
	f.BoolVar(&o.yes, "yes", false, "do it without asking (for scripts that a person runs)")
	return cmd
}

// importSource is a settings file with permission lists.
type importSource struct {
	path    string
	name    string // in ids
	project string // root of the project whose settings these are; "" = the user's
	lists   claude.Permissions
}

func (a *app) runImport(ctx context.Context, o *importOptions) error {
	if !o.dryRun {
		if err := a.needPerson("importing rules"); err != nil {
			return err
		}
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	sources, err := a.importSources(ctx, o, p)
	if err != nil {
		return err
	}
	text, n := importText(sources, o.allow)
	if n == 0 {
		if text != "" {
			fmt.Fprint(a.Err, show.Text(text, 0))
		}
		fmt.Fprintln(a.Err, "nothing to import")
		return quiet(exitNothing)
	}
	c, err := planRules(p, importedFile)
	if err != nil {
		return err
	}
	c.new = []byte(text)
	if c.old != nil && bytes.Equal(c.old, c.new) {
		fmt.Fprintf(a.Out, "%s holds these rules already\n", show.Line(c.path, 500))
		return nil
	}
	set, err := c.check(p)
	if err != nil {
		return err
	}
	if ok, err := c.agree(a, o.dryRun, o.yes); !ok {
		return err
	}
	before, err := readRules(p)
	if err != nil {
		return failf("mend the file first", "%v", err)
	}
	if err := c.write(); err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "written: %s\n", show.Line(c.path, 500))
	if _, _, loosened := tripwires.Tighten(before, set); len(loosened) > 0 {
		fmt.Fprintf(a.Err, "what denies and asks is in force within a second; the rest waits for %s\n", a.paste("rules", "reload"))
	}
	return nil
}

// importSources reads the settings files that are there.
func (a *app) importSources(ctx context.Context, o *importOptions, p config.Places) ([]importSource, error) {
	user, err := a.settingsPath("claude", p)
	if err != nil {
		return nil, err
	}
	var list []importSource
	if o.file != "" {
		path, err := filepath.Abs(o.file)
		if err != nil {
			return nil, usagef("%v", err)
		}
		s := importSource{path: path, name: "user"}
		if dir := filepath.Dir(path); path != user && filepath.Base(dir) == ".claude" && filepath.Dir(dir) != p.Home {
			s.name, s.project = "project", filepath.Dir(dir)
		}
		list = append(list, s)
	} else {
		list = append(list, importSource{path: user, name: "user"})
		cwd, err := a.Getwd()
		if err != nil {
			return nil, failf("give --file", "the current directory cannot be told: %v", err)
		}
		pool := view.NewPool(1)
		roots := tripwires.ProjectRoots(cwd, pool.Reader(ctx))
		if err := pool.Close(ctx); err != nil {
			return nil, err
		}
		if len(roots) > 0 && filepath.Join(roots[0], ".claude") != filepath.Dir(user) {
			list = append(list, importSource{path: filepath.Join(roots[0], ".claude", "settings.json"), name: "project", project: roots[0]},
				importSource{path: filepath.Join(roots[0], ".claude", "settings.local.json"), name: "local", project: roots[0]})
		}
	}
	var out []importSource
	for _, s := range list {
		data, err := readBounded(s.path)
		if errors.Is(err, fs.ErrNotExist) && o.file == "" {
			continue
		}
		if err != nil {
			return nil, failf("", "%s cannot be read: %v", s.path, err)
		}
		if s.lists, err = claude.ReadPermissions(data); err != nil {
			return nil, failf("", "%s: %v", s.path, err)
		}
		out = append(out, s)
	}
	return out, nil
}

func readBounded(path string) ([]byte, error) {
	fi, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxImportFile+1))
	if err == nil && len(data) > maxImportFile {
		err = fmt.Errorf("larger than %d bytes", maxImportFile)
	}
	return data, err
}

// importText writes the rules file and counts its rules.
func importText(sources []importSource, withAllow bool) (string, int) {
	var b strings.Builder
	n := 0
	b.WriteString("# Made by \"auditctl rules import claude-settings\" from permission lists of Claude Code. Importing again replaces this file.\nversion: 1\nrules:\n")
	for _, s := range sources {
		for _, l := range []struct {
			verdict string
			entries []string
		}{{"deny", s.lists.Deny}, {"ask", s.lists.Ask}, {"allow", s.lists.Allow}} {
			if l.verdict == "allow" && !withAllow {
				comments(&b, "already decided by the agent's own list ("+s.path+"), no rules were made of:", l.entries)
				continue
			}
			patterns, left := translate(l.entries, s.project != "")
			for i := 0; len(patterns) > 0; i++ {
				part := patterns[:min(len(patterns), importedRules)]
				patterns = patterns[len(part):]
				id := "claude." + s.name + "." + l.verdict
				if i > 0 {
					id += fmt.Sprintf("-%d", i+1)
				}
				fmt.Fprintf(&b, "  - id: %s\n    %s:\n", id, l.verdict)
				for _, p := range part {
					fmt.Fprintf(&b, "      - %s\n", yamlText(p))
				}
				if s.project != "" {
					fmt.Fprintf(&b, "    scope: {project: [%s]}\n", yamlText(s.project))
				}
				fmt.Fprintf(&b, "    why: %s\n", yamlText(show.Line("permissions."+l.verdict+" of "+s.path, 300)))
				b.WriteString(ownCases(l.verdict, part, "    "))
				n++
			}
			comments(&b, "not translated, from permissions."+l.verdict+" of "+s.path+":", left)
		}
	}
	if n == 0 {
		text := b.String()
		_, rest, _ := strings.Cut(text, "rules:\n")
		return rest, 0
	}
	return b.String(), n
}

func comments(b *strings.Builder, head string, lines []string) {
	if len(lines) == 0 {
		return
	}
	fmt.Fprintf(b, "  # %s\n", show.Line(head, 600))
	for _, l := range lines {
		fmt.Fprintf(b, "  #   %s\n", show.Line(l, 300))
	}
}

// translate turns entries into patterns without repeats, and says of each that is left out why.
func translate(entries []string, project bool) (patterns, left []string) {
	for _, e := range entries {
		list, why := claude.Permission(e, project)
		for _, p := range list {
			if why == "" {
				why = tripwires.PatternProblem(p)
			}
		}
		if why != "" {
			left = append(left, e+": "+why)
			continue
		}
		for _, p := range list {
			if !slices.Contains(patterns, p) {
				patterns = append(patterns, p)
			}
		}
	}
	return patterns, left
}
