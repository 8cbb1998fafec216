// SPDX-License-Identifier: Apache-2.0

package ci_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ci"
	"github.com/tripline-sh/tripline/daemon/config"
)

// short is a directory whose path leaves room for sockets.
func short(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestAJobIsKept(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(short(t), "a", "job")
	if _, err := ci.Load(dir); !errors.Is(err, ci.ErrNoJob) {
		t.Fatalf("no directory: %v", err)
	}
	j, err := ci.New(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if fi, err := os.Stat(dir); err != nil || fi.Mode().Perm() != 0o700 {
		t.Errorf("%v %v", fi.Mode(), err)
	}
	j.Settings, j.Agent, j.Died = "/home/dev/.claude/settings.json", "claude", true
	if err := j.Save(); err != nil {
		t.Fatal(err)
	}
	got, err := ci.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(j, got); d != "" {
		t.Error(d)
	}
	if _, err := ci.New(dir, ""); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("a second job in the same directory: %v", err)
	}
	for _, text := range []string{"", "{", "[]", `{"v":2}`, `{"v":1,"dir":"job","settings":"/s"}`, `{"v":1,"dir":"/job","settings":"s"}`, `{"v":1,"dir":"/j","settings":"/s","more":1}`} {
		if err := os.WriteFile(filepath.Join(dir, "state", "ci.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if j, err := ci.Load(dir); err == nil || errors.Is(err, ci.ErrNoJob) {
			t.Errorf("%q is read as %+v, %v", text, j, err)
		}
	}
}

func TestDirectoriesThatCannotHoldAJob(t *testing.T) {
	t.Parallel()
	dir := short(t)
	file := filepath.Join(dir, "file")
	link := filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(t.TempDir(), link)); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"relative": "job", "a file": file, "below a file": file + "/job", "a link": link, "holds something": dir, "too long": filepath.Join(dir, strings.Repeat("x", 100)),
	} {
		if j, err := ci.New(path, ""); err == nil {
			t.Errorf("%s: %+v", name, j)
		}
	}
}

func TestANewDirectoryIsWhereSocketsFit(t *testing.T) {
	t.Parallel()
	near := short(t)
	far := filepath.Join(near, strings.Repeat("x", 90))
	if err := os.Mkdir(far, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, temp := range []string{near, far} {
		j, err := ci.New("", temp)
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(j.Dir)
		if in := strings.HasPrefix(j.Dir, temp+"/"); in != (temp == near) || len(j.Dir) > 80 {
			t.Errorf("below %s: %s", temp, j.Dir)
		}
	}
}

func TestVarsAreSingleLines(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "env")
	if err := os.WriteFile(path, []byte("A=1"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []ci.Var{
		{"", "x"}, {"A=B", "x"}, {"A<<E", "x"}, {"A\nB", "x"}, {"A B", "x"},
		{"A", "x\nB=1"}, {"A", "x\rB=1"}, {"A", "\x00"}, {"A", "x\u2028B=1"}, {"A", "x\u0085B=1"},
	} {
		if err := ci.AppendVars(path, ci.Var{Name: "GOOD", Value: "1"}, bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if err := ci.AppendVars(path, ci.Var{Name: "B", Value: "/tmp/a b"}, ci.Var{Name: "C", Value: "<<EOF"}); err != nil {
		t.Fatal(err)
	}
	if err := ci.AppendVars(path, ci.Var{Name: "D", Value: "2"}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if want := "A=1\nB=/tmp/a b\nC=<<EOF\nD=2\n"; err != nil || string(got) != want {
		t.Errorf("%q, want %q (%v)", got, want, err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{link, t.TempDir(), "/dev/null"} {
		if err := ci.AppendText(p, []byte("x\n")); err == nil {
			t.Errorf("%s was written to", p)
		}
	}
}

func TestArtefactsHoldNoSecret(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p, err := config.FindPlaces(func(name string) string { return map[string]string{"TRIPLINE_HOME": filepath.Join(dir, "home")}[name] })
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{
		filepath.Join(p.LogDir, "2026-01-01-000000000001.db"): "segment", filepath.Join(p.LogDir, "notes"): "no segment",
		filepath.Join(p.KeysDir, "log.pub"): "public", filepath.Join(p.KeysDir, "last.checkpoint"): "signed",
		filepath.Join(p.KeysDir, "log.key"): "SECRET", filepath.Join(p.KeysDir, "join.key"): "SECRET", p.TokenFile: "SECRET",
		filepath.Join(p.SpoolDir, "1.evt"): "SECRET",
	}
	for path, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(p.TokenFile, filepath.Join(p.LogDir, "2026-01-02-000000000002.db")); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "out")
	for range 2 { // a second time replaces
		e, err := ci.NewExport(out)
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Log(p); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	err = filepath.WalkDir(out, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		rel, _ := filepath.Rel(out, path)
		got = append(got, rel+": "+string(b))
		return err
	})
	want := []string{"state/keys/last.checkpoint: signed", "state/keys/log.pub: public", "state/log/2026-01-01-000000000001.db: segment"}
	if d := cmp.Diff(want, got); err != nil || d != "" {
		t.Errorf("%v\n%s", err, d)
	}
}

func TestRulesAreCopied(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rules := filepath.Join(dir, "[rules]*")
	if err := os.MkdirAll(filepath.Join(rules, "d.yaml"), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) string {
		path := filepath.Join(rules, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	a := write("a.yaml", "a")
	if err := ci.CopyRules([]string{rules}, filepath.Join(dir, "1")); err == nil {
		t.Error("a directory called d.yaml was taken for a file")
	}
	if err := os.Remove(filepath.Join(rules, "d.yaml")); err != nil {
		t.Fatal(err)
	}
	write("b.yaml", "b")
	text := write("c.txt", "c")
	big := write("big.txt", strings.Repeat("x", 2<<20))
	if err := os.Rename(big, filepath.Join(dir, "big.yaml")); err != nil {
		t.Fatal(err)
	}
	if err := ci.CopyRules([]string{rules}, filepath.Join(dir, "2")); err != nil {
		t.Fatal(err)
	}
	if names, err := filepath.Glob(filepath.Join(dir, "2", "*")); err != nil || len(names) != 2 {
		t.Errorf("%q %v", names, err)
	}
	for name, paths := range map[string][]string{
		"twice the same name": {rules, a}, "another ending": {text}, "missing": {filepath.Join(dir, "none.yaml")}, "empty": {t.TempDir()}, "large": {filepath.Join(dir, "big.yaml")},
	} {
		if err := ci.CopyRules(paths, filepath.Join(dir, name)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
}
