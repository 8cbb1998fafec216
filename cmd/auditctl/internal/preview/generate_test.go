// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// generated says what a made-up client's directory holds.
type generated struct {
	calls  int
	unique bool // every command is another one; else agents repeat themselves as they do
	bytes  int64
}

// generate writes transcripts of 500 calls a session, with results as they are: mostly a few hundred bytes, some many kilobytes,
// a few of megabytes. It returns the client's directory.
func generate(tb testing.TB, home string, g *generated) string {
	tb.Helper()
	rnd := rand.New(rand.NewPCG(1, 2))
	dir := filepath.Join(home, ".claude")
	at := time.Date(2026, 11, 1, 8, 0, 0, 0, time.UTC)
	const perSession = 500
	for s := 0; s*perSession < g.calls; s++ {
		project := fmt.Sprintf("%s/work/p%02d", home, s%14)
		if s < 14 {
			for _, d := range []string{".git", "src", "node_modules"} {
				if err := os.MkdirAll(filepath.Join(project, d), 0o755); err != nil {
					tb.Fatal(err)
				}
			}
			for _, f := range []string{".git/HEAD", "src/main.go", "Makefile", "README.md"} {
				if err := os.WriteFile(filepath.Join(project, f), []byte("x\n"), 0o644); err != nil {
					tb.Fatal(err)
				}
			}
		}
		name := filepath.Join(dir, "projects", strings.ReplaceAll(project, "/", "-"), fmt.Sprintf("%08d-aaaa-bbbb-cccc-dddddddddddd.jsonl", s))
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			tb.Fatal(err)
		}
		f, err := os.Create(name)
		if err != nil {
			tb.Fatal(err)
		}
		w := bufio.NewWriterSize(f, 1<<20)
		for i := range perSession {
			n := s*perSession + i
			at = at.Add(20 * time.Second)
			c := someCall(rnd, g, project, n)
			line(w, "assistant", project, n, at, map[string]any{
				"id": fmt.Sprintf("msg_%d", n), "model": "claude-x", "role": "assistant", "stop_reason": "tool_use", "usage": usage,
				"content": []any{map[string]any{"type": "tool_use", "id": fmt.Sprintf("toolu_%d", n), "name": c.tool, "input": c.input}},
			}, nil)
			text := strings.Repeat("the quick brown fox \"jumps\"\n", resultLines(rnd))
			line(w, "user", project, n, at, map[string]any{
				"role": "user", "content": []any{map[string]any{"type": "tool_result", "tool_use_id": fmt.Sprintf("toolu_%d", n), "content": text, "is_error": false}},
			}, map[string]any{"stdout": text, "stderr": ""})
			if i%3 == 0 {
				line(w, "assistant", project, n, at, map[string]any{"id": "m", "role": "assistant", "content": []any{map[string]any{"type": "text", "text": "Let me look at the next thing. " + text[:min(300, len(text))]}}}, nil)
			}
		}
		if err := w.Flush(); err != nil {
			tb.Fatal(err)
		}
		info, err := f.Stat()
		if err != nil {
			tb.Fatal(err)
		}
		g.bytes += info.Size()
		if err := f.Close(); err != nil {
			tb.Fatal(err)
		}
	}
	return dir
}

var usage = map[string]any{"input_tokens": 10, "output_tokens": 10, "cache_read_input_tokens": 12345, "service_tier": "standard"}

func line(w *bufio.Writer, kind, cwd string, n int, at time.Time, message, outcome any) {
	b, err := json.Marshal(map[string]any{
		"parentUuid": fmt.Sprintf("%032d", n), "isSidechain": false, "type": kind, "message": message, "uuid": fmt.Sprintf("%032d", n+1), "timestamp": at.Format(time.RFC3339Nano),
		"userType": "external", "entrypoint": "cli", "cwd": cwd, "sessionId": fmt.Sprintf("%08d-aaaa-bbbb-cccc-dddddddddddd", n/500), "version": "2.1.332", "gitBranch": "main", "toolUseResult": outcome,
	})
	if err != nil {
		panic(err)
	}
	_, _ = w.Write(b)
	_ = w.WriteByte('\n')
}

// resultLines draws the length of a result: nine of ten below 2 KB, one in five hundred above 1 MB.
func resultLines(r *rand.Rand) int {
	switch n := r.IntN(1000); {
	case n < 600:
		return 1 + r.IntN(20)
	case n < 900:
		return 20 + r.IntN(60)
	case n < 998:
		return 100 + r.IntN(1000)
	}
	return 40_000 + r.IntN(20_000)
}

type madeCall struct {
	tool  string
	input map[string]any
}

// someCall draws a call. Half of them are shell commands. When agents repeat themselves, two of three calls are drawn from a few
// in each project: the same tests, the same files.
func someCall(r *rand.Rand, g *generated, project string, n int) madeCall {
	id := n
	if !g.unique && r.IntN(3) > 0 {
		id = r.IntN(12)
	}
	switch k := r.IntN(100); {
	case k < 50:
		c := fmt.Sprintf(commands[r.IntN(len(commands))], id)
		return madeCall{"Bash", map[string]any{"command": c, "description": fmt.Sprintf("Step %d", n)}}
	case k < 72:
		return madeCall{"Read", map[string]any{"file_path": fmt.Sprintf("%s/src/f%d.go", project, id)}}
	case k < 88:
		return madeCall{"Edit", map[string]any{"file_path": fmt.Sprintf("%s/src/f%d.go", project, id), "old_string": strings.Repeat("old ", 50), "new_string": strings.Repeat("new ", 60)}}
	case k < 92:
		return madeCall{"Write", map[string]any{"file_path": fmt.Sprintf("%s/src/g%d.go", project, id), "content": strings.Repeat("package main\n", 100+r.IntN(300))}}
	case k < 97:
		return madeCall{"Grep", map[string]any{"pattern": fmt.Sprintf("func %d", id), "path": project}}
	}
	return madeCall{"TodoWrite", map[string]any{"todos": []any{map[string]any{"content": "x", "status": "pending", "activeForm": "y"}}}}
}

// commands is what agents type, with a place for a number.
var commands = []string{
	"ls -la src/%d", "cat src/file%d.go | head -50", "go test ./pkg%d/... 2>&1 | tail -20", "git status && git diff --stat HEAD~%d",
	"grep -rn 'func Handle%d' --include='*.go' . | head -20", "npm run build -- --mode production --id %d 2>&1 | tail -30",
	"git add -A && git commit -m 'fix: handle case %d of the parser'", "cd src && go vet ./... && echo done %d", "python3 -c 'print(%d)'",
	"for f in src/*.go; do wc -l \"$f\"; done | sort -n | tail -%d", "mkdir -p build/out%d && cp README.md build/out%[1]d/", "curl -s http://localhost:8080/items/%d | jq .name",
	"sed -n '1,%dp' src/main.go", "find . -name '*_%d_test.go' -not -path './node_modules/*' | xargs wc -l", "make test-%d", "echo %d > /tmp/out.txt && cat /tmp/out.txt",
	"cat > src/new%d.go <<'EOF'\npackage main\n\nfunc main() {}\nEOF\ngo build ./...", "docker compose logs --tail %d api", "rg -n 'TODO %d' src", "git log --oneline -%d",
	"rm -f build/out%d.txt", "rm -rf node_modules/.cache/%d", "git push origin feature-%d", "kubectl get pods -n team%d",
}
