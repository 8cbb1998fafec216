// SPDX-License-Identifier: Apache-2.0

// Package model is a scripted stand-in for a Messages API server, for end-to-end tests with a real client on loopback. It is
// stateless towards the client: what it answers depends only on the conversation in the request, so that retries, resumed
// sessions and subagents need no bookkeeping.
package model

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"sync"
)

// Step is one assistant message of a scenario.
type Step struct {
	Text  string
	Calls []Call
	// Before runs on the server before the step is sent; tests use it to change the world between two turns.
	Before func()
}

// Call is one tool call of a step.
type Call struct {
	Tool  string
	Input any
	ID    string // "" = made up; set it to send a repeated or hostile id
}

// Result is one tool result as the client sent it back to the model.
type Result struct {
	ToolUseID string
	IsError   bool
	Text      string
}

// Server answers /v1/messages. A prompt that holds the text SCENARIO=name selects the scenario; the n-th assistant message
// after it is step n. Past the last step the answer is a plain closing text.
type Server struct {
	scenarios map[string][]Step

	mu      sync.Mutex
	results map[string][]Result // by scenario, each tool result once, in order of arrival
	seen    map[string]bool
	count   int
	ran     map[string]bool // scenario/step whose Before ran

	ln  net.Listener
	srv *http.Server
}

// New listens on a free loopback port and serves until Close.
func New(scenarios map[string][]Step) (*Server, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{scenarios: scenarios, results: map[string][]Result{}, seen: map[string]bool{}, ran: map[string]bool{}, ln: ln}
	s.srv = &http.Server{Handler: http.HandlerFunc(s.serve)}
	go func() { _ = s.srv.Serve(ln) }()
	return s, nil
}

// URL is the base URL for the client.
func (s *Server) URL() string { return "http://" + s.ln.Addr().String() }

// Close stops the server and its connections.
func (s *Server) Close() { _ = s.srv.Close() }

// Results returns what the model was told about its calls in a scenario.
func (s *Server) Results(scenario string) []Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Result(nil), s.results[scenario]...)
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type part struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

var marker = regexp.MustCompile(`SCENARIO=([a-z0-9-]+)`)

// parts reads a content field, which is a string or a list.
func parts(raw json.RawMessage) []part {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []part{{Type: "text", Text: text}}
	}
	var ps []part
	_ = json.Unmarshal(raw, &ps)
	return ps
}

// locate finds the scenario of a conversation and how many assistant messages follow its marker. Tool results are not
// searched: they may echo the prompt.
func locate(ms []message) (name string, step, from int) {
	from = -1
	for i, m := range ms {
		if m.Role != "user" {
			continue
		}
		for _, p := range parts(m.Content) {
			if p.Type != "text" {
				continue
			}
			if found := marker.FindAllStringSubmatch(p.Text, -1); found != nil {
				name, from = found[len(found)-1][1], i
			}
		}
	}
	if from < 0 {
		return "", 0, 0
	}
	for _, m := range ms[from:] {
		if m.Role == "assistant" {
			step++
		}
	}
	return name, step, from
}

func (s *Server) note(name string, ms []message) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, m := range ms {
		for _, p := range parts(m.Content) {
			if p.Type != "tool_result" || s.seen[name+"/"+p.ToolUseID] {
				continue
			}
			s.seen[name+"/"+p.ToolUseID] = true
			var b strings.Builder
			for _, c := range parts(p.Content) {
				b.WriteString(c.Text)
			}
			s.results[name] = append(s.results[name], Result{ToolUseID: p.ToolUseID, IsError: p.IsError, Text: b.String()})
		}
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/v1/messages") {
		http.Error(w, `{"type":"error","error":{"type":"not_found_error","message":"no such endpoint"}}`, http.StatusNotFound)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, 256<<20))
	var req struct {
		Model    string            `json:"model"`
		Stream   bool              `json:"stream"`
		Messages []message         `json:"messages"`
		Tools    []json.RawMessage `json:"tools"`
	}
	if err != nil || json.Unmarshal(body, &req) != nil {
		http.Error(w, `{"type":"error","error":{"type":"invalid_request_error","message":"unreadable"}}`, http.StatusBadRequest)
		return
	}
	step := Step{Text: "done"}
	if name, n, from := locate(req.Messages); name != "" && len(req.Tools) > 0 {
		s.note(name, req.Messages[from:])
		if steps := s.scenarios[name]; n < len(steps) {
			step = steps[n]
		}
		s.before(fmt.Sprintf("%s/%d", name, n), step.Before)
	}
	s.send(w, req.Model, req.Stream, step)
}

// before runs a step's hook once, however often the client repeats the request.
func (s *Server) before(key string, f func()) {
	s.mu.Lock()
	run := f != nil && !s.ran[key]
	s.ran[key] = true
	s.mu.Unlock()
	if run {
		f()
	}
}

func (s *Server) nextID(prefix string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	return fmt.Sprintf("%s_%06d", prefix, s.count)
}

func (s *Server) send(w http.ResponseWriter, modelName string, stream bool, st Step) {
	type block = map[string]any
	var blocks []block
	if st.Text != "" || len(st.Calls) == 0 {
		blocks = append(blocks, block{"type": "text", "text": st.Text})
	}
	stop := "end_turn"
	for _, c := range st.Calls {
		stop = "tool_use"
		id := c.ID
		if id == "" {
			id = s.nextID("toolu")
		}
		blocks = append(blocks, block{"type": "tool_use", "id": id, "name": c.Tool, "input": c.Input})
	}
	usage := map[string]int{"input_tokens": 10, "output_tokens": 10}
	msg := map[string]any{"id": s.nextID("msg"), "type": "message", "role": "assistant", "model": modelName, "usage": usage}
	if !stream {
		msg["content"], msg["stop_reason"], msg["stop_sequence"] = blocks, stop, nil
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(msg)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	emit := func(kind string, data map[string]any) {
		data["type"] = kind
		b, _ := json.Marshal(data)
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", kind, b)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
	}
	msg["content"], msg["stop_reason"], msg["stop_sequence"] = []block{}, nil, nil
	emit("message_start", map[string]any{"message": msg})
	for i, b := range blocks {
		delta := map[string]any{"type": "text_delta", "text": b["text"]}
		start := block{"type": "text", "text": ""}
		if b["type"] == "tool_use" {
			input, _ := json.Marshal(b["input"])
			start = block{"type": "tool_use", "id": b["id"], "name": b["name"], "input": block{}}
			delta = map[string]any{"type": "input_json_delta", "partial_json": string(input)}
		}
		emit("content_block_start", map[string]any{"index": i, "content_block": start})
		emit("content_block_delta", map[string]any{"index": i, "delta": delta})
		emit("content_block_stop", map[string]any{"index": i})
	}
	emit("message_delta", map[string]any{"delta": map[string]any{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	emit("message_stop", map[string]any{})
}
