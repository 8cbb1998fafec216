// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"maps"
	"slices"
	"strings"
	"sync"
)

// maxAlarms bounds the alarms that are kept; every one of them is also a record.
const maxAlarms = 64

// alarmPrefix is where alarms live in the log's state.
const alarmPrefix = "alarm/"

// alarms are the conditions that need a person and that stay until they are gone. They outlive restarts in the log's
// state, each set in the transaction of the record that explains it. Safe for concurrent use.
type alarms struct {
	mu   sync.Mutex
	text map[string]string // key without prefix -> what is wrong
}

// newAlarms takes the alarms that the log's state holds.
func newAlarms(state map[string][]byte) *alarms {
	a := &alarms{text: make(map[string]string)}
	for k, v := range state {
		a.set(strings.TrimPrefix(k, alarmPrefix), string(v))
	}
	return a
}

// set raises an alarm and reports whether there was room for it.
func (a *alarms) set(key, text string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, ok := a.text[key]; !ok && len(a.text) >= maxAlarms {
		return false
	}
	a.text[key] = text
	return true
}

// clear ends an alarm and reports whether it was raised.
func (a *alarms) clear(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, ok := a.text[key]
	delete(a.text, key)
	return ok
}

// list returns the texts in the order of their keys.
func (a *alarms) list() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := make([]string, 0, len(a.text))
	for _, k := range slices.Sorted(maps.Keys(a.text)) {
		out = append(out, a.text[k])
	}
	return out
}
