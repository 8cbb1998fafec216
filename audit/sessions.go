// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

// promptRunes is how much of a session's first prompt is shown.
const promptRunes = 200

// Sessions calls fn for each session with a record in [from, to), by its first record there. Zero times do not restrict.
// Counts are of that range. Damage is handled as in Calls.
func (l *Log) Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error {
	return sessions(ctx, l, from, to, fn)
}

// summary is a session while its records come in.
type summary struct {
	record.Session
	subagents map[string]bool
	prompt    uint64 // its first prompt record
	file      *file
}

func sessions(ctx context.Context, src source, from, to time.Time, fn func(record.Session) error) (err error) {
	fs := &files{src: src}
	defer func() { err = errors.Join(err, fs.closeAll()) }()
	byID := make(map[[2]string]*summary)
	var order []*summary
	bad := fs.rows(ctx, Range{From: from, To: to}, func(f *file, row segment.Row) error {
		r, err := record.Unmarshal(row.Leaf)
		if err != nil || r.Session == "" || r.Source == "canary" {
			return nil // Verify tells of the first; a canary is no session of an agent
		}
		key := [2]string{r.Agent, r.Session}
		s := byID[key]
		if s == nil {
			s = &summary{Session: record.Session{ID: r.Session, Agent: r.Agent, First: r.Time}, subagents: map[string]bool{}}
			byID[key] = s
			order = append(order, s)
		}
		s.add(f, r)
		return nil
	})
	if bad != nil && !errors.Is(bad, ErrDamaged) {
		return bad
	}
	slices.SortStableFunc(order, func(a, b *summary) int { return a.First.Compare(b.First) })
	for _, s := range order {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if s.prompt != 0 {
			bodies, err := s.file.bodies(s.prompt)
			if err != nil {
				return err
			}
			s.Prompt = shorten(string(bodies["prompt"]))
		}
		if err := fn(s.Session); err != nil {
			return err
		}
	}
	return bad
}

func (s *summary) add(f *file, r *record.Record) {
	if r.Time.Before(s.First) {
		s.First = r.Time
	}
	if r.Time.After(s.Last) {
		s.Last = r.Time
	}
	if r.Project != "" && s.Project == "" {
		s.Project = r.Project
	}
	if r.Subagent != "" && !s.subagents[r.Subagent] {
		s.subagents[r.Subagent] = true
		s.Subagent++
	}
	switch r.Kind {
	case record.CallRequested:
		s.Calls++
		if d := r.Decision; d != nil {
			if d.Answer == "deny" {
				s.Denied++
			}
			if d.Verdict == "ask" || d.Answer == "ask" || d.Card != "" {
				s.Asked++
			}
		}
	case record.CallFailed:
		s.Failed++
	case record.Prompt:
		if s.prompt == 0 {
			s.prompt, s.file = r.Seq, f
		}
	case record.SessionEnd:
		s.Ended = true
	case record.SessionStart:
		s.Ended = false // resumed
	}
}

// shorten makes one line of at most promptRunes characters.
func shorten(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= promptRunes {
		return s
	}
	return string([]rune(s)[:promptRunes-1]) + "…"
}

// jsonEscaped returns s as it stands inside a JSON string.
func jsonEscaped(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil {
		return s
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
}
