// SPDX-License-Identifier: Apache-2.0

// Package ci_test reads the two composite actions as a runner does: it checks their form, and runs their steps.
package ci_test

import (
	"bytes"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// action is a composite action, as far as ours use the form. Anything else in the files is an error.
type action struct {
	Name, Description string
	Inputs            map[string]struct {
		Description string
		Default     *string
		Required    bool
	}
	Outputs map[string]struct{ Description, Value string }
	Runs    struct {
		Using string
		Steps []step
	}
}

type step struct {
	ID, Shell, Run string
	Env            map[string]string
}

func load(t *testing.T, path string) *action {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var a action
	if err := yaml.UnmarshalWithOptions(b, &a, yaml.Strict()); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return &a
}

var files = []string{"action.yml", "finish/action.yml"}

var (
	expression = regexp.MustCompile(`\$\{\{.*?\}\}`)
	input      = regexp.MustCompile(`^\$\{\{ inputs\.([a-z-]+) \}\}$`)
	output     = regexp.MustCompile(`^\$\{\{ steps\.([a-z]+)\.outputs\.([a-z]+) \}\}$`)
)

func TestInputsReachTheShellOnlyThroughItsEnvironment(t *testing.T) {
	t.Parallel()
	for _, path := range files {
		a := load(t, path)
		if a.Name == "" || a.Description == "" || a.Runs.Using != "composite" || len(a.Runs.Steps) == 0 {
			t.Errorf("%s: %+v", path, a)
		}
		used := map[string]bool{}
		ids := map[string]bool{}
		for _, s := range a.Runs.Steps {
			ids[s.ID] = true
			if s.Shell != "sh" || s.Run == "" {
				t.Errorf("%s: a step runs %q with the shell %q", path, s.Run, s.Shell)
			}
			if found := expression.FindString(s.Run); found != "" {
				t.Errorf("%s: %s stands in the text of a shell", path, found)
			}
			for name, value := range s.Env {
				m := input.FindStringSubmatch(value)
				if m == nil {
					t.Errorf("%s: %s is %q", path, name, value)
					continue
				}
				used[m[1]] = true
				if strings.Count(s.Run, "$"+name)+strings.Count(s.Run, "${"+name) == 0 {
					t.Errorf("%s: %s is not used", path, name)
				}
			}
		}
		for name, in := range a.Inputs {
			if !used[name] {
				t.Errorf("%s: the input %s does nothing", path, name)
			}
			if in.Description == "" || in.Required == (in.Default != nil) {
				t.Errorf("%s: the input %s: %+v", path, name, in)
			}
			delete(used, name)
		}
		for name := range used {
			t.Errorf("%s: there is no input %s", path, name)
		}
		for name, out := range a.Outputs {
			m := output.FindStringSubmatch(out.Value)
			if out.Description == "" || m == nil || !ids[m[1]] || m[2] != name {
				t.Errorf("%s: the output %s is %q", path, name, out.Value)
			}
		}
	}
	start, finish := load(t, files[0]), load(t, files[1])
	for name, in := range finish.Inputs {
		if _, ok := start.Outputs[name]; in.Required != ok {
			t.Errorf("%s is required by finish: %v, an output of start: %v", name, in.Required, ok)
		}
	}
}

// The workflow in README gives each action inputs that it has, and all that it needs.
func TestTheExampleFitsTheActions(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(b), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var job struct {
		Steps []struct {
			ID, If, Uses, Run string
			With              map[string]string
		}
	}
	if err := yaml.UnmarshalWithOptions([]byte(text), &job, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, s := range job.Steps {
		_, path, ours := strings.Cut(s.Uses, "/contrib/ci")
		if !ours {
			continue
		}
		seen++
		a := load(t, filepath.Join(".", path, "action.yml"))
		for name, value := range s.With {
			if _, ok := a.Inputs[name]; !ok {
				t.Errorf("%s has no input %s", s.Uses, name)
			}
			if m := output.FindStringSubmatch(value); m != nil && (m[1] != "tripline" || m[2] != name) {
				t.Errorf("%s: %s is %s", s.Uses, name, value)
			}
		}
		for name, in := range a.Inputs {
			if in.Required && s.With[name] == "" {
				t.Errorf("%s lacks %s", s.Uses, name)
			}
		}
	}
	if seen != len(files) {
		t.Errorf("%d of the actions are shown", seen)
	}
}

func TestShellcheckFindsNothing(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("shellcheck")
	if err != nil {
		t.Skip("SKIPPED: shellcheck is not installed")
	}
	for _, path := range files {
		for _, s := range load(t, path).Runs.Steps {
			cmd := exec.Command(program, "-s", "sh", "-")
			cmd.Stdin = strings.NewReader(s.Run)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", path, err, out)
			}
		}
	}
}

// machine is what a runner gives to the steps of a job.
type machine struct {
	t    *testing.T
	home string
	env  map[string]string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	home, err := os.MkdirTemp("", "tl") // short, as a socket's path has to be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(home) })
	m := &machine{t: t, home: home, env: map[string]string{
		"HOME": home, "PATH": "/usr/local/bin:/usr/bin:/bin", "RUNNER_TEMP": filepath.Join(home, "temp"), "GITHUB_ENV": filepath.Join(home, "env"),
		"GITHUB_OUTPUT": filepath.Join(home, "output"), "GITHUB_STEP_SUMMARY": filepath.Join(home, "summary"),
	}}
	if err := os.Mkdir(m.env["RUNNER_TEMP"], 0o700); err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs an action with these inputs and returns what its step wrote and its exit code.
func (m *machine) run(path string, with map[string]string) (text string, code int) {
	m.t.Helper()
	a := load(m.t, path)
	for name := range with {
		if _, ok := a.Inputs[name]; !ok {
			m.t.Fatalf("%s has no input %q", path, name)
		}
	}
	for _, s := range a.Runs.Steps {
		env := maps.Clone(m.env)
		for name, value := range s.Env {
			in := input.FindStringSubmatch(value)[1]
			v, given := with[in]
			if !given && a.Inputs[in].Default != nil {
				v = *a.Inputs[in].Default
			}
			env[name] = v
		}
		var list []string
		for _, name := range slices.Sorted(maps.Keys(env)) {
			list = append(list, name+"="+env[name])
		}
		script := filepath.Join(m.t.TempDir(), "step.sh")
		if err := os.WriteFile(script, []byte(s.Run), 0o600); err != nil {
			m.t.Fatal(err)
		}
		var out bytes.Buffer
		cmd := exec.Command("sh", "-e", script)
		cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = list, m.home, &out, &out
		err := cmd.Run()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			m.t.Fatal(err)
		}
		text += out.String()
		if code = cmd.ProcessState.ExitCode(); code != 0 {
			break
		}
	}
	return text, code
}

// outputs are what the start handed on.
func (m *machine) outputs() map[string]string {
	m.t.Helper()
	b, err := os.ReadFile(m.env["GITHUB_OUTPUT"])
	if err != nil {
		m.t.Fatal(err)
	}
	out := map[string]string{}
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		out[name] = value
	}
	return out
}

func build(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	if out, err := exec.Command("../dev/build.sh", bin).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return bin
}

func TestTheActionsGuardAJob(t *testing.T) {
	t.Parallel()
	bin := build(t)
	m := newMachine(t)
	if text, code := m.run("action.yml", map[string]string{"bin": bin, "version": "0.0.0"}); code == 0 || !strings.Contains(text, "another version") {
		t.Errorf("another version: exit %d\n%s", code, text)
	}
	if text, code := m.run("action.yml", nil); code == 0 || !strings.Contains(text, "not in PATH") {
		t.Errorf("no programs: exit %d\n%s", code, text)
	}
	if err := os.Symlink(filepath.Join(bin, "auditctl"), filepath.Join(bin, "tripline")); err != nil {
		t.Fatal(err)
	}
	m.env["PATH"] = bin + ":" + m.env["PATH"]
	text, code := m.run("action.yml", map[string]string{"profile": "strict"})
	if code != 0 {
		t.Fatalf("start: exit %d\n%s", code, text)
	}
	out := m.outputs()
	end := map[string]string{"dir": out["dir"], "key": out["key"], "auditctl": out["auditctl"]}
	hook := exec.Command(filepath.Join(bin, "tripline-hook"), "-s", out["dir"]+"/run/hook.sock", "claude", "PreToolUse")
	hook.Stdin = strings.NewReader(`{"session_id":"s","cwd":"/home/dev/shop","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"rm -rf src"},"tool_use_id":"t"}`)
	if err := hook.Run(); err == nil {
		t.Error("rm -rf src passed")
	}
	end["fail-on"], end["out"], end["metrics-textfile"] = "denied", filepath.Join(m.home, "out"), filepath.Join(m.home, "m.prom")
	if text, code := m.run("finish/action.yml", end); code != 4 {
		t.Errorf("finish: exit %d\n%s", code, text)
	}
	summary, err := os.ReadFile(m.env["GITHUB_STEP_SUMMARY"])
	if err != nil || !bytes.Contains(summary, []byte("**1 call was seen.** 1 denied")) || !bytes.Contains(summary, []byte("profile `strict`")) {
		t.Errorf("summary: %v\n%s", err, summary)
	}
	for _, path := range []string{end["out"] + "/calls.jsonl", end["metrics-textfile"]} {
		if fi, err := os.Stat(path); err != nil || fi.Size() == 0 {
			t.Errorf("%s: %v", path, err)
		}
	}
	if text, code := m.run("finish/action.yml", map[string]string{"dir": out["dir"], "key": "", "auditctl": out["auditctl"]}); code != 1 {
		t.Errorf("finish without a start: exit %d\n%s", code, text)
	}
}

// Inputs can come from the text of an issue or the name of a branch.
func TestHostileInputsAreOnlyText(t *testing.T) {
	t.Parallel()
	bin := build(t)
	start, finish := load(t, files[0]), load(t, files[1])
	for _, evil := range []string{
		"$(touch owned)", "`touch owned`", `"; touch owned; "`, `'; touch owned; '`, "a\ntouch owned\n", "| touch owned", "&& touch owned", "--help", "-x", "*", "$HOME",
	} {
		m := newMachine(t)
		for name := range start.Inputs {
			with := map[string]string{"bin": bin, name: evil}
			text, code := m.run("action.yml", with)
			out, err := os.ReadFile(m.env["GITHUB_OUTPUT"])
			if code == 0 && name == "settings" { // a path like any other
				o := m.outputs()
				if _, code := m.run("finish/action.yml", map[string]string{"dir": o["dir"], "key": o["key"], "auditctl": o["auditctl"]}); code != 0 {
					t.Errorf("%s=%q: the job cannot be finished", name, evil)
				}
				_ = os.Remove(m.env["GITHUB_OUTPUT"])
				continue
			}
			if code == 0 || err == nil {
				t.Errorf("%s=%q: exit %d, outputs %q\n%s", name, evil, code, out, text)
			}
		}
		for name := range finish.Inputs {
			with := map[string]string{"dir": "/nowhere", "key": "k", "auditctl": filepath.Join(bin, "auditctl"), name: evil}
			if text, code := m.run("finish/action.yml", with); code == 0 {
				t.Errorf("%s=%q: exit 0\n%s", name, evil, text)
			}
		}
		err := filepath.WalkDir(m.home, func(path string, _ os.DirEntry, err error) error {
			if filepath.Base(path) == "owned" {
				t.Errorf("%q was run", evil)
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}
