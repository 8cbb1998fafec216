// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// cost is what starting a program costs, and what a hook costs beyond an empty Go program, in medians. Runs alternate, so that whatever
// the machine does meanwhile meets both; the difference is taken within each pair.
type cost struct {
	empty, hook, diff time.Duration
}

func (c cost) ratio() float64 { return float64(c.hook) / float64(c.empty) }

// measure runs n pairs of an empty Go program and of the hook.
func measure(t testing.TB, n int, stdin string, args ...string) cost {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module empty\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() {}\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	empty, err := build(dir, "empty", ".")
	if err != nil {
		t.Fatal(err)
	}
	once := func(prog string, args ...string) time.Duration {
		cmd := exec.Command(prog, args...)
		cmd.Env = []string{}
		cmd.Stdin = nil
		if stdin != "" {
			cmd.Stdin = strings.NewReader(stdin)
		}
		begin := time.Now()
		_ = cmd.Run() // some hooks are meant to fail
		return time.Since(begin)
	}
	hook := hookPath(t)
	var e, h, d []time.Duration
	for range n {
		te := once(empty)
		th := once(hook, args...)
		e, h, d = append(e, te), append(h, th), append(d, th-te)
	}
	return cost{median(e), median(h), median(d)}
}

func median(d []time.Duration) time.Duration {
	slices.Sort(d)
	return d[len(d)/2]
}

func passing(t testing.TB) string {
	return serve(t, func(c *net.UnixConn) { answer(frame(wire.KindFinal, 0, "", ""))(c) })
}

func TestStartCost(t *testing.T) {
	small := `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}` + "\n"
	for name, c := range map[string]cost{
		"bad arguments":             measure(t, 60, ""),
		"a round trip to a server":  measure(t, 60, small, "-s", passing(t), "claude", "PreToolUse"),
		"no daemon and a canned no": measure(t, 60, small, "-s", "/nonexistent/s", "claude", "PreToolUse"),
	} {
		t.Logf("%s: empty program %v, hook %v, ratio %.2f, median of paired differences %v", name, c.empty, c.hook, c.ratio(), c.diff)
		if c.ratio() > 3 {
			t.Errorf("%s: the hook takes %.2f times as long as an empty Go program", name, c.ratio())
		}
	}
}

func BenchmarkStart(b *testing.B) {
	small := `{"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"ls"}}` + "\n"
	big := string(pattern(6_000_000))
	sock := passing(b)
	for name, run := range map[string]func(n int) cost{
		"bad-arguments":  func(n int) cost { return measure(b, n, "") },
		"round-trip":     func(n int) cost { return measure(b, n, small, "-s", sock, "claude", "PreToolUse") },
		"round-trip-6MB": func(n int) cost { return measure(b, n, big, "-s", sock, "claude", "PreToolUse") },
	} {
		b.Run(name, func(b *testing.B) {
			c := run(b.N)
			b.ReportMetric(float64(c.empty.Microseconds()), "empty-µs")
			b.ReportMetric(float64(c.hook.Microseconds()), "hook-µs")
			b.ReportMetric(float64(c.diff.Microseconds()), "paired-µs")
			b.ReportMetric(c.ratio(), "ratio")
		})
	}
}
