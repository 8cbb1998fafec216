// SPDX-License-Identifier: Apache-2.0

// Package transcript reads the transcripts that Claude Code keeps of its own sessions: one JSON line for each thing that
// happened, in projects/PROJECT/SESSION.jsonl below the client's directory, those of subagents in
// projects/PROJECT/SESSION/subagents/. It hands out the tool calls and their results, and nothing else of what people and
// models said there. The format was observed on version 2.1.332; testdata/real holds what that client wrote.
//
// Transcripts are files that anything on the machine may have written, and some are being written now. Lines are read one
// at a time in bounded memory; what cannot be read is counted by kind and never ends the reading. A transcript tells what
// the client chose to write: it can be edited, and it is no proof.
package transcript

import (
	"encoding/json"
	"time"
)

// Call is one tool call as the model asked for it. It may have been refused, and the client may have completed its input
// before it ran. The strings are the reader's own; Input aliases its buffer.
type Call struct {
	Session   string
	Subagent  string // the subagent's id; "" for the main conversation
	Sidechain bool   // the line belongs to a subagent's conversation, whether or not its id is told
	Tool      string
	ToolUseID string
	MessageID string          // of the model's answer that holds the call; one answer is written as several lines
	Input     json.RawMessage // a JSON object, valid until the visitor returns; nil if Oversized
	Oversized bool            // the line is longer than Options.MaxLine, and the input was not kept
	// Origin is the session that the call was made in if this line is a copy in a session that was forked from it; else "".
	// The client writes the fork's directory, not its own, into the Cwd of a copy.
	Origin  string
	Cwd     string    // the session's directory when the call was asked for
	Time    time.Time // zero if the line tells none
	Version string    // of the client
	Model   string
	Offset  int64 // of the line in its file
}

// Result is the end of a call: what the model was told. Its text is not read.
type Result struct {
	Session   string
	Subagent  string
	ToolUseID string
	IsError   bool
	// Refused says that the call did not run, in the client's word for why: "user-rejected", "permission-rule", "cancelled",
	// "interrupted"... It is "" for a call that ran, and for a refusal by a client too old to tell.
	Refused   string
	RefusedBy string // what refused it, as the client puts it: "hook", "config", "user"...; "" if it does not tell
	Time      time.Time
	Offset    int64
}

// Visitor takes what a transcript holds, in the order of its lines. A nil function is not called, and lines that hold nothing
// else are not read; the functions may set and clear each other while a transcript is read. An error of Call or Result ends
// the reading and is returned as it is. The values are valid until the function returns.
type Visitor struct {
	Call   func(*Call) error
	Result func(*Result) error
	// Advance is told how many more bytes were dealt with.
	Advance func(bytes int64)
}

// Stats counts what was read, and what was not.
type Stats struct {
	Files, Lines, Calls, Results int64

	// Lines that gave nothing.
	Broken     int64 // not one JSON object, or a call without its parts
	Oversized  int64 // longer than Options.MaxLine: its calls come without their input, or it was skipped
	Unfinished int64 // the last line of its file, without an end: it may be written just now

	// Entries of the tree that were not opened.
	Links      int64 // symbolic links
	Irregular  int64 // named *.jsonl, and no regular file
	Unreadable int64 // files and directories that could not be opened or read
	Beyond     int64 // directories and files beyond the bounds of a listing; at least so many
}

// Add adds o to s.
func (s *Stats) Add(o Stats) {
	s.Files += o.Files
	s.Lines += o.Lines
	s.Calls += o.Calls
	s.Results += o.Results
	s.Broken += o.Broken
	s.Oversized += o.Oversized
	s.Unfinished += o.Unfinished
	s.Links += o.Links
	s.Irregular += o.Irregular
	s.Unreadable += o.Unreadable
	s.Beyond += o.Beyond
}

// Options bound a Reader. The zero value means the defaults.
type Options struct {
	// MaxLine is how long a line may be to be held in memory whole; 0 = DefaultMaxLine. A longer one is read with its long
	// strings shortened: its calls and results are still told, the inputs are not.
	MaxLine int
}

// DefaultMaxLine is far above what the client writes but for files that went through the model whole.
const DefaultMaxLine = 8 << 20

// Bounds of what is taken over from a line.
const (
	maxName = 512      // ids, tools, versions
	maxPath = 16 << 10 // directories
)
