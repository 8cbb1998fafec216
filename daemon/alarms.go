// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	alarmPrefix = "alarm/" // where alarms live in the log's state
	maxAlarms   = 64       // kept at a time; every one of them is also a record
	alarmLife   = 24 * time.Hour
)

// alarm is a condition that needs a person.
type alarm struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
	// Stays is set if the condition itself ends, and the alarm with it. Other alarms tell of something that happened;
	// they end after alarmLife and stay on record.
	Stays bool `json:"stays,omitempty"`
}

// alarms are those that stand. They outlive restarts in the log's state, each set in the transaction of the record that
// explains it. Safe for concurrent use.
type alarms struct {
	mu    sync.Mutex
	known map[string]alarm // by key without prefix
}

// newAlarms takes the alarms that the log's state holds.
func newAlarms(state map[string][]byte) *alarms {
	a := &alarms{known: make(map[string]alarm)}
	for k, v := range state {
		var al alarm
		if json.Unmarshal(v, &al) == nil && len(a.known) < maxAlarms {
			a.known[strings.TrimPrefix(k, alarmPrefix)] = al
		}
	}
	return a
}

// set raises an alarm and returns its state; nil if there is no room for it.
func (a *alarms) set(key string, al alarm) []byte {
	v, err := json.Marshal(al)
	if err != nil { // a string and a time: cannot happen
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.known[key]; !ok && len(a.known) >= maxAlarms {
		return nil
	}
	a.known[key] = al
	return v
}

// clear ends an alarm.
func (a *alarms) clear(key string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.known, key)
}

// has reports whether an alarm stands.
func (a *alarms) has(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.known[key]
	return ok
}

// staying returns the keys with a prefix of alarms that end with their condition.
func (a *alarms) staying(prefix string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for k, al := range a.known {
		if al.Stays && strings.HasPrefix(k, prefix) {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// over returns the keys of those that ended by time.
func (a *alarms) over(now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	var out []string
	for k, al := range a.known {
		if !al.Stays && now.Sub(al.At) > alarmLife {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}

// list returns the texts of those that stand, in the order of their keys.
func (a *alarms) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]string, 0, len(a.known))
	for _, k := range slices.Sorted(maps.Keys(a.known)) {
		out = append(out, a.known[k].Text)
	}
	return out
}
