// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/tripwires/view"
)

func TestScriptFilesOfInterpretersAreScannedForWhatTheyDestroy(t *testing.T) {
	t.Parallel()
	e := newEngine(t, Options{})
	for _, c := range []struct{ name, command, text, want string }{
		{"a literal deletion of a home counts", "python3 x.py", "import shutil as s\ns.rmtree('/home/dev')\n", "floor"},
		{"a shell text in a script counts", "node x.js", "require('child_process').execSync('rm -rf src')\n", "deny"},
		{"a script that is started by its path counts", "./x", "#!/usr/bin/env python3\nimport os\nos.system('rm -rf /')\n", "floor"},
		{"a guarded file counts", "ruby x.rb", "File.write(Dir.home + '/.claude/settings.json', '{}')\n", "floor"},
		{"a computed deletion is the program's own business", "python3 x.py", "import os, sys\nos.remove(sys.argv[1])\n", "pass"},
		{"a computed command is the program's own business", "node x.js", "require('child_process').execSync(cmd)\n", "pass"},
		{"a text that mentions a deletion is none", "python3 x.py", "print('rm -rf /')  # os.system('rm -rf /')\n", "pass"},
		{"a build directory may go", "python3 x.py", "import shutil\nshutil.rmtree('build', ignore_errors=True)\n", "pass"},
		{"a file of secrets that a program reads is its own business", "python3 x.py", "print(open('.env').read())\n", "pass"},
		{"a program that is no script passes", "./x", "\x7fELF rm -rf /", "pass"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := view.NewMemory()
			f := strings.Fields(c.command)
			m.AddFile("/home/dev/shop/"+strings.TrimPrefix(f[len(f)-1], "./"), []byte(c.text))
			m.AddFile("/home/dev/shop/build/x.o", []byte("x"))
			m.AddFile("/home/dev/shop/src/a.go", []byte("x"))
			if got := verdict(bash(t, e, m, c.command)); got != c.want {
				t.Errorf("%q with %q: %s, want %s", c.command, c.text, got, c.want)
			}
		})
	}
	if got := verdict(bash(t, e, view.NewMemory(), "python3 missing.py")); got != "pass" {
		t.Errorf("a script that is not there: %s, want pass", got)
	}
}

func TestAnAllowedScriptStaysAllowedWhateverItStarts(t *testing.T) {
	t.Parallel()
	set, err := Load([]File{userFile("version: 1\nrules:\n  - id: mine\n    allow: [\"Bash(python3 x.py)\"]\n")})
	if err != nil {
		t.Fatal(err)
	}
	m := view.NewMemory()
	m.AddFile("/home/dev/shop/x.py", []byte("import os\nos.system('ls -la')\n"))
	if got := verdict(bash(t, newEngine(t, Options{Rules: set}), m, "python3 x.py")); got != "allow" {
		t.Errorf("an allowed script: %s, want allow", got)
	}
}
