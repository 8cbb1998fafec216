// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bufio"
	"context"
	"fmt"
	"strings"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
)

// agentVariables are what coding agents put into the environment of the commands that they run.
var agentVariables = [...]string{
	"CLAUDECODE", "AI_AGENT", "CODEX_SANDBOX", "CODEX_SANDBOX_NETWORK_DISABLED", "CODEX_THREAD_ID", "CODEX_CI", "GEMINI_CLI", "GEMINI_SESSION_ID",
	"QWEN_CODE_SESSION_ID", "OPENCODE", "COPILOT_CLI", "CURSOR_AGENT",
}

// needPerson refuses what only a person may do in a shell that an agent started. An agent can drop the variables; what really
// stops it is the floor, which sees the command before it runs. This is for mistakes, and for agents without our hooks.
func (a *app) needPerson(what string) error {
	for _, name := range agentVariables {
		if a.Getenv(name) != "" {
			return failf("open a terminal that no agent started, and run it there",
				"this shell runs under a coding agent (%s is set), and %s takes a person", name, what)
		}
	}
	return nil
}

// confirm asks for a typed yes. Whoever has interrupted the program has said no.
func (a *app) confirm(ctx context.Context, question string) bool {
	fmt.Fprintf(a.Err, "%s Type yes: ", question)
	answer := make(chan string, 1)
	go func() { // a read of a terminal cannot be ended; after an interrupt the program ends instead
		line, err := bufio.NewReader(a.In).ReadString('\n')
		if err != nil {
			line = ""
		}
		answer <- line
	}()
	select {
	case line := <-answer:
		return strings.TrimSpace(line) == "yes"
	case <-ctx.Done():
		fmt.Fprintln(a.Err)
		return false
	}
}

// paste is a command line of this program that works when it is pasted into a shell.
func (a *app) paste(args ...string) string {
	line := append([]string{a.self()}, args...)
	for i, w := range line {
		line[i] = words.Shell(w)
	}
	return strings.Join(line, " ")
}

// startHint is what to do when no daemon answers.
func (a *app) startHint() string { return fmt.Sprintf("start the daemon: %s", a.paste("start")) }
