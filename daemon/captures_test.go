// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
)

// Every event that the real client was seen to send is decoded, recorded, and answered as its kind demands.
func TestRealEventsAreRecordedAndAnswered(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("..", "hooks", "agents", "claude", "testdata", "captures", "*.json"))
	if err != nil || len(files) < 50 {
		t.Fatalf("%d captures, %v", len(files), err)
	}
	b := running(t)
	for _, file := range files {
		name, _, _ := strings.Cut(filepath.Base(file), ".")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var capture struct{ Payload json.RawMessage }
		if json.Unmarshal(data, &capture) == nil && len(capture.Payload) > 0 {
			data = capture.Payload
		}
		before := len(b.records())
		r := b.send(name, data)
		kind, _ := b.d.adapters["claude"].Kind(name)
		if !kind.Gates() && !isPass(r) {
			t.Errorf("%s: %+v", filepath.Base(file), r)
		}
		if kind == event.KindConfigChange && isPass(r) != strings.Contains(file, "policy") {
			t.Errorf("%s: %+v", filepath.Base(file), r)
		}
		if len(b.records()) == before {
			t.Errorf("%s left no record", filepath.Base(file))
		}
	}
	for _, r := range b.kinds(record.TamperUndecodable, record.Gap) {
		t.Errorf("record %+v", r)
	}
}
