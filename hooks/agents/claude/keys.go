// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"errors"
	"fmt"
	"strings"

	"github.com/tripline-sh/tripline/hooks/agents/internal/rawjson"
)

// keyNames are the names that Tripline reads, by place. inputNames are those of every tool's input together: whoever reads
// an input looks for nothing else.
type keyNames struct {
	names []string
	keys  *rawjson.Keys
}

func newKeyNames(names ...string) keyNames { return keyNames{names, rawjson.NewKeys(names...)} }

// Read-only after the program's start.
var (
	payloadKeys = newKeyNames("session_id", "transcript_path", "cwd", "hook_event_name", "prompt_id", "permission_mode",
		"agent_id", "agent_type", "tool_name", "tool_input", "tool_use_id", "tool_response", "tool_calls", "mcp_server",
		"error", "is_interrupt", "duration_ms", "source", "reason", "file_path", "prompt")
	serverKeys = newKeyNames("name", "source")
	callKeys   = newKeyNames("tool_name", "tool_input", "tool_use_id", "tool_response")
	inputKeys  = newKeyNames("command", "description", "timeout", "timeout_ms", "run_in_background",
		"dangerouslyDisableSandbox", "ws", "file_path", "content", "old_string", "new_string", "replace_all", "edits", "offset",
		"limit", "notebook_path", "new_source", "cell_id", "cell_type", "edit_mode", "url", "uri", "prompt", "query", "pattern",
		"path", "paths", "glob", "subagent_type", "mode", "isolation", "skill", "args", "to", "message", "action",
		"discard_changes", "cwd", "directory", "patch", "input", "script", "code", "sql", "source", "destination")
)

var errTwice = errors.New("a known key stands there twice")

// each calls field for every known member of an object. A known key that is there twice, or in another case, is an error:
// readers disagree on which one counts.
func each(object []byte, known keyNames, field func(key string, value []byte) error) error {
	seen := make([]bool, known.keys.Len())
	return rawjson.Object(object, func(key, value []byte) error {
		n, exact := known.keys.Find(key)
		switch {
		case n < 0:
			return nil
		case !exact:
			return fmt.Errorf("a variant of the key %s", known.names[n])
		case seen[n]:
			return errTwice
		}
		seen[n] = true
		if err := field(known.names[n], value); err != nil {
			return fmt.Errorf("%s: %w", known.names[n], err)
		}
		return nil
	})
}

// maxInputKeys bounds the top-level keys of a tool's input. All of them are compared, known or not: an MCP server may read
// what we do not know.
const maxInputKeys = 4096

// checkInput makes sure that a tool's input is an object with one reading only. The client's own tools have exact keys, so a
// variant of a known name is refused there; a tool of an MCP server may name its arguments as it likes, and only two
// names that could stand for the same known one are refused.
func checkInput(tool string, input []byte) error {
	if !isObject(input) {
		return errors.New("tool_input is not an object")
	}
	foreign := strings.HasPrefix(tool, "mcp__")
	seen := make([]bool, inputKeys.keys.Len())
	all := make(map[string]struct{})
	return rawjson.Object(input, func(key, _ []byte) error {
		n, exact := inputKeys.keys.Find(key)
		if n >= 0 {
			if !exact && !foreign {
				return fmt.Errorf("tool_input has a variant of the key %s", inputKeys.names[n])
			}
			if seen[n] {
				return fmt.Errorf("tool_input: %w", errTwice)
			}
			seen[n] = true
			return nil
		}
		if len(all) == maxInputKeys {
			return errors.New("tool_input has too many keys")
		}
		name, _ := rawjson.Text(key)
		if _, twice := all[name]; twice {
			return errors.New("tool_input has a key twice")
		}
		all[name] = struct{}{}
		return nil
	})
}
