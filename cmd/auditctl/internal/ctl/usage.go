// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/tripwires"
)

// explainUsage makes every command of the tree say what a wrong command line lacks: the verb or flag that was meant, the
// arguments that it takes. The library's own words are those of its programmers.
func (a *app) explainUsage(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.SetFlagErrorFunc(a.flagError)
	a.wrapArgs(root)
}

func (a *app) wrapArgs(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.wrapArgs(sub)
	}
	if c.Name() == "help" && c.Parent() == c.Root() {
		c.Args = a.helpTopic
		return
	}
	check := c.Args
	if check == nil {
		return
	}
	c.Args = func(c *cobra.Command, args []string) error {
		switch err := check(c, args); {
		case err == nil:
			return nil
		case c.HasSubCommands():
			return a.unknownCommand(c, args[0])
		case len(args) < needed(c):
			return a.usageError(c, strings.Fields(c.Use)[1+len(args)]+" is missing")
		default:
			return a.usageError(c, fmt.Sprintf("one argument too many: %q", show.Line(args[len(args)-1], 100)))
		}
	}
}

// needed is the number of arguments that a command's line of use does not put into brackets.
func needed(c *cobra.Command) int {
	n := 0
	for _, word := range strings.Fields(c.Use)[1:] {
		if word[0] == '[' {
			break
		}
		n++
	}
	return n
}

// usageError is a number of arguments that a command does not take, with what it takes.
func (a *app) usageError(c *cobra.Command, msg string) error {
	return &Error{Code: exitUsage, Msg: msg, Hints: []string{"usage: " + a.commandPath(c) + strings.TrimPrefix(c.Use, c.Name())}}
}

// commandPath is how a command is called in a line that people can paste.
func (a *app) commandPath(c *cobra.Command) string {
	return words.Shell(a.self()) + strings.TrimPrefix(c.CommandPath(), c.Root().Name())
}

func (a *app) unknownCommand(c *cobra.Command, verb string) error {
	msg := fmt.Sprintf("unknown command %q", show.Line(verb, 100))
	if c.HasParent() {
		msg += " of " + strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	e := &Error{Code: exitUsage, Msg: msg, Hints: []string{"see " + a.commandPath(c) + " --help"}}
	near := tripwires.Near(verb, names)
	if len(near) == 1 {
		near[0] = a.commandPath(c) + " " + near[0]
	}
	return didYouMean(e, near)
}

func (a *app) flagError(c *cobra.Command, err error) error {
	e := &Error{Code: exitUsage, Msg: err.Error(), Hints: []string{"see " + a.commandPath(c) + " --help"}}
	var unknown *pflag.NotExistError
	var value *pflag.InvalidValueError
	switch {
	case errors.As(err, &value):
		if wanted, ok := flagWants[value.GetFlag().Value.Type()]; ok {
			e.Msg = fmt.Sprintf("--%s takes %s, not %q", value.GetFlag().Name, wanted, show.Line(value.GetValue(), 100))
		}
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "":
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		near := tripwires.Near(unknown.GetSpecifiedName(), names)
		for i := range near {
			near[i] = "--" + near[i]
		}
		return didYouMean(e, near)
	}
	return e
}

// flagWants says in plain words what a kind of flag takes.
var flagWants = map[string]string{
	"int": "a number", "int64": "a number", "uint": "a number", "uint64": "a number", "bool": "true or false", "duration": "a time such as 90s or 5m",
}

// helpTopic refuses "help" about something that is not there; the library would print the whole help and call it success.
func (a *app) helpTopic(c *cobra.Command, args []string) error {
	found, rest, err := c.Root().Find(args)
	if err == nil && len(rest) > 0 {
		return a.unknownCommand(found, rest[0])
	}
	return err
}

// didYouMean puts what is near before the other hints.
func didYouMean(e *Error, near []string) error {
	if len(near) > 0 {
		e.Hints = slices.Insert(e.Hints, 0, "did you mean "+strings.Join(near, ", ")+"?")
	}
	return e
}
