// SPDX-License-Identifier: Apache-2.0

package claude

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/agents/internal/rawjson"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// Decode reads one payload. The raw fields of the event alias payload, which must not change afterwards; its strings are
// copies, with U+FFFD for a lone surrogate. Invalid UTF-8 is undecodable: the client never sends it, and two readers could
// take it for two things.
//
// On the events that wait for a verdict every known field must have its type. On the others a field of an unknown shape is
// left empty, since it is still in Raw and a recorded event is worth more than a refused one.
func (a Adapter) Decode(name string, payload []byte) (*event.Event, error) {
	if len(payload) > wire.MaxPayload {
		return nil, undecodable(errors.New("larger than the limit"))
	}
	kind, _ := a.Kind(name)
	d := decoder{
		ev:     &event.Event{Agent: Name, Name: name, Kind: kind, Raw: payload},
		strict: kind.Gates() || kind == event.KindPermissionRequest,
	}
	if err := each(payload, payloadKeys, d.field); err != nil {
		return nil, undecodable(err)
	}
	if !d.named {
		return nil, undecodable(errors.New("no hook_event_name"))
	}
	if err := d.finish(); err != nil {
		return nil, undecodable(err)
	}
	return d.ev, nil
}

func undecodable(err error) error {
	return fmt.Errorf("claude payload: %w: %w", agents.ErrUndecodable, err)
}

var errType = errors.New("has an unexpected type")

// decoder fills one event.
type decoder struct {
	ev     *event.Event
	strict bool
	named  bool
}

// field takes one known member of the payload.
func (d *decoder) field(key string, v []byte) error {
	switch key {
	case "hook_event_name":
		if s, ok := rawjson.Text(v); !ok || s != d.ev.Name {
			return errors.New("hook_event_name is another event's")
		}
		d.named = true
		return nil
	case "tool_input":
		d.ev.Input = v
		return nil
	case "tool_response":
		d.ev.Response = v
		return nil
	case "tool_calls":
		return d.calls(v)
	case "mcp_server":
		return d.server(v)
	case "is_interrupt":
		return d.truth(&d.ev.Interrupted, v)
	case "duration_ms":
		d.ev.DurationMS = milliseconds(v)
		return nil
	}
	return d.text(d.target(key), v)
}

// target is where a text field goes.
func (d *decoder) target(key string) *string {
	switch key {
	case "session_id":
		return &d.ev.Session
	case "transcript_path":
		return &d.ev.Transcript
	case "cwd":
		return &d.ev.Cwd
	case "prompt_id":
		return &d.ev.Prompt
	case "permission_mode":
		return &d.ev.PermissionMode
	case "agent_id":
		return &d.ev.Subagent
	case "agent_type":
		return &d.ev.SubagentType
	case "tool_name":
		return &d.ev.Tool
	case "tool_use_id":
		return &d.ev.ToolUseID
	case "error":
		return &d.ev.Error
	case "source":
		return &d.ev.Source
	case "reason":
		return &d.ev.Reason
	case "file_path":
		return &d.ev.FilePath
	case "prompt":
		return &d.ev.PromptText
	}
	return new(string) // a known key without a field of its own
}

// text sets an optional string. null means absent.
func (d *decoder) text(to *string, v []byte) error {
	s, ok := rawjson.Text(v)
	if !ok && string(v) != "null" && d.strict {
		return errType
	}
	*to = s
	return nil
}

func (d *decoder) truth(to *bool, v []byte) error {
	switch string(v) {
	case "true", "false", "null":
		*to = string(v) == "true"
	default:
		if d.strict {
			return errType
		}
	}
	return nil
}

// server reads the origin of an MCP tool.
func (d *decoder) server(v []byte) error {
	if v[0] != '{' {
		if d.strict && string(v) != "null" {
			return errType
		}
		return nil
	}
	return each(v, serverKeys, func(key string, v []byte) error {
		if key == "name" {
			return d.text(&d.ev.MCPServer, v)
		}
		return d.text(&d.ev.MCPSource, v)
	})
}

// calls reads the calls of one model turn. The input of a call may be anything here: the client reports also what it refused
// because the input did not fit the tool.
func (d *decoder) calls(v []byte) error {
	if v[0] != '[' {
		return nil
	}
	return rawjson.Array(v, func(v []byte) error {
		if v[0] != '{' {
			return nil
		}
		var c event.BatchCall
		err := each(v, callKeys, func(key string, v []byte) error {
			switch key {
			case "tool_name":
				return d.text(&c.Tool, v)
			case "tool_use_id":
				return d.text(&c.ToolUseID, v)
			case "tool_input":
				c.Input = v
			case "tool_response":
				c.Response = v
			}
			return nil
		})
		if err == nil && len(d.ev.Batch) == maxBatch {
			err = errors.New("too many calls in one turn")
		}
		d.ev.Batch = append(d.ev.Batch, c)
		return err
	})
}

// maxBatch bounds the calls of one turn: far beyond any model's answer, and little memory.
const maxBatch = 10_000

// finish checks what the event as a whole needs: a verdict on a tool needs the tool and an input that has one reading.
func (d *decoder) finish() error {
	switch d.ev.Kind {
	case event.KindPreTool, event.KindSkillShell, event.KindPermissionRequest:
		if d.ev.Tool == "" {
			return errors.New("no tool_name")
		}
		return checkInput(d.ev.Tool, d.ev.Input)
	case event.KindPostTool, event.KindPostToolFailure, event.KindPermissionDenied:
		if isObject(d.ev.Input) {
			return checkInput(d.ev.Tool, d.ev.Input)
		}
	}
	return nil
}

func isObject(v json.RawMessage) bool { return len(v) > 0 && v[0] == '{' }

// milliseconds reads a duration; what is no sensible number is unknown.
func milliseconds(v []byte) *int64 {
	f, err := strconv.ParseFloat(string(v[:min(len(v), 64)]), 64)
	if err != nil || f < 0 || f > math.MaxInt32*1000.0 {
		return nil
	}
	n := int64(f)
	return &n
}
