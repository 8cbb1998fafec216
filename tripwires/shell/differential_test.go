// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestExpansionAgreesWithBash runs harmless sources in real bash, with a PATH that holds little more than the stub "show",
// and compares what was started, with which words and where, with what the analysis lists.
func TestExpansionAgreesWithBash(t *testing.T) {
	t.Parallel()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("NO BASH ON THIS MACHINE: the expansion was not compared with a real shell")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(root, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	// One write for each record, since stubs may run at the same time.
	stub := "#!" + bash + "\nprintf '%s\\0' \"$PWD\" \"$@\" $'\\1' >> \"$SHOW_LOG\"\n"
	// a child that another test starts meanwhile must not hold the file open: it could not be run then
	syscall.ForkLock.RLock()
	err = os.WriteFile(filepath.Join(bin, "show"), []byte(stub), 0o700)
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range stubTools {
		if p, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(p, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	compared := 0
	for i, src := range differentialSources {
		if tool := missingTool(bin, src); tool != "" {
			t.Logf("NO %s ON THIS MACHINE: passed over %q", tool, src)
			continue
		}
		dir := filepath.Join(root, fmt.Sprint("case", i))
		if err := os.MkdirAll(filepath.Join(dir, "sub"), 0o700); err != nil {
			t.Fatal(err)
		}
		log := filepath.Join(root, fmt.Sprint("log", i))
		cmd := exec.Command(bash, "-c", src)
		cmd.Dir = dir
		cmd.Env = []string{"PATH=" + bin, "HOME=/home/dev", "LC_ALL=C.UTF-8", "SHOW_LOG=" + log, "PWD=" + dir}
		out, err := cmd.CombinedOutput()
		if err != nil && bytes.Contains(out, []byte("syntax error")) {
			t.Errorf("bash does not read %q: %s", src, out)
			continue
		}
		ran := readLog(t, log)
		a := Analyze(src, Options{Cwd: dir, Home: "/home/dev", User: "dev"})
		if said := listed(a); !slices.Equal(ran, said) {
			t.Errorf("source %q\n bash ran: %q\n analysis: %q\n%s", src, ran, said, render(a))
		}
		compared++
	}
	if compared < len(differentialSources)/2 {
		t.Errorf("only %d of %d sources could be compared", compared, len(differentialSources))
	}
}

var stubTools = []string{"bash", "sh", "cat", "base64", "rev", "tr", "xxd", "basename", "dirname", "seq", "xargs", "env", "nice", "timeout", "tee",
	"nohup", "find"}

func missingTool(bin, src string) string {
	for _, tool := range stubTools {
		if _, err := os.Lstat(filepath.Join(bin, tool)); err != nil && strings.Contains(src, tool+" ") {
			return tool
		}
	}
	return ""
}

func readLog(t *testing.T, log string) []string {
	t.Helper()
	data, err := os.ReadFile(log)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for rec := range strings.SplitSeq(strings.TrimSuffix(string(data), "\x01\x00"), "\x01\x00") {
		out = append(out, strings.TrimSuffix(rec, "\x00"))
	}
	slices.Sort(out)
	return slices.Compact(out) // a command that runs twice is listed once
}

func listed(a Analysis) []string {
	var out []string
	for _, c := range a.Commands {
		if len(c.Argv) == 0 || c.Argv[0].Text != "show" || c.Zsh {
			continue
		}
		words := []string{c.Cwd.Text}
		for _, w := range c.Argv[1:] {
			if !w.Known {
				w.Text += "(unknown)"
			}
			words = append(words, w.Text)
		}
		out = append(out, strings.Join(words, "\x00"))
	}
	slices.Sort(out)
	return slices.Compact(out)
}
