// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// bash judges a command in a directory of the usual fixture: a project without a repository in a home.
func bash(t testing.TB, e *Engine, m *view.Memory, command string) Decision {
	t.Helper()
	return e.Evaluate(context.Background(), bashCall(command), m.NewReader())
}

func bashCall(command string) Call {
	in, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return Call{Agent: "claude", Tool: "Bash", Input: in, Cwd: "/home/dev/shop", FirstCwd: "/home/dev/shop", Homes: []string{"/home/dev"}}
}

// verdict renders a decision as the tables of the design name it.
func verdict(d Decision) string {
	if d.Floor {
		return "floor"
	}
	return string(d.Verdict)
}

// spellings are ways to write one recursive and forced deletion; %s is the target.
var spellings = []string{
	"rm -rf %s", "rm -fr %s", "rm -r -f %s", "rm -f -R %s", "rm --recursive --force %s", "rm --recurs --forc %s", "rm -rfv -- %s",
	"rm %s -rf", "'r'm -rf %s", `\rm -rf %s`, "/bin/rm -rf %s", "command rm -rf %s", "env A=1 rm -rf %s", "A=1 rm -rf %s",
	"sudo -u root rm -rf %s", "nice -n 5 timeout 9 rm -rf %s", "busybox rm -rf %s", "sh -c 'rm -rf %s'", "eval 'rm -rf %s'",
	"echo %s | xargs rm -rf", "find %s -delete", "find %s -exec rm -rf {} +", "true && rm -rf %s", "(rm -rf %s)", "if true; then rm -rf %s; fi",
	"for d in %s; do rm -rf \"$d\"; done", "x=rm; $x -rf %s", "f(){ rm -rf %s; }; f", "bash <<'E'\nrm -rf %s\nE", "echo 'rm -rf %s' | bash",
	"nohup rm -rf %s &", "d=%s; rm -rf \"$d\"", "rimraf %s", "{rm,-rf,%s}",
}

func TestDeletionTable(t *testing.T) {
	t.Parallel()
	m := view.NewMemory()
	for _, f := range []string{"/home/dev/shop/src/a.go", "/home/dev/shop/node_modules/x/index.js", "/home/dev/shop/.env.sample", "/home/dev/notes.txt",
		"/home/dev/.ssh/config", "/home/dev/other/x", "/etc/hosts", "/usr/share/doc/x", "/tmp/x"} {
		m.AddFile(f, []byte("x"))
	}
	rows := []struct {
		place, dir, file                                  string
		forced, recursive, remove, empty, copied, content string
	}{
		{"tripline", "/home/dev/.config/tripline", "/home/dev/.config/tripline/tripline.yaml", "floor", "floor", "floor", "floor", "floor", "floor"},
		{"an agent's settings", "/home/dev/.claude", "/home/dev/.claude/settings.json", "floor", "floor", "floor", "floor", "floor", "floor"},
		{"device", "/dev/mapper", "/dev/sda", "floor", "floor", "floor", "floor", "floor", "floor"},
		{"home", "/home/dev", "/home/dev", "floor", "floor", "ask", "ask", "", "ask"},
		{"above a home", "/home", "/home", "floor", "floor", "ask", "ask", "", "ask"},
		{"credentials", "/home/dev/.ssh", "/home/dev/.ssh/config", "floor", "floor", "floor", "floor", "floor", "floor"},
		{"project root", "/home/dev/shop", "/home/dev/shop/.git/HEAD", "floor", "floor", "ask", "ask", "ask", "ask"},
		{"git's directory", "/home/dev/shop/.git", "/home/dev/shop/.git/index", "floor", "floor", "ask", "ask", "ask", "ask"},
		{"system directory", "/etc", "/etc/hosts", "floor", "floor", "deny", "deny", "deny", "deny"},
		{"child of a system directory", "/usr/share", "/usr/share/x", "floor", "floor", "deny", "deny", "deny", "deny"},
		{"deeper in the system", "/usr/share/doc/x", "/usr/share/doc/x/y", "deny", "deny", "deny", "deny", "deny", "deny"},
		{"outside of the project", "/home/dev/other", "/home/dev/notes.txt", "deny", "deny", "ask", "ask", "ask", "ask"},
		{"outside and new", "/home/dev/absent", "/home/dev/absent.txt", "deny", "deny", "ask", "pass", "pass", "pass"},
		{"project", "/home/dev/shop/src", "/home/dev/shop/src/a.go", "deny", "ask", "ask", "ask", "ask", "pass"},
		{"project and absent", "/home/dev/shop/gone", "/home/dev/shop/gone.go", "deny", "ask", "pass", "pass", "pass", "pass"},
		{"regenerable", "/home/dev/shop/node_modules", "/home/dev/shop/node_modules/x/index.js", "ask", "ask", "pass", "pass", "pass", "pass"},
		{"temp", "/tmp/work", "/tmp/x", "pass", "pass", "pass", "pass", "pass", "pass"},
		{"could not tell", `"$X"`, `"$X"`, "ask", "ask", "pass", "pass", "pass", "pass"},
	}
	e := newEngine(t, Options{})
	strict := newEngine(t, Options{Profile: ProfileStrict})
	ci := newEngine(t, Options{Profile: ProfileCI})
	for _, r := range rows {
		t.Run(r.place, func(t *testing.T) {
			t.Parallel()
			check := func(e *Engine, command, want string) {
				t.Helper()
				if got := verdict(bash(t, e, m, command)); want != "" && got != want {
					d := bash(t, e, m, command)
					t.Errorf("%s: got %s by %s, want %s", command, got, d.Rule, want)
				}
			}
			for _, s := range spellings {
				if r.place == "could not tell" && strings.ContainsAny(s, "'{") {
					continue // the quotes of the spelling would keep the variable a text
				}
				if strings.Contains(s, "find") && r.place == "could not tell" {
					continue
				}
				check(e, strings.ReplaceAll(s, "%s", r.dir), r.forced)
			}
			check(e, "rm -r "+r.dir, r.recursive)
			check(e, "rm "+r.file, r.remove)
			check(e, "rm -f "+r.file, r.remove)
			check(e, "> "+r.file, r.empty)
			check(e, "truncate -s 0 "+r.file, r.empty)
			check(e, "cp new "+r.file, r.copied)
			check(e, "mv new "+r.file, r.copied)
			check(e, "date > "+r.file, r.content)
			check(e, "date | tee "+r.file, r.content)
			switch r.place {
			case "temp":
				check(strict, "rm -r "+r.dir, "pass")
			case "regenerable":
				check(strict, "rm -r "+r.dir, "deny")
				check(ci, "rm -rf "+r.dir, "pass")
			case "project", "could not tell":
				check(strict, "rm -r "+r.dir, "deny")
				check(ci, "rm -r "+r.dir, "ask")
			}
		})
	}
}

// A deletion of one file asks only where git cannot bring it back.
func TestSingleFilesAreJudgedByWhatGitHolds(t *testing.T) {
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatalf("this test needs git: %v", err)
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	home := filepath.Join(dir, "home")
	root := filepath.Join(home, "shop")
	write := func(name, text string) {
		t.Helper()
		p := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("kept.go", "a")
	write("changed.go", "a")
	write("dist/tracked.js", "a")
	write(".gitignore", "*\n")
	for _, args := range [][]string{{"init", "-q"}, {"add", "-f", "kept.go", "changed.go", "dist/tracked.js"}} {
		cmd := exec.Command(git, append([]string{"-C", root}, args...)...)
		cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1"}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	write("changed.go", "a longer text")
	write("untracked.go", "a")
	write(".env", "K=1")
	write("build/out.js", "a")
	pool := view.NewPool(1)
	t.Cleanup(func() { _ = pool.Close(context.Background()) })
	e := newEngine(t, Options{})
	for command, want := range map[string]event.Decision{
		"rm kept.go":              event.Pass, // restorable
		"rm changed.go":           event.Ask,
		"rm untracked.go":         event.Ask, // ignored, and that is no proof
		"rm .env":                 event.Ask,
		"rm build/out.js":         event.Pass,
		"rm -rf build":            event.Ask,  // regenerable
		"rm -rf dist":             event.Deny, // a build name, but git tracks what is in it
		"> kept.go":               event.Pass,
		"> changed.go":            event.Ask,
		"mv new kept.go":          event.Pass,
		"cp new untracked.go":     event.Ask,
		"rm *.go":                 event.Ask, // one of them cannot come back
		"rm k*.go":                event.Pass,
		"date > untracked.go":     event.Pass,
		"git checkout changed.go": event.Ask,
		"git checkout topic":      event.Pass,
	} {
		c := bashCall(command)
		c.Cwd, c.FirstCwd, c.Homes = root, root, []string{home}
		r := pool.Reader(context.Background())
		if d := e.Evaluate(context.Background(), c, r); d.Verdict != want {
			t.Errorf("%s: got %s by %q (%s), want %s", command, d.Verdict, d.Rule, d.Reason, want)
		}
	}
}

func TestLinksAreFollowedBeforeAPlaceIsNamed(t *testing.T) {
	t.Parallel()
	m := view.NewMemory()
	m.AddDir("/home/dev/shop/src")
	m.AddFile("/home/dev/keys/id_rsa", []byte("x"))
	m.AddLink("/home/dev/shop/h", "/home/dev")
	m.AddLink("/home/dev/shop/etc", "/etc")
	m.AddLink("/home/dev/.ssh", "/home/dev/keys")
	m.AddFile("/etc/hosts", []byte("x"))
	e := newEngine(t, Options{})
	for command, want := range map[string]string{
		"rm -rf h/":                 "floor",
		"rm -rf h/*":                "floor",
		"rm -rf h":                  "deny", // the link itself, in the project
		"rm etc/hosts":              "deny",
		"echo x > etc/hosts":        "deny",
		"cat /home/dev/.ssh/id_rsa": "deny",
		"cat ~/keys/id_rsa":         "deny",
		"rm -rf /proc/self/root/":   "floor",
		"rm -rf /proc/self/cwd/..":  "floor",
		"rm -rf /tmp/../home":       "floor",
	} {
		if got := verdict(bash(t, e, m, command)); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}

func TestUnknownWordsThatMayBeOptionsAsk(t *testing.T) {
	t.Parallel()
	m := view.NewMemory()
	m.AddFile("/home/dev/shop/src/a.go", nil)
	e := newEngine(t, Options{})
	for command, want := range map[string]string{
		"rm $OPTS src": "input.opaque", `rm "$OPTS" src`: "delete.project-file", "rm -- $OPTS src": "delete.project-file", "rm $A new.txt": "",
	} {
		if d := bash(t, e, m, command); d.Rule != want && !slices.ContainsFunc(d.Matches, func(m Match) bool { return m.Rule == want }) {
			t.Errorf("%s: got %s by %q, want %q", command, d.Verdict, d.Rule, want)
		}
		if d := bash(t, e, m, command); want != "input.opaque" && slices.ContainsFunc(d.Matches, func(m Match) bool { return m.Rule == "input.opaque" }) {
			t.Errorf("%s: must not be taken for options", command)
		}
	}
}

func TestFindIsJudgedByWhereItStartsAndWhatItLooksFor(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	m := view.NewMemory()
	for command, want := range map[string]string{
		"find . -name '*.pyc' -delete":                          "pass",
		"find . -name '*.go' -delete":                           "ask",
		"find . -type f -delete":                                "floor",
		"find . -delete -name '*.pyc'":                          "floor", // the action stands before the test
		"find . ! -name '*.pyc' -delete":                        "floor",
		"find . -name '*' -delete":                              "floor",
		"find src -delete":                                      "deny",
		"find src -name '*.go' -delete":                         "ask",
		"find ~ -name '*.pyc' -delete":                          "floor",
		"find / -name '*.log' -exec rm {} +":                    "floor",
		"find . -name node_modules -exec rm -rf {} +":           "ask",
		"find . -name '*.go' | xargs rm -f":                     "ask",
		"find /tmp -name 'x*' -delete":                          "pass",
		"find . -name '*.go' -print":                            "pass",
		"find . -name '*.go' -exec sudo rm -f {} \\;":           "ask",
		"find .git -name '*.lock' -delete":                      "floor",
		"find /etc/nginx -name '*.bak' -delete":                 "floor",
		"find . -name '*.go' -exec chmod -x {} +":               "pass",
		"find . \\( -name '*.pyc' -o -name '*.pyo' \\) -delete": "pass",
	} {
		if got := verdict(bash(t, e, m, command)); got != want {
			t.Errorf("%s: got %s, want %s", command, got, want)
		}
	}
}
