// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/when"
)

// timeRange resolves WHEN words and --since/--until into one range and says on stderr what it is. Without any of them it
// is def.
func (a *app) timeRange(words []string, since, until, def string) (from, to time.Time, err error) {
	now := a.Now()
	parse := func(s string) (when.Range, error) {
		r, err := when.Parse(s, now)
		var e *when.Error
		if errors.As(err, &e) {
			return r, usagef("%v", err)
		}
		return r, err
	}
	text := strings.Join(words, " ")
	if text == "" && since == "" && until == "" {
		text = def
	}
	if text != "" {
		r, err := parse(text)
		if err != nil {
			return from, to, err
		}
		from, to = r.From, r.To
	}
	if since != "" {
		r, err := parse(since)
		if err != nil {
			return from, to, err
		}
		from = r.Since()
	}
	if until != "" {
		r, err := parse(until)
		if err != nil {
			return from, to, err
		}
		to = r.Until()
	}
	if !to.IsZero() && !from.Before(to) {
		return from, to, usagef("the time range is empty: it would begin %s and end %s", stamp(from), stamp(to))
	}
	fmt.Fprintf(a.Err, "%s to %s\n", edge(from, "the beginning"), edge(to, "now"))
	return from, to, nil
}

func stamp(t time.Time) string { return t.Format("Mon 2 Jan 2006 15:04 MST") }

func edge(t time.Time, open string) string {
	if t.IsZero() {
		return open
	}
	return stamp(t)
}
