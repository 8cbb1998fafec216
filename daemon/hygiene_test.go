// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// Values that must not appear in clear anywhere: in our own log no argument at all, on disk no secret.
const (
	argument = "zebra-argument-4711"
	secret   = "ghp_16C7e42F292c6912E7710c838347Ae178B4a"
)

func TestNoArgumentInTheDaemonsLogAndNoSecretOnDisk(t *testing.T) {
	t.Parallel()
	b := holding(t)
	write(t, b.places.TokenFile, "right-token")
	say := argument + " " + secret
	long := strings.Repeat(argument+" ", 20000)
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup"}))
	for i, command := range []string{"ls " + say, "rm -rf src/" + argument, "curl -H 'Authorization: Bearer " + secret + "' https://x", "echo " + long} {
		id := string(rune('a'+i)) + " " + secret
		b.send("PreToolUse", b.bash(command, id))
		b.send("PostToolUse", b.post(command, id))
	}
	b.send("PreToolUse", []byte(`{"command":"`+say))
	b.send("PreToolUse", b.payload("PreToolUse", map[string]any{"tool_name": argument, "tool_input": say, "tool_use_id": say, "cwd": "/tmp/" + say}))
	b.send("UserPromptSubmit", b.payload("UserPromptSubmit", map[string]any{"prompt": say}))
	b.send("PostToolUseFailure", b.payload("PostToolUseFailure", map[string]any{"tool_name": "Bash", "tool_input": map[string]any{"command": say}, "tool_use_id": "z", "error": say}))
	b.send("ConfigChange", b.payload("ConfigChange", map[string]any{"source": argument, "file_path": "/tmp/" + say}))
	b.send("Notification", b.payload("Notification", map[string]any{"message": say, "notification_type": "x"}))
	b.batch(batchCall(say, "hidden", say))
	c := b.dial()
	_, _ = c.Write(frame(t, "claude", "PreToolUse", b.payload("PreToolUse", map[string]any{"tool_name": "Bash", "cwd": "/tmp/" + say,
		"tool_input": map[string]any{"command": "deploy-tool " + say}, "tool_use_id": "held " + secret})))
	b.eventually("the call is held", func() bool { return b.d.gate.Pending() == 1 })
	b.decide(b.card().ID, "approve")
	b.final(c)
	bad := b.dial()
	_, _ = bad.Write(frame(t, argument, argument, []byte(say), func(h *wire.Header) { h.Token = argument }))
	b.final(bad)
	write(t, filepath.Join(b.places.RulesDir, "z.yaml"), "version: 1\nrules: ["+argument)
	b.eventually("the bad rules are seen", func() bool { return b.status().RulesError != "" })
	if n := len(b.kinds(record.CallRequested)); n < 7 {
		t.Fatalf("%d calls", n)
	}
	b.stop()

	if log := b.log.String(); strings.Contains(log, argument) || strings.Contains(log, secret) {
		t.Errorf("the daemon's log holds arguments:\n%s", log)
	}
	err := filepath.Walk(b.places.StateDir, func(path string, fi os.FileInfo, err error) error {
		if err != nil || !fi.Mode().IsRegular() {
			return err
		}
		if fi.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", path, fi.Mode())
		}
		data, err := os.ReadFile(path)
		if i := bytes.Index(data, []byte(secret)); i >= 0 {
			t.Errorf("%s holds a secret: %q", path, data[max(0, i-80):min(len(data), i+80)])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
