// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"strconv"
	"time"
)

// Head is the beginning of a record: what is needed to tell whether the rest is.
type Head struct {
	Seq            uint64
	Time           time.Time
	Kind           Kind
	ID, Call       string
	Agent, Session string
}

// Head returns the head of r.
func (r *Record) Head() Head {
	return Head{Seq: r.Seq, Time: r.Time, Kind: r.Kind, ID: r.ID, Call: r.Call, Agent: r.Agent, Session: r.Session}
}

// Peek reads the head of a leaf without decoding the rest, which makes it some twenty times as fast as Unmarshal. It relies
// on the frozen field order and on Marshal's way of writing. Not ok means that Unmarshal must have a look: something is
// escaped, or not as Marshal writes it. What follows the head is not checked.
func Peek(leaf []byte) (h Head, ok bool) {
	rest, ok := bytes.CutPrefix(leaf, []byte(`{"v":1,"seq":`))
	if !ok {
		return h, false
	}
	n := bytes.IndexByte(rest[:min(len(rest), 21)], ',')
	if n < 0 {
		return h, false
	}
	seq, err := strconv.ParseUint(string(rest[:n]), 10, 64)
	if err != nil {
		return h, false
	}
	h.Seq, rest = seq, rest[n:]
	var at, kind string
	if at, rest, ok = field(rest, `,"time":"`); !ok || at == "" || h.Time.UnmarshalText([]byte(at)) != nil {
		return h, false
	}
	if kind, rest, ok = field(rest, `,"kind":"`); !ok || kind == "" {
		return h, false
	}
	h.Kind = Kind(kind)
	if h.ID, rest, ok = field(rest, `,"id":"`); !ok || h.ID == "" {
		return h, false
	}
	if h.Call, rest, ok = field(rest, `,"call":"`); !ok {
		return h, false
	}
	if h.Agent, rest, ok = field(rest, `,"agent":"`); !ok {
		return h, false
	}
	h.Session, _, ok = field(rest, `,"session":"`)
	return h, ok
}

// field takes a string field off the front of b. A field that is not there is empty and ok; one with an escape, or with bytes
// that are not plain ASCII, is not ok.
func field(b []byte, mark string) (value string, rest []byte, ok bool) {
	after, there := bytes.CutPrefix(b, []byte(mark))
	if !there {
		return "", b, true
	}
	for i, c := range after {
		switch {
		case c == '"':
			return string(after[:i]), after[i+1:], true
		case c == '\\', c < ' ', c > '~':
			return "", b, false
		}
	}
	return "", b, false
}
