// SPDX-License-Identifier: Apache-2.0

// Gendocs writes the reference of auditctl from its command tree: `gendocs cli FILE` one Markdown page, `gendocs man DIR`
// a man page for each command. It is no part of any program, so that none carries what renders man pages.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ctl"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintf(os.Stderr, "gendocs: %v\n", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("usage: gendocs cli FILE | gendocs man DIR")
	}
	root := ctl.Tree("auditctl")
	switch args[0] {
	case "cli":
		var b bytes.Buffer
		page(&b, root)
		return os.WriteFile(args[1], b.Bytes(), 0o644)
	case "man":
		date, err := manDate(os.Getenv("SOURCE_DATE_EPOCH"))
		if err != nil {
			return err
		}
		return man(root, args[1], date)
	}
	return fmt.Errorf("unknown form %q", args[0])
}

// page renders the whole tree as one Markdown page.
func page(w io.Writer, root *cobra.Command) {
	fmt.Fprintf(w, "# auditctl\n\nEvery command with its flags, as `auditctl --help` has them. This page is made from the program: `make docs`.\n\n")
	fmt.Fprintf(w, "```\n%s\n```\n\nEvery command also takes `--help`.\n", strings.TrimSpace(root.Long))
	each(root, func(c *cobra.Command) {
		if c == root {
			return
		}
		fmt.Fprintf(w, "\n## %s\n\n", c.CommandPath())
		text := c.Long
		if text == "" {
			text = c.Short
		}
		fmt.Fprintf(w, "```\n%s\n\n%s\n", synopsis(c), strings.TrimSpace(text))
		if flags := usages(c); flags != "" {
			fmt.Fprintf(w, "\n%s", flags)
		}
		if c.Example != "" {
			fmt.Fprintf(w, "\nExamples:\n%s\n", strings.TrimRight(c.Example, "\n"))
		}
		fmt.Fprint(w, "```\n")
	})
}

// usages lists a command's own flags without --help, which every command has.
func usages(c *cobra.Command) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" && !f.Hidden {
			own.AddFlag(f)
		}
	})
	return own.FlagUsages()
}

// synopsis is how a command is called. One that only groups others needs the name of one of them.
func synopsis(c *cobra.Command) string {
	if !c.HasAvailableSubCommands() {
		return c.UseLine()
	}
	return c.CommandPath() + " COMMAND"
}

// each visits the available commands, parents first.
func each(c *cobra.Command, fn func(*cobra.Command)) {
	fn(c)
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() && sub.Name() != "help" && sub.Name() != "completion" {
			each(sub, fn)
		}
	}
}
