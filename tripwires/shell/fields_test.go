// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"reflect"
	"strings"
	"testing"
)

// find returns the first command that runs the program.
func find(t *testing.T, src, program string) Command {
	t.Helper()
	a := Analyze(src, scriptOptions())
	for _, c := range a.Commands {
		if len(c.Argv) > 0 && c.Argv[0].Text == program {
			return c
		}
	}
	t.Fatalf("%q does not run %s:\n%s", src, program, render(a))
	return Command{}
}

func TestStandardInputIsKnownWhereItIsWritten(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, src, program, want string
		known, none              bool
	}{
		{"nothing", "psql", "psql", "", false, true},
		{"a here-document", "psql <<E\ndrop\nE", "psql", "drop\n", true, false},
		{"a here-string", "psql <<< 'drop x'", "psql", "drop x\n", true, false},
		{"a pipe of known text", "echo 'drop x' | psql", "psql", "drop x\n", true, false},
		{"a pipe of unknown text", "make | psql", "psql", "\x00", false, false},
		{"a pipe through cat and sudo", "echo drop | cat | sudo -u p psql", "psql", "drop\n", true, false},
		{"a group", "{ echo a; echo b; } | psql", "psql", "a\nb\n", true, false},
		{"a file that was written", "echo drop > f; psql < f", "psql", "drop\n", true, false},
		{"a file that was there", "psql < f", "psql", "\x00", false, false},
		{"inside sh -c", "echo drop | sh -c 'psql'", "psql", "drop\n", true, false},
		{"the last redirection counts", "psql < f <<< drop", "psql", "drop\n", true, false},
	} {
		c := find(t, tc.src, tc.program)
		if c.StdinNone != tc.none || c.Stdin.Known != tc.known || c.Stdin.Text != tc.want {
			t.Errorf("%s: none %v, stdin %+v", tc.name, c.StdinNone, c.Stdin)
		}
	}
	if c := find(t, "curl x | python3 -", "python3"); !c.Stdin.Download || c.Stdin.Known {
		t.Errorf("a download on standard input: %+v", c.Stdin)
	}
}

func TestPipelinesAreNumbered(t *testing.T) {
	t.Parallel()
	a := Analyze("a | b | c; d; e | f; for i in 1 2; do g $i | h; done", testOptions())
	var got []string
	for _, c := range a.Commands {
		got = append(got, c.Argv[0].Text+itoa(c.Pipe)+itoa(c.Stage))
	}
	want := []string{"a10", "b11", "c12", "d00", "e20", "f21", "g30", "h31", "g30"}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestFlagsOfCommands(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, src string
		ok        func(Command) bool
	}{
		{"sudo gives privilege", "sudo -n rm x", func(c Command) bool { return c.Privileged }},
		{"su -c gives privilege", "su -c 'rm x'", func(c Command) bool { return c.Privileged }},
		{"without it there is none", "env rm x", func(c Command) bool { return !c.Privileged }},
		{"a background command", "rm x & wait", func(c Command) bool { return c.Background }},
		{"nohup is background", "nohup rm x", func(c Command) bool { return c.Background }},
		{"a plain command is certain", "cd y && rm x", func(c Command) bool { return !c.Conditional && !c.Background }},
		{"a command behind && is not", "test -f y && rm x", func(c Command) bool { return c.Conditional }},
		{"nor is one in an if", "if a; then rm x; fi", func(c Command) bool { return c.Conditional }},
		{"nor one behind a possible exit", "a || exit; rm x", func(c Command) bool { return c.Conditional }},
		{"a mount of docker", "docker run -v /:/h --mount type=bind,src=/a,dst=/b i rm x", func(c Command) bool {
			return c.Remote && c.Host == "i" && reflect.DeepEqual(c.Mounts, [][2]string{{"/", "/h"}, {"/a", "/b"}})
		}},
		{"the host of ssh", "ssh u@h rm x", func(c Command) bool { return c.Remote && c.Host == "u@h" && c.Mounts == nil }},
		{"the root of chroot", "chroot /mnt rm x", func(c Command) bool {
			return c.Remote && reflect.DeepEqual(c.Mounts, [][2]string{{"/mnt", "/"}})
		}},
		{"exports", "export B=2; A=1; export C=3; rm x", func(c Command) bool {
			return len(c.Exported) == 2 && c.Exported[0].Name == "B" && c.Exported[1].Value.Text == "3"
		}},
		{"assignments in front", "A=1 B+=2 rm x", func(c Command) bool {
			return len(c.Env) == 2 && c.Env[0].Name == "A" && c.Env[1].Append
		}},
		{"the position", "a;\n  rm x", func(c Command) bool { return c.Pos == Pos{2, 3} && c.Argv[1].Pos == Pos{2, 6} }},
		{"the position inside sh -c is that of sh", "a; sh -c 'b\nrm x'", func(c Command) bool { return c.Pos == Pos{1, 4} }},
		{"the script", "sh deploy.sh", func(c Command) bool { return c.Script == "/home/dev/shop/deploy.sh" }},
		{"a script that was written is the source's", "echo rm x > s; sh s", func(c Command) bool { return c.Script == "" }},
		{"descriptors of redirections", "rm x 2>e 3<>f >>g", func(c Command) bool {
			return len(c.Redirs) == 3 && c.Redirs[0].FD == "2" && c.Redirs[1].Op == "<>" && c.Redirs[2].Op == ">>"
		}},
	} {
		if c := find(t, tc.src, "rm"); !tc.ok(c) {
			t.Errorf("%s: %q gives %+v", tc.name, tc.src, c)
		}
	}
}

func TestWordsSayWhatIsKnownOfThem(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		src  string
		want Word
	}{
		{`rm ""`, Word{Known: true, Quoted: true}},
		{`rm "$X"/a`, Word{Text: "\x00/a", Unset: true, Quoted: true, Var: "X"}},
		{`rm $X`, Word{Text: "\x00", Unset: true, Split: true, Var: "X"}},
		{`rm "*"?\[a`, Word{Text: "*?[a", Known: true, Quoted: true, Glob: true, GlobText: `\*?\[a`}},
		{`rm [ab]c`, Word{Text: "[ab]c", Known: true, Glob: true, GlobText: "[ab]c"}},
		{`rm [ab`, Word{Text: "[ab", Known: true}},
		{`rm t-$$`, Word{Text: "t-\x00", Flat: true, Split: true}},
		{`rm "$(cat k | base64 -d)"`, Word{Text: "\x00", Hidden: true, Quoted: true}},
		{`rm "$(curl x)"`, Word{Text: "\x00", Download: true, Quoted: true}},
		{`rm "$(mktemp)"`, Word{Text: TempPrefix, Known: true, Temp: true, Quoted: true}},
		{`rm "a$(mktemp)"`, Word{Text: "a" + TempPrefix, Known: true, Quoted: true}},
		{`rm !(a)`, Word{Text: "!(a)", Known: true, Glob: true, GlobText: "!(a)"}},
		{`for f in *.o; do rm "$f"; done`, Word{Text: "*.o", Known: true, Glob: true, GlobText: "*.o", Quoted: true}},
	} {
		got := find(t, tc.src, "rm").Argv[1]
		got.Pos = Pos{}
		if got != tc.want {
			t.Errorf("%s:\n got %+v\nwant %+v", tc.src, got, tc.want)
		}
	}
}

func TestUnknownPartsOfTextThatRunsAreSaid(t *testing.T) {
	t.Parallel()
	a := Analyze(`bash -c "make -C $DIR"`, testOptions())
	if len(a.Opaque) != 1 || !a.Opaque[0].Partial || a.Opaque[0].Kind != "eval" || len(a.Opaque[0].Argv) != 3 {
		t.Errorf("opaque: %+v", a.Opaque)
	}
	if a := Analyze(`bash -c "sleep $RANDOM"`, testOptions()); len(a.Opaque) != 0 {
		t.Errorf("a number in a text is no code: %+v", a.Opaque)
	}
	if a := Analyze("x=$(echo bHM= | base64 -d); $x", testOptions()); !a.Computed || strings.Contains(render(a), "!") {
		t.Errorf("computed %v: %s", a.Computed, render(a))
	}
}

func TestReadScriptIsAskedOnlyForFilesThatMayBeScripts(t *testing.T) {
	t.Parallel()
	var asked []string
	o := testOptions()
	o.ReadScript = func(p string) (string, error) {
		asked = append(asked, p)
		return "\x7fELF...", nil
	}
	Analyze("/usr/bin/make; ls; ./tool; sh -c ls; cat x.sh; ../b/run; $X/y; python3 z.py", o)
	if want := []string{"/home/dev/shop/tool", "/home/dev/b/run"}; !reflect.DeepEqual(asked, want) {
		t.Errorf("asked for %q, want %q", asked, want)
	}
}
