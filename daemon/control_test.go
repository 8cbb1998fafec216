// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/control"
)

func TestControlAnswers(t *testing.T) {
	t.Parallel()
	b := running(t)
	ctx := t.Context()
	b.send("SessionStart", b.payload("SessionStart", map[string]any{"source": "startup"}))
	b.send("PreToolUse", b.bash("rm -rf src", "1"))
	s := b.status()
	if s.PID != os.Getpid() || s.Version != "test" || s.Mode != "guard" || s.Size == 0 || s.Root == "" || s.GenesisKey == "" ||
		s.HookSocket != b.places.HookSocket || s.Rules == 0 || len(s.Alarms) != 0 || s.MetricsAddr != "" {
		t.Errorf("status %+v", s)
	}
	call := b.calls()[0]
	var views []control.RecordView
	if err := b.client.Records(ctx, call.ID[:20], func(v control.RecordView) error { views = append(views, v); return nil }); err != nil {
		t.Fatal(err)
	}
	if len(views) != 1 || !strings.Contains(views[0].Bodies["input"], "rm -rf src") || !strings.Contains(views[0].Bodies["analysis"], `"effects":[{"kind":"delete"`) {
		t.Errorf("records %+v", views)
	}
	n := 0
	if err := b.client.Sessions(ctx, time.Time{}, time.Time{}, func(record.Session) error { n++; return nil }); err != nil || n != 1 {
		t.Errorf("%d sessions, %v", n, err)
	}
	v, err := b.client.Verify(ctx, control.VerifyRequest{Key: s.GenesisKey})
	if err != nil || v.Outcome != "OK" || v.Size != s.Size {
		t.Errorf("verification %+v, %v", v, err)
	}
	if v, err := b.client.Verify(ctx, control.VerifyRequest{Key: "other+1+x"}); err != nil || v.Outcome != "KEY" {
		t.Errorf("verification with another key: %+v, %v", v, err)
	}
	if cards, err := b.client.Approvals(ctx, false); err != nil || len(cards) != 0 || cards == nil {
		t.Errorf("approvals %v, %v", cards, err)
	}
}

func TestControlRefuses(t *testing.T) {
	t.Parallel()
	b := holding(t, func(o *Options) { o.Overrides["hold"] = "1s" })
	b.final(b.hold("deploy-tool prod", "1"))
	card := b.card().ID
	l0 := control.Proof{Level: "L0"}
	ctx := t.Context()
	decide := func(id string, req control.DecideRequest) error {
		_, err := b.client.Decide(ctx, id, req)
		return err
	}
	announce := func(path, hash, action string, p control.Proof) error {
		_, err := b.client.Announce(ctx, control.AnnounceRequest{Path: path, SHA256: hash, Action: action, Agent: "claude", Proof: p})
		return err
	}
	_, noCard := b.client.Approval(ctx, "zzz")
	_, noProof := b.client.Reload(ctx, control.ReloadRequest{})
	tests := []struct {
		name   string
		err    error
		status int
	}{
		{"an unknown card", noCard, 404},
		{"a decision on an unknown card", decide("zzz", control.DecideRequest{Decision: "deny", Proof: l0}), 404},
		{"a decision without proof", decide(card, control.DecideRequest{Decision: "approve"}), 400},
		{"another proof than this version knows", decide(card, control.DecideRequest{Decision: "approve", Proof: control.Proof{Level: "L2"}}), 400},
		{"a decision that is none", decide(card, control.DecideRequest{Decision: "maybe", Proof: l0}), 400},
		{"a denial", decide(card, control.DecideRequest{Decision: "deny", Proof: l0}), 0},
		{"the same denial again", decide(card, control.DecideRequest{Decision: "deny", Proof: l0}), 0},
		{"an approval after it", decide(card, control.DecideRequest{Decision: "approve", Proof: l0}), 409},
		{"a reload without proof", noProof, 400},
		{"a relative path", announce("x", "absent", "install", l0), 400},
		{"a hash that is none", announce("/x", "abc", "install", l0), 400},
		{"an unknown action", announce("/x", "absent", "edit", l0), 400},
		{"an announcement without proof", announce("/x", "absent", "install", control.Proof{}), 400},
		{"records of an unknown call", b.client.Records(ctx, "zzzz", nil), 404},
	}
	for _, tt := range tests {
		var re *control.ResponseError
		if tt.status == 0 && tt.err != nil || tt.status != 0 && (!errors.As(tt.err, &re) || re.Status != tt.status) {
			t.Errorf("%s: %v", tt.name, tt.err)
		}
	}
}

// What ends a job is compared with these two records; nobody else tells what was wired, and how.
func TestTheLogTellsWhatWasWired(t *testing.T) {
	t.Parallel()
	b := running(t)
	plain, hidden := "/home/dev/.claude/settings.json", "/home/dev/ghp_0123456789abcdefghijABCDEFGHIJ012345/settings.json"
	for _, path := range []string{plain, hidden} {
		if _, err := b.client.Announce(t.Context(), control.AnnounceRequest{Path: path, SHA256: "absent", Action: "install", Agent: "claude", Proof: control.Proof{Level: "L0"}}); err != nil {
			t.Fatal(err)
		}
	}
	start := b.kinds(record.DaemonStart)
	if len(start) != 1 || start[0].Detail["on_down"] != "deny" || start[0].Detail["mode"] == "" || start[0].Detail["profile"] == "" {
		t.Errorf("start: %+v", start)
	}
	rs := slices.DeleteFunc(b.kinds(record.ConfigSettings), func(r record.Record) bool { return r.Detail["announced"] != "1" })
	if len(rs) != 2 {
		t.Fatalf("records %s", b.list())
	}
	slices.SortFunc(rs, func(x, y record.Record) int { return cmp.Compare(x.Seq, y.Seq) })
	if d := rs[0].Detail; d["path"] != plain || d["path_sha256"] != "" {
		t.Errorf("a path without a secret: %v", d)
	}
	sum := sha256.Sum256([]byte(hidden))
	if d := rs[1].Detail; strings.Contains(d["path"], "ghp_0123456789") || d["path_sha256"] != hex.EncodeToString(sum[:]) {
		t.Errorf("a path with a secret: %v", d)
	}
}

func TestControlHasNoOtherSurface(t *testing.T) {
	t.Parallel()
	b := running(t)
	hc := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", b.places.ControlSocket)
	}}}
	tests := []struct {
		method, path, body string
		status             int
	}{
		{"GET", "/", "", 404},
		{"GET", "/metrics", "", 404},
		{"GET", "/debug/pprof/", "", 404},
		{"GET", "/v1/status/x", "", 404},
		{"POST", "/v1/status", "{}", 404},
		{"DELETE", "/v1/approvals/x", "", 404},
		{"POST", "/v1/rules/reload", `{"proof":{"level":"L0"},"extra":1}`, 400},
		{"POST", "/v1/rules/reload", `{"proof":{"level":"L0"}}{}`, 400},
		{"POST", "/v1/rules/reload", "[" + strings.Repeat(" ", 2*maxControlBody), 400},
		{"GET", "/v1/calls?when=now", "", 400},
		{"GET", "/v1/records", "", 400},
		{"GET", "/v1/approvals/..%2f..%2fx", "", 404},
	}
	for _, tt := range tests {
		req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://x"+tt.path, strings.NewReader(tt.body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := hc.Do(req)
		if err != nil {
			t.Errorf("%s %s: %v", tt.method, tt.path, err)
			continue
		}
		body, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != tt.status || !strings.HasPrefix(string(body), `{"error":"`) {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, res.StatusCode, body)
		}
	}
}

func TestMetricsEndpoint(t *testing.T) {
	t.Parallel()
	b := running(t, func(o *Options) { o.Overrides["metrics.listen"] = "127.0.0.1:0" })
	b.send("PreToolUse", b.bash("rm -rf src", "1"))
	b.send("PreToolUse", []byte("garbage"))
	addr, err := os.ReadFile(b.places.MetricsAddr)
	if err != nil || strings.TrimSpace(string(addr)) != b.status().MetricsAddr {
		t.Fatalf("address %q, %v", addr, err)
	}
	get := func() string {
		res, err := http.Get("http://" + strings.TrimSpace(string(addr)) + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	b.eventually("the counters tell", func() bool {
		m := get()
		return strings.Contains(m, `tripline_tool_calls_total{agent="claude",decision="deny",tool="Bash"} 1`) &&
			strings.Contains(m, `tripline_fail_closed_total{reason="undecodable"} 1`) &&
			strings.Contains(m, `tripline_stage_duration_seconds_count{stage="append"} 2`) &&
			strings.Contains(m, `tripline_config_last_reload_successful 1`)
	})
	// A second daemon on the same port goes on without metrics.
	other := running(t, func(o *Options) { o.Overrides["metrics.listen"] = strings.TrimSpace(string(addr)) })
	if r := other.send("PreToolUse", other.bash("ls", "1")); !isPass(r) || other.status().MetricsAddr != "" {
		t.Errorf("reply %+v, status %+v", r, other.status())
	}
	b.stop()
	if _, err := os.Stat(b.places.MetricsAddr); err == nil {
		t.Error("the address file was left behind")
	}
}
