// SPDX-License-Identifier: Apache-2.0

package tripwires

// Words renders an effect for people, in one line: "rm deletes src and all below it (project)". Its parts may be hostile text.
func (e Effect) Words() string { return (&finding{Effect: e}).words() }

// IsShellTool reports whether an agent's tool of that name runs a shell command.
func IsShellTool(tool string) bool { return shellTools[tool] != "" }
