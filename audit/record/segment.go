// SPDX-License-Identifier: Apache-2.0

package record

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// SegmentBegin is the kind of the first record of every segment. Its Detail repeats the segment's SegmentMeta (see
// SegmentMeta.Detail), which puts the link to the previous segment under the new one's signature.
const SegmentBegin Kind = "daemon.segment"

// SegmentMeta is the description that a segment file carries of itself.
type SegmentMeta struct {
	V       int       `json:"v"`
	Log     string    `json:"log"`   // log id, from the key's name
	Name    string    `json:"name"`  // file name
	First   uint64    `json:"first"` // sequence number of its first record
	Created time.Time `json:"created"`
	Prev    *Link     `json:"prev,omitempty"` // nil in the first segment of a log
	Lost    *Lost     `json:"lost,omitempty"` // records between Prev and First that are no more
}

// Link names the previous segment as it was when it was closed.
type Link struct {
	Name       string `json:"name"`
	First      uint64 `json:"first"`
	Size       uint64 `json:"size"`       // number of its records
	Root       string `json:"root"`       // base64
	Checkpoint string `json:"checkpoint"` // its last signed checkpoint
}

// Lost declares that records First to Last were given out, or may have been, and cannot be read any more.
type Lost struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	Cause string `json:"cause"`          // damaged, missing
	File  string `json:"file,omitempty"` // where a damaged file lies now
}

// Detail returns m as the Detail of its SegmentBegin record.
func (m *SegmentMeta) Detail() map[string]string {
	d := map[string]string{
		"log":   m.Log,
		"name":  m.Name,
		"first": strconv.FormatUint(m.First, 10),
	}
	if p := m.Prev; p != nil {
		d["prev_name"] = p.Name
		d["prev_first"] = strconv.FormatUint(p.First, 10)
		d["prev_size"] = strconv.FormatUint(p.Size, 10)
		d["prev_root"] = p.Root
		d["prev_checkpoint"] = p.Checkpoint
	}
	if l := m.Lost; l != nil {
		d["lost_first"] = strconv.FormatUint(l.First, 10)
		d["lost_last"] = strconv.FormatUint(l.Last, 10)
		d["lost_cause"] = l.Cause
		d["lost_file"] = l.File
	}
	return d
}

// UnmarshalMeta reads what json.Marshal made of a SegmentMeta and checks that it makes sense.
func UnmarshalMeta(b []byte) (*SegmentMeta, error) {
	m := new(SegmentMeta)
	if err := json.Unmarshal(b, m); err != nil {
		return nil, fmt.Errorf("undecodable segment description: %w", err)
	}
	switch {
	case m.V != Version:
		return nil, fmt.Errorf("segment has version %d, this program knows %d", m.V, Version)
	case m.First < 1:
		return nil, fmt.Errorf("segment %q starts at record 0", m.Name)
	case m.Prev != nil && (m.Prev.First < 1 || m.Prev.Size < 1 || m.Prev.First+m.Prev.Size > m.First || m.Prev.First+m.Prev.Size < m.Prev.First):
		return nil, fmt.Errorf("segment %q does not lie after its predecessor", m.Name)
	case m.Lost != nil && (m.Lost.First < 1 || m.Lost.Last < m.Lost.First || m.Lost.Last >= m.First):
		return nil, fmt.Errorf("segment %q declares an impossible loss", m.Name)
	}
	return m, nil
}
