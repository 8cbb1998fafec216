// SPDX-License-Identifier: Apache-2.0

package control

import (
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// CallsQuery renders a filter as the query of GET /v1/calls. Times are RFC 3339 with nanoseconds; zero fields are left out.
func CallsQuery(f record.Filter) url.Values {
	q := url.Values{}
	set := func(key, value string) {
		if value != "" {
			q.Set(key, value)
		}
	}
	set("from", timeText(f.From))
	set("to", timeText(f.To))
	set("session", f.Session)
	set("agent", f.Agent)
	set("tool", f.Tool)
	set("verdict", f.Verdict)
	set("rule", f.Rule)
	set("project", f.Project)
	set("grep", f.Grep)
	set("id", f.ID)
	for key, on := range map[string]bool{"denied": f.Denied, "asked": f.Asked, "failed": f.Failed, "canary": f.Canary} {
		if on {
			q.Set(key, "1")
		}
	}
	if f.Limit != 0 {
		q.Set("limit", strconv.Itoa(f.Limit))
	}
	return q
}

// ParseCallsQuery is the other direction. Unknown keys and values that cannot be read are errors: a filter that was
// misread would answer another question.
func ParseCallsQuery(q url.Values) (record.Filter, error) {
	var f record.Filter
	texts := map[string]*string{
		"session": &f.Session, "agent": &f.Agent, "tool": &f.Tool, "verdict": &f.Verdict, "rule": &f.Rule,
		"project": &f.Project, "grep": &f.Grep, "id": &f.ID,
	}
	flags := map[string]*bool{"denied": &f.Denied, "asked": &f.Asked, "failed": &f.Failed, "canary": &f.Canary}
	times := map[string]*time.Time{"from": &f.From, "to": &f.To}
	for key, values := range q {
		if len(values) != 1 {
			return f, fmt.Errorf("query key %q is given %d times", key, len(values))
		}
		v := values[0]
		switch {
		case texts[key] != nil:
			*texts[key] = v
		case flags[key] != nil && (v == "1" || v == "0"):
			*flags[key] = v == "1"
		case times[key] != nil:
			t, err := time.Parse(time.RFC3339Nano, v)
			if err != nil {
				return f, fmt.Errorf("query key %q: %q is not an RFC 3339 time", key, v)
			}
			*times[key] = t
		case key == "limit":
			n, err := strconv.Atoi(v)
			if err != nil || n < 0 {
				return f, fmt.Errorf("query key %q: %q is not a number", key, v)
			}
			f.Limit = n
		default:
			return f, fmt.Errorf("unknown query key %q or value %q", key, v)
		}
	}
	return f, nil
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}
