// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"errors"
	"net/http"
	"path/filepath"
	"testing"

	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/tripwires"
)

func TestAReloadLoosensOnlyWhatAPersonWasShown(t *testing.T) {
	t.Parallel()
	b := running(t)
	expecting := func(lines ...string) error {
		_, err := b.client.Reload(t.Context(), control.ReloadRequest{Expect: lines, Proof: control.Proof{Level: "L0"}})
		return err
	}
	const relaxed = "tune delete.outside to ask: added"
	allowed := waiting(t, "version: 1\nrules:\n  - {id: make, allow: [\"Bash(make:*)\"]}\n")
	other := waiting(t, "version: 1\nrules:\n  - {id: make, allow: [\"Bash(make:*)\", \"Bash(rm:*)\"]}\n")
	before := b.status().RuleSet
	write(t, filepath.Join(b.places.RulesDir, "relaxed.yaml"), "version: 1\ntune:\n  - {rule: delete.outside, to: ask}\n")
	write(t, filepath.Join(b.places.RulesDir, "z.yaml"), "version: 1\nrules:\n  - {id: make, allow: [\"Bash(make:*)\"]}\n")
	var re *control.ResponseError
	for _, lines := range [][]string{{relaxed}, {"tune delete.outside to pass: added"}, {relaxed, allowed, "more"}, {relaxed, other}} {
		if err := expecting(lines...); !errors.As(err, &re) || re.Status != http.StatusConflict || re.Hint == "" || b.status().RuleSet != before {
			t.Errorf("%q: %v, set %s", lines, err, b.status().RuleSet)
		}
	}
	if err := expecting(allowed, relaxed); err != nil || b.status().RuleSet == before {
		t.Errorf("all that waits was named: %v", err)
	}
	if err := expecting(relaxed); !errors.As(err, &re) || re.Status != http.StatusConflict {
		t.Errorf("nothing waits any more: %v", err)
	}
}

// waiting is the line about an allow rule that a person would be shown.
func waiting(t *testing.T, text string) string {
	t.Helper()
	set, err := tripwires.Load([]tripwires.File{{Path: "z.yaml", Layer: tripwires.LayerUser, Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	none, err := tripwires.Load(nil)
	if err != nil {
		t.Fatal(err)
	}
	_, _, loosened := tripwires.Tighten(none, set)
	if len(loosened) != 1 {
		t.Fatalf("loosened: %q", loosened)
	}
	return loosened[0]
}

func TestTheRulesInForceCanBeMadeAgainFromWhatTheDaemonHandsOut(t *testing.T) {
	t.Parallel()
	b := running(t)
	same := func() {
		t.Helper()
		r, err := b.client.Rules(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var files []tripwires.File
		for _, f := range r.Files {
			files = append(files, tripwires.File{Path: f.Path, Layer: tripwires.Layer(f.Layer), Data: f.Data, Generation: f.Generation})
		}
		set, err := tripwires.Load(files)
		if err != nil || set.Hash() != r.RuleSet || r.RuleSet != b.status().RuleSet || r.Profile != "standard" || r.Mode == "" {
			t.Errorf("%v: %+v", err, r)
		}
	}
	same()
	write(t, filepath.Join(b.places.RulesDir, "a.yaml"), denyRules)
	b.eventually("the new rule denies", func() bool { return b.deploys() == "deny" })
	same()
	write(t, filepath.Join(b.places.RulesDir, "a.yaml"), "version: 1\nrules:\n  - {id: other, ask: [\"Bash(other:*)\"]}\n")
	b.eventually("the old form waits beside the new one", func() bool { return len(b.status().Loosening) == 1 })
	same()
}
