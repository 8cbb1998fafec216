// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

func TestModes(t *testing.T) {
	t.Parallel()
	rules := load(t, userFile("version: 1\nrules:\n  - id: tests\n    allow: [\"Bash(npm test:*)\"]\n  - id: deploys\n    ask: [\"Bash(deploy:*)\"]\n"))
	commands := []string{"ls -la", "cat a.txt | sort", "npm run build", "mkdir x", "npm test", "deploy prod", "rm -rf src", "rm -rf ~", "$X y", "rm \"$f\""}
	want := map[string]string{
		//          ls     cat    build  mkdir  test   deploy src    home    $X    rm $f
		ModeGuard:   "pass   pass   pass   pass   allow  ask    deny   floor   ask   pass",
		ModeAsk:     "pass   pass   ask    ask    allow  ask    deny   floor   ask   ask",
		ModePlan:    "pass   pass   deny   deny   deny   deny   deny   floor   deny  deny",
		ModeAuto:    "allow  allow  allow  allow  allow  ask    deny   floor   ask   pass",
		ModeObserve: "pass   pass   pass   pass   allow  ask    deny   floor   ask   pass",
	}
	for mode, row := range want {
		e := newEngine(t, Options{Rules: rules, Mode: mode})
		for i, w := range strings.Fields(row) {
			d := bash(t, e, view.NewMemory(), commands[i])
			if got := verdict(d); got != w {
				t.Errorf("mode %s: %s: got %s by %q, want %s", mode, commands[i], got, d.Rule, w)
			}
			if enforced := mode != ModeObserve || d.Floor; d.Enforced != enforced {
				t.Errorf("mode %s: %s: enforced %v", mode, commands[i], d.Enforced)
			}
		}
	}
}

func TestUnmappedTools(t *testing.T) {
	t.Parallel()
	for _, v := range []event.Decision{"", event.Pass, event.Ask, event.Deny} {
		e := newEngine(t, Options{Unmapped: v})
		d := e.Evaluate(context.Background(), Call{Tool: "mcp__x__y", Input: json.RawMessage(`{}`), Cwd: "/home/dev/shop"}, view.NewMemory().NewReader())
		if want := event.Stricter(v, event.Pass); v != "" && d.Verdict != want || v == "" && d.Verdict != event.Pass {
			t.Errorf("unmapped %q: got %s", v, d.Verdict)
		}
	}
	auto := newEngine(t, Options{Mode: ModeAuto})
	if d := auto.Evaluate(context.Background(), Call{Tool: "mcp__x__y", Input: json.RawMessage(`{}`)}, view.NewMemory().NewReader()); d.Verdict != event.Pass {
		t.Errorf("mode auto allowed a tool that nothing knows: %s", d.Verdict)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for _, o := range []Options{{Mode: "yolo"}, {Profile: "lax"}, {Unmapped: event.Allow}, {Unmapped: "x"}} {
		if _, err := New(o); err == nil {
			t.Errorf("accepted %+v", o)
		}
	}
}

func TestAnAllowRuleMustCoverTheWholeCall(t *testing.T) {
	t.Parallel()
	rules := load(t, userFile(`version: 1
rules:
  - id: tests
    allow: ["Bash(npm test:*)", "Bash(go test:*)", "Bash(git push)"]
    except: ["Bash(npm test --danger:*)"]
  - id: logs
    allow: ["Write(./logs/**)", "Read(./src/**)"]
  - id: github
    allow: ["mcp__github"]
  - id: gitlab
    allow: ["mcp__gitlab__*@project"]
`))
	e := newEngine(t, Options{Rules: rules})
	for command, want := range map[string]string{
		"npm test":                      "allow",
		"npm test -- --watch=false":     "allow",
		"npm test && go test ./...":     "allow",
		"npm test > logs/out.txt":       "allow",
		"npm test 2>&1":                 "allow",
		"npm test 2> /dev/null":         "allow",
		"timeout 60 npm test":           "allow",
		"npm test && rm -rf /":          "floor",
		"npm test; ls":                  "pass",
		"npm test | tee out.txt":        "pass",
		"npm test > out.txt":            "pass",
		"npm test > ~/.bashrc":          "ask",
		"LD_PRELOAD=x npm test":         "pass",
		"LD_PRELOAD=x go test ./...":    "pass",
		"export LD_PRELOAD=x; go test":  "pass",
		"npm test $(touch x)":           "pass",
		"npm test $X":                   "pass",
		"npm test &&":                   "ask",
		"npm testx":                     "pass",
		"sudo npm test":                 "pass",
		"ssh host npm test":             "pass",
		"./npm test":                    "pass",
		"/tmp/npm test":                 "pass",
		"npm() { rm -rf ~; }; npm test": "floor",
		"npm test --danger":             "pass",
		"git push":                      "allow",
		"git push --force":              "ask",
		"git push origin":               "pass",
		"bash -c 'npm test'":            "pass",
		"npm test\nnpm test":            "allow",
		"npm test < <(cat /etc/shadow)": "deny",
	} {
		d := bash(t, e, view.NewMemory(), command)
		if got := verdict(d); got != want {
			t.Errorf("%q: got %s by %q, want %s", command, got, d.Rule, want)
		}
	}
	for _, c := range []struct {
		tool, input, source string
		want                event.Decision
	}{
		{"Write", `{"file_path":"/home/dev/shop/logs/a","content":""}`, "", event.Allow},
		{"Write", `{"file_path":"/home/dev/shop/logs/../a","content":""}`, "", event.Pass},
		{"Write", `{"file_path":"logs/a","content":""}`, "", event.Allow},
		{"Read", `{"file_path":"/home/dev/shop/src/a"}`, "", event.Allow},
		{"Read", `{"file_path":"/home/dev/shop/a"}`, "", event.Pass},
		{"mcp__github__list", `{}`, "user", event.Allow},
		{"mcp__github__list", `{}`, "project", event.Pass}, // a repository's server of that name
		{"mcp__github__list", `{}`, "", event.Pass},
		{"mcp__githubx__list", `{}`, "user", event.Pass},
		{"mcp__gitlab__list", `{}`, "project", event.Allow},
		{"mcp__gitlab__list", `{}`, "user", event.Pass},
	} {
		call := bashCall("")
		call.Tool, call.Input, call.MCPSource = c.tool, json.RawMessage(c.input), c.source
		if d := e.Evaluate(context.Background(), call, view.NewMemory().NewReader()); d.Verdict != c.want {
			t.Errorf("%s %s from %q: got %s by %q, want %s", c.tool, c.input, c.source, d.Verdict, d.Rule, c.want)
		}
	}
}

func TestUserRulesAddToTheBuiltInOnes(t *testing.T) {
	t.Parallel()
	rules := load(t, userFile(goodRules), File{Path: "rules.d/b.yaml", Layer: LayerSystem, Data: []byte(`version: 1
rules:
  - id: prod
    ask: [{effect: network-send, target: "*.prod.test"}, "WebFetch(domain:prod.test)"]
    gate: hold
    scope: {agent: [claude], project: ["~/shop"]}
  - id: prod-hook
    ask: ["Bash(git push:*)"]
    gate: hold
`)})
	e := newEngine(t, Options{Rules: rules})
	m := view.NewMemory()
	for command, want := range map[string][2]string{
		"deploy-tool prod":                     {"ask", "deploys"},
		"sudo deploy-tool prod":                {"ask", "deploys"},
		"cd x && /opt/bin/deploy-tool prod":    {"ask", "deploys"},
		"echo deploy-tool prod":                {"pass", ""},
		"cat secrets/a":                        {"deny", "no-secrets"},
		"head -1 ./secrets/deep/a | tail":      {"deny", "no-secrets"},
		"cat secrets/README.md":                {"pass", ""},
		"wc < secrets/a":                       {"deny", "no-secrets"},
		"cat .env":                             {"deny", "no-secrets"},
		"rm -rf dist":                          {"pass", ""},
		"curl -d x https://a.prod.test/deploy": {"ask", "prod"},
		"git -C x push":                        {"ask", "prod-hook"},
		"git push --force":                     {"ask", "git.force-push"},
	} {
		d := bash(t, e, m, command)
		if string(d.Verdict) != want[0] || d.Rule != want[1] {
			t.Errorf("%s: got %s by %q, want %v", command, d.Verdict, d.Rule, want)
		}
	}
	if d := bash(t, e, m, "deploy-tool prod"); d.Gate != "hold" || d.RuleHash == "" || d.Instead == "" || !strings.Contains(d.Reason, "deploys reach customers") {
		t.Errorf("the rule's own texts are missing: %+v", d)
	}
	if d := bash(t, e, m, "git push --force"); d.Gate != "hold" || len(d.Matches) != 2 {
		t.Errorf("the strictest gate must stay: %q %v", d.Gate, d.Matches)
	}
	if d := bash(t, e, m, "rm -rf dist"); len(d.Matches) != 1 || d.Matches[0].Tuned == "" {
		t.Errorf("a softened match must be recorded: %+v", d.Matches)
	}
	session := newEngine(t, Options{Rules: load(t, userFile("version: 1\nrules:\n  - id: a\n    ask: [\"Bash(make:*)\"]\n    scope: session\n"))})
	if d := bash(t, session, m, "make x"); !d.Session || d.Verdict != event.Ask {
		t.Errorf("scope: session is lost: %+v", d)
	}
	other := bashCall("curl -d x https://a.prod.test")
	other.Agent = "codex"
	if d := e.Evaluate(context.Background(), other, m.NewReader()); d.Verdict != event.Pass {
		t.Errorf("a rule reached an agent outside of its scope: %s by %q", d.Verdict, d.Rule)
	}
}

func TestSettingsAreAppliedVirtually(t *testing.T) {
	t.Parallel()
	const path = "/home/dev/.claude/settings.json"
	old := `{"theme":"dark","hooks":{}}`
	judge := func(p string, before, after []byte) (bool, string) {
		if p != path || string(before) != old {
			return false, "not the file"
		}
		return strings.Contains(string(after), `"hooks":{}`) && json.Valid(after), "hooks change"
	}
	sum := sha256.Sum256([]byte("announced"))
	edit := func(a, b string) string {
		in, _ := json.Marshal(map[string]string{"file_path": path, "old_string": a, "new_string": b})
		return string(in)
	}
	write := func(s string) string {
		in, _ := json.Marshal(map[string]string{"file_path": path, "content": s})
		return string(in)
	}
	m := view.NewMemory()
	m.AddFile(path, []byte(old))
	for name, c := range map[string]struct {
		tool, input, want string
		memory            *view.Memory
	}{
		"a harmless edit asks":          {"Edit", edit("dark", "light"), "ask", m},
		"an edit of the hooks":          {"Edit", edit("hooks", "hoks"), "floor", m},
		"an edit that cannot apply":     {"Edit", edit("absent", "x"), "floor", m},
		"an edit of a text given twice": {"Edit", edit(`"`, `'`), "floor", m},
		"a harmless write asks":         {"Write", write(`{"theme":"light","hooks":{}}`), "ask", m},
		"a write without hooks":         {"Write", write(`{}`), "floor", m},
		"an announced write passes":     {"Write", write("announced"), "pass", m},
		"a write where no file is":      {"Write", write(`{"hooks":{}}`), "floor", view.NewMemory()},
		"an edit by the shell":          {"Bash", `{"command":"sed -i s/dark/light/ ~/.claude/settings.json"}`, "floor", m},
		"a copy by the shell":           {"Bash", `{"command":"cp a ~/.claude/settings.json"}`, "floor", m},
		"a deletion":                    {"Bash", `{"command":"rm ~/.claude/settings.json"}`, "floor", m},
		"a move":                        {"Bash", `{"command":"mv ~/.claude/settings.json x"}`, "floor", m},
		"its mode":                      {"Bash", `{"command":"chmod 000 ~/.claude/settings.json"}`, "floor", m},
		"reading it":                    {"Bash", `{"command":"cat ~/.claude/settings.json"}`, "pass", m},
		"a harmless text by the shell":  {"Bash", `{"command":"cat > ~/.claude/settings.json <<'E'\n{\"theme\":\"light\",\"hooks\":{}}\nE"}`, "ask", m},
		"another text by the shell":     {"Bash", `{"command":"echo '{}' > ~/.claude/settings.json"}`, "floor", m},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newEngine(t, Options{Settings: judge})
			call := bashCall("")
			call.Tool, call.Input = c.tool, json.RawMessage(c.input)
			call.Announced = []string{hex.EncodeToString(sum[:])}
			d := e.Evaluate(context.Background(), call, c.memory.NewReader())
			if got := verdict(d); got != c.want {
				t.Errorf("got %s by %q (%s), want %s", got, d.Rule, d.Reason, c.want)
			}
			if d := newEngine(t, Options{}).Evaluate(context.Background(), call, c.memory.NewReader()); c.want == "ask" && !d.Floor {
				t.Errorf("without a judge of settings this must be on the floor, got %s", d.Verdict)
			}
		})
	}
}

func TestTheFloorHoldsInEveryModeAndProfile(t *testing.T) {
	t.Parallel()
	var allow strings.Builder
	allow.WriteString("version: 1\nrules:\n  - id: all\n    allow: [\"Bash\", \"Write\", \"Edit\"]\n")
	rules := load(t, userFile(allow.String()))
	var floor []fileCase
	for _, c := range readCases(t) {
		if c.Floor {
			floor = append(floor, c)
		}
	}
	if len(floor) < 50 {
		t.Fatalf("only %d floor cases", len(floor))
	}
	for _, mode := range []string{ModeGuard, ModeAsk, ModePlan, ModeAuto, ModeObserve} {
		for _, profile := range []string{ProfileStandard, ProfileStrict, ProfileCI} {
			e := newEngine(t, Options{Rules: rules, Mode: mode, Profile: profile})
			for _, c := range floor {
				if d := e.Evaluate(context.Background(), c.call(), view.NewMemory().NewReader()); !d.Floor || d.Verdict != event.Deny || !d.Enforced {
					t.Errorf("mode %s, profile %s: %s: got %s by %q", mode, profile, c.Input, d.Verdict, d.Rule)
				}
			}
		}
	}
}

func TestOwnPathsAreProtected(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{OwnPaths: []string{"/srv/tl/bin", "/home/dev/tl/state"}})
	for command, want := range map[string]string{
		"rm /srv/tl/bin/auditctl":       "floor",
		"/srv/tl/bin/copy stop":         "floor",
		"/srv/tl/bin/copy query":        "pass",
		"rm -rf /home/dev/tl":           "floor",
		"rm -rf /home/dev/tl/state/x":   "floor",
		"echo > /home/dev/tl/state/log": "floor",
		"ls /srv/tl/bin":                "pass",
	} {
		if got := verdict(bash(t, e, view.NewMemory(), command)); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}

func TestEveryKnownHomeCounts(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for command, want := range map[string]string{
		"rm -rf /home/dev": "floor", "rm -rf /data/home/dev": "floor", "rm -rf ~": "floor", "rm -rf ~/shop": "floor", "rm -rf ~/x": "deny",
		"cat /data/home/dev/.ssh/id_rsa": "deny", "rm /data/home/dev/.config/tripline/tripline.yaml": "floor",
	} {
		c := bashCall(command)
		c.Homes = []string{"/data/home/dev", "/home/dev", "/", "relative"}
		if d := e.Evaluate(context.Background(), c, view.NewMemory().NewReader()); verdict(d) != want {
			t.Errorf("%s: got %s by %q, want %s", command, verdict(d), d.Rule, want)
		}
	}
}

func TestFaultsDeny(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{Mode: ModeObserve})
	d := e.Evaluate(context.Background(), bashCall("rm -rf x"), broken{})
	if d.Verdict != event.Deny || d.Rule != "engine.panic" || !d.Enforced || strings.Contains(d.Reason, "boom") {
		t.Errorf("a panic gave %+v", d)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if d := e.Evaluate(ctx, bashCall("ls"), view.NewMemory().NewReader()); d.Verdict != event.Deny || d.Rule != "engine.deadline" || !d.Enforced {
		t.Errorf("an expired context gave %+v", d)
	}
}

// broken is a machine whose reads fail in the worst way.
type broken struct{ view.Reader }

func (broken) Lstat(string) (view.Info, error) { panic("boom: the secret is 42") }

func TestInputsThatAreNone(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for _, c := range [][2]string{
		{"Bash", ``}, {"Bash", `null`}, {"Bash", `[]`}, {"Bash", `{}`}, {"Bash", `{"command":null}`}, {"Bash", `{"command":7}`}, {"Bash", `{"command":["ls",1]}`},
		{"Bash", `{"command":"ls","command":"rm -rf ~"}`}, {"Bash", `{"command":"rm -rf ~","Command":"ls"}`}, {"Bash", `{"Command":"ls"}`}, {"Bash", `{"command":"ls"`},
		{"Bash", `{"command":"ls"} {}`}, {"Write", `{"file_path":"/tmp/a"}`}, {"Write", `{"file_path":["/tmp/a"],"content":""}`}, {"Edit", `{"file_path":"/tmp/a","old_string":"a","new_string":null}`},
		{"MultiEdit", `{"file_path":"/tmp/a","edits":[]}`}, {"MultiEdit", `{"file_path":"/tmp/a","edits":[{"old_string":"a"}]}`}, {"Read", `{"path":"/tmp/a"}`}, {"Grep", `{"path":"/"}`},
		{"Glob", `{"pattern":1}`}, {"WebFetch", `{"url":1}`}, {"WebSearch", `{}`}, {"NotebookEdit", `{}`}, {"apply_patch", `{"command":""}`}, {"PowerShell", `{}`}, {"Monitor", `{}`},
	} {
		d := e.Evaluate(context.Background(), Call{Tool: c[0], Input: json.RawMessage(c[1]), Cwd: "/home/dev/shop", Homes: []string{"/home/dev"}}, view.NewMemory().NewReader())
		if d.Verdict != event.Deny || d.Rule != "input.undecodable" {
			t.Errorf("%s %s: got %s by %q", c[0], c[1], d.Verdict, d.Rule)
		}
	}
}

func TestTextsAreBoundedAndClean(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for _, target := range []string{"src", strings.Repeat("é", 4000), "a\x1b[2Jb", "a\u202eb", "$'\\e[31m'", strings.Repeat("x/", 3000)} {
		call := bashCall("rm -rf '" + target + "'")
		d := e.Evaluate(context.Background(), call, view.NewMemory().NewReader())
		if d.Verdict != event.Deny {
			t.Fatalf("%.40q: got %s", target, d.Verdict)
		}
		reason, ask := RenderReason(d), RenderAsk(d, call)
		for what, s := range map[string]string{"reason": reason, "ask": ask} {
			if !utf8.ValidString(s) || strings.ContainsAny(s, "\x1b\n\u202e\x00") {
				t.Errorf("%s is not clean: %q", what, s)
			}
		}
		if len(reason) > 2000 || utf8.RuneCountInString(ask) > 300 {
			t.Errorf("too long: %d bytes, %d characters", len(reason), utf8.RuneCountInString(ask))
		}
		for _, want := range []string{"delete.project", "do not retry the same call", "Instead:"} {
			if !strings.Contains(reason, want) {
				t.Errorf("the reason lacks %q: %s", want, reason)
			}
		}
		if !strings.HasSuffix(ask, " [rule delete.project]") || !strings.Contains(ask, "~/shop") || !strings.Contains(ask, "rm -rf") {
			t.Errorf("the prompt lacks something: %s", ask)
		}
	}
}

func TestExplainedHasExactlyItsKeys(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for command, want := range map[string]string{
		"ls":       `{"id":"7","verdict":"pass","rule":"","floor":false,"reason":"","effects":[]}`,
		"cat a.go": `{"id":"7","verdict":"pass","rule":"","floor":false,"reason":"","effects":[{"kind":"read","target":"a.go","program":"cat","place":"project","certainty":"certain"}]}`,
	} {
		got, err := json.Marshal(bash(t, e, view.NewMemory(), command).Explain("7"))
		if err != nil || string(got) != want {
			t.Errorf("%s:\n got %s\nwant %s", command, got, want)
		}
	}
	if b, _ := json.Marshal(Decision{}.Explain("")); !strings.Contains(string(b), `"effects":[]`) {
		t.Errorf("effects must not be null: %s", b)
	}
}

func TestTheReadSetNamesTheScriptThatWasRead(t *testing.T) {
	t.Parallel()
	m := view.NewMemory()
	m.AddFile("/home/dev/shop/clean.sh", []byte("#!/bin/sh\nrm -rf /srv/data/x\n"))
	d := bash(t, newEngine(t, Options{}), m, "sh clean.sh")
	if d.Verdict != event.Deny {
		t.Errorf("got %s by %q", d.Verdict, d.Rule)
	}
	found := false
	for _, r := range d.ReadSet {
		found = found || r.Path == "/home/dev/shop/clean.sh" && r.Hash != ""
	}
	if !found {
		t.Errorf("the script is not in the read set: %v", d.ReadSet)
	}
}

// FuzzEvaluate checks that no command makes the engine fail, that it answers the same twice, and that adding the worst command to
// another one never makes the answer weaker.
func FuzzEvaluate(f *testing.F) {
	for _, c := range readCases(f) {
		var s string
		if json.Unmarshal(c.Input, &s) == nil && c.Tool == "Bash" {
			f.Add(s)
		}
	}
	for _, s := range []string{"", "\x00", "(((((", "rm -rf \\", "'", "$((", "<<E", "python3 -c '[[[['", "psql -c '/*'", "git -c", "find -exec", "\xff\xfe rm -rf ~"} {
		f.Add(s)
	}
	e, err := New(Options{})
	if err != nil {
		f.Fatal(err)
	}
	m := view.NewMemory()
	m.AddFile("/home/dev/shop/src/a.go", []byte("x"))
	f.Fuzz(func(t *testing.T, s string) {
		d := bash(t, e, m, s)
		if d.Rule == "engine.panic" {
			t.Fatalf("the engine panicked on %q", s)
		}
		if again := bash(t, e, m, s); !reflect.DeepEqual(d, again) {
			t.Fatalf("two answers to %q:\n%+v\n%+v", s, d, again)
		}
		if len(RenderReason(d)) > maxReason || d.Effects == nil || len(d.Effects) > maxEffects {
			t.Fatalf("a bound is broken for %q", s)
		}
		before := bash(t, e, m, "rm -rf / && "+s)
		if before.Verdict.Rank() < d.Verdict.Rank() || before.Verdict.Rank() < event.Ask.Rank() {
			t.Fatalf("%q became weaker: %s, was %s", s, before.Verdict, d.Verdict)
		}
		if strings.Contains(s, "<<") {
			return // more on the last line of a here-document takes its end away
		}
		if after := bash(t, e, m, s+" && rm -rf /"); after.Verdict.Rank() < d.Verdict.Rank() {
			t.Fatalf("%q became weaker by more at its end: %s, was %s", s, after.Verdict, d.Verdict)
		}
	})
}

func BenchmarkEvaluate(b *testing.B) {
	e, err := New(Options{})
	if err != nil {
		b.Fatal(err)
	}
	m := view.NewMemory()
	for name, command := range map[string]string{
		"ls":   "ls -la",
		"long": "cd api && npm run build -- --mode production 2>&1 | tee build.log && git add -A && git commit -m 'build: update the bundle' && for f in dist/*.js; do gzip -k \"$f\"; done && rsync -av dist/ host:/srv/app/",
		"deny": "rm -rf src",
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			call := bashCall(command)
			for b.Loop() {
				e.Evaluate(context.Background(), call, m.NewReader())
			}
		})
	}
}
