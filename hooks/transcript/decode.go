// SPDX-License-Identifier: Apache-2.0

package transcript

import (
	"bytes"
	"encoding/json"
	"time"
)

// The marks of the lines that are wanted: "tool_use" and "tool_result". They stand for themselves only outside of strings:
// within one, quotes are escaped.
var (
	mark       = []byte(`"tool_`)
	callRest   = []byte(`use"`)
	resultRest = []byte(`result"`)
	cwdMark    = []byte(`"cwd"`)
)

// entry is what a line says of itself. The slices alias the line.
type entry struct {
	kind, session, agent, cwd, stamp, version []byte
	asked, forked                             []byte // in a copy: requestSessionId, forkedFrom
	sidechain                                 bool
	message                                   []byte
	outcome, denial, decision                 []byte // of a result: toolUseResult, toolDenialKind, permissionDecision
}

// readEntry takes a line apart. Of a key that stands twice the last one counts, as for the client's own reader.
func readEntry(data []byte) (entry, error) {
	var e entry
	end, err := object(data, space(data, 0), 0, func(key, v []byte) error {
		switch string(content(key, maxName)) {
		case "type":
			e.kind = content(v, maxName)
		case "sessionId":
			e.session = content(v, maxName)
		case "agentId":
			e.agent = content(v, maxName)
		case "cwd":
			e.cwd = content(v, maxPath)
		case "timestamp":
			e.stamp = content(v, maxName)
		case "version":
			e.version = content(v, maxName)
		case "requestSessionId":
			e.asked = content(v, maxName)
		case "forkedFrom":
			e.forked = v
		case "isSidechain":
			e.sidechain = string(v) == "true"
		case "message":
			e.message = v
		case "toolUseResult":
			e.outcome = content(v, maxName)
		case "toolDenialKind":
			e.denial = content(v, maxName)
		case "permissionDecision":
			e.decision = v
		}
		return nil
	})
	if err == nil && space(data, end) != len(data) {
		err = errForm
	}
	return e, err
}

// origin is the session that a copied line comes from, "" if it is no copy.
func (e *entry) origin() []byte {
	from := e.asked
	if len(e.forked) > 0 {
		_ = each(e.forked, func(key, v []byte) error {
			if string(content(key, maxName)) == "sessionId" {
				from = content(v, maxName)
			}
			return nil
		})
	}
	if bytes.Equal(from, e.session) {
		return nil
	}
	return from
}

// calls hands out the calls of an answer of the model. ok is false if one of them lacks a part.
func (r *Reader) calls(e *entry, l *line, v *Visitor) (ok bool, err error) {
	c := Call{
		Session: r.names.get(e.session), Subagent: r.names.get(e.agent), Sidechain: e.sidechain, Cwd: r.names.get(e.cwd), Time: stamp(e.stamp),
		Version: r.names.get(e.version), Origin: r.names.get(e.origin()), Oversized: l.long, Offset: l.offset,
	}
	ok = true
	var list []byte
	err = each(e.message, func(key, val []byte) error {
		switch string(content(key, maxName)) {
		case "id":
			c.MessageID = r.names.get(content(val, maxName))
		case "model":
			c.Model = r.names.get(content(val, maxName))
		case "content":
			list = val
		}
		return nil
	})
	if err != nil || len(list) == 0 || list[0] != '[' {
		return err == nil, nil // an answer in words only
	}
	_, err = array(list, 0, 0, func(block []byte) error {
		var kind, id, tool, input []byte
		if each(block, func(key, val []byte) error {
			switch string(content(key, maxName)) {
			case "type":
				kind = content(val, maxName)
			case "id":
				id = content(val, maxName)
			case "name":
				tool = content(val, maxName)
			case "input":
				input = val
			}
			return nil
		}) != nil || string(kind) != "tool_use" {
			return nil
		}
		if len(id) == 0 || len(tool) == 0 || len(input) == 0 || input[0] != '{' || !l.long && !json.Valid(input) {
			ok = false
			return nil
		}
		c.ToolUseID, c.Tool, c.Input = string(id), r.names.get(tool), nil
		if !l.long {
			c.Input = input
		}
		r.stats.Calls++
		if v.Call == nil {
			return nil
		}
		return v.Call(&c)
	})
	return ok, err
}

// results hands out the results that a line tells the model.
func (r *Reader) results(e *entry, l *line, v *Visitor) error {
	res := Result{Session: r.names.get(e.session), Subagent: r.names.get(e.agent), Refused: r.names.get(e.denial), Time: stamp(e.stamp), Offset: l.offset}
	if res.Refused == "" {
		res.Refused = refusedByText(e.outcome)
	}
	var list []byte
	if each(e.message, func(key, val []byte) error {
		if string(content(key, maxName)) == "content" {
			list = val
		}
		return nil
	}) != nil || len(list) == 0 || list[0] != '[' {
		return nil
	}
	if res.Refused != "" {
		_ = each(e.decision, func(key, val []byte) error {
			if string(content(key, maxName)) == "source" {
				res.RefusedBy = r.names.get(content(val, maxName))
			}
			return nil
		})
	}
	_, err := array(list, 0, 0, func(block []byte) error {
		var kind, id []byte
		failed := false
		if each(block, func(key, val []byte) error {
			switch string(content(key, maxName)) {
			case "type":
				kind = content(val, maxName)
			case "tool_use_id":
				id = content(val, maxName)
			case "is_error":
				failed = string(val) == "true"
			}
			return nil
		}) != nil || string(kind) != "tool_result" || len(id) == 0 {
			return nil
		}
		res.ToolUseID, res.IsError = string(id), failed
		r.stats.Results++
		if v.Result == nil {
			return nil // it has had enough
		}
		return v.Result(&res)
	})
	return err
}

// refusedByText knows the refusals of clients that had no word of their own for them.
func refusedByText(outcome []byte) string {
	switch {
	case string(outcome) == "User rejected tool use":
		return "user-rejected"
	case bytes.HasPrefix(outcome, []byte("Error: Claude requested permissions to ")):
		return "user-rejected"
	}
	return ""
}

// each calls member for the members of v, if it is an object and nothing else.
func each(v []byte, member func(key, value []byte) error) error {
	end, err := object(v, 0, 0, member)
	if err == nil && end != len(v) {
		err = errForm
	}
	return err
}

func stamp(b []byte) time.Time {
	var t time.Time
	if len(b) == 0 || t.UnmarshalText(b) != nil {
		return time.Time{}
	}
	return t
}

// names makes one string of texts that come again and again.
type names struct{ known map[string]string }

// Bounds of what is remembered.
const (
	maxKnown = 4096 // texts
	maxText  = 512  // bytes of each
)

func (n *names) get(b []byte) string {
	if len(b) == 0 {
		return ""
	}
	if len(b) > maxText {
		return string(b)
	}
	if s, ok := n.known[string(b)]; ok {
		return s
	}
	if n.known == nil || len(n.known) >= maxKnown {
		n.known = make(map[string]string)
	}
	s := string(b)
	n.known[s] = s
	return s
}
