// SPDX-License-Identifier: Apache-2.0

package tripwires

// Words renders an effect for people, in one line: "rm deletes src and all below it (project)". Its parts may be hostile text.
func (e Effect) Words() string { return (&finding{Effect: e}).words() }

// ShellKey is the key of a tool's input that holds the command that it runs, "" for a tool that runs none.
func ShellKey(tool string) string {
	if tool == "PowerShell" || tool == "Monitor" {
		return "command"
	}
	return shellTools[tool]
}
