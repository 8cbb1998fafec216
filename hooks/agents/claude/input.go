// SPDX-License-Identifier: Apache-2.0

package claude

import "github.com/tripline-sh/tripline/hooks/agents/internal/rawjson"

// CanonicalInput implements agents.Adapter. The commentary is the description that the model gives to a shell command; for
// every other tool a key of that name is content and stays. An input with a key twice, at any depth, has no canonical form.
func (Adapter) CanonicalInput(tool string, input []byte) ([]byte, error) {
	return rawjson.Canonical(input, func(key string, value []byte) bool {
		if key != "description" || value[0] != '"' {
			return false
		}
		return tool == "Bash" || tool == "PowerShell" || tool == "Monitor"
	})
}
