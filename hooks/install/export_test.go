// SPDX-License-Identifier: Apache-2.0

package install

import "github.com/tripline-sh/tripline/hooks/agents/claude"

// PutText and TakeOutText are Plan and PlanRemoval on bytes, without a disk under them.
func PutText(text []byte, o Options) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	var want []Entry
	for _, r := range claude.Events() {
		want = append(want, o.entry(r, o.Token))
	}
	return put(d, want)
}

func TakeOutText(text []byte) ([]byte, error) {
	d, err := parse(text)
	if err != nil {
		return nil, err
	}
	return takeOut(d)
}

// Broken is a text as Readable shows it.
func Broken(text []byte) []byte { return broken(text) }
