// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// EventKind reports whether a record is an event for the purpose of GET /v1/events: it is no record of a tool call, and its
// kind is prefix, or of the family that prefix names ("tamper."). An empty prefix selects every event.
func EventKind(k record.Kind, prefix string) bool {
	switch k {
	case record.CallRequested, record.CallFinished, record.CallFailed, record.CallRejected:
		return false
	}
	return prefix == "" || string(k) == prefix || strings.HasSuffix(prefix, ".") && strings.HasPrefix(string(k), prefix)
}

// Events calls fn for each event in [from, to), bodies included. Zero times do not restrict; kind is as in EventKind.
func (c *Client) Events(ctx context.Context, from, to time.Time, kind string, fn func(RecordView) error) error {
	q := CallsQuery(record.Filter{From: from, To: to})
	if kind != "" {
		q.Set("kind", kind)
	}
	return lines(ctx, c, "/v1/events", q, fn)
}

// ParseEventsQuery reads the query of GET /v1/events.
func ParseEventsQuery(q url.Values) (from, to time.Time, kind string, err error) {
	kind = q.Get("kind")
	rest := url.Values{}
	for key, values := range q {
		if key != "kind" {
			rest[key] = values
		}
	}
	f, err := ParseCallsQuery(rest)
	return f.From, f.To, kind, err
}
