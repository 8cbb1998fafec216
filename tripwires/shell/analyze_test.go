// SPDX-License-Identifier: Apache-2.0

package shell

import "testing"

type tableCase struct{ name, src, want string }

func runTable(t *testing.T, cases []tableCase) {
	t.Helper()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := render(Analyze(tc.src, testOptions())); got != tc.want {
				t.Errorf("Analyze(%q)\n got: %s\nwant: %s", tc.src, got, tc.want)
			}
		})
	}
}

func TestSimpleCommands(t *testing.T) {
	t.Parallel()
	runTable(t, simpleCases)
}

var simpleCases = []tableCase{
	{"a leading assignment is only an environment", "STAGE=qa rm -rf /", "STAGE=qa rm -rf /"},
	{"quotes and backslashes inside a word vanish", `r''m -r\f /`, "rm -rf /"},
	{"the tilde is the home", "rm -fr ~", "rm -fr /home/dev"},
	{"a glob after cd is read in that directory", "cd / && rm -rf *", "cd /\nrm -rf glob:* @/"},
	{"an unset variable is unknown", `rm -rf "$CACHE_ROOT/"`, "rm -rf unset:?/"},
	{"a value is split where it is not quoted", `D="/tmp/a /home"; rm -rf $D/out`, "D=\"/tmp/a /home\"\nrm -rf /tmp/a /home/out"},
	{"braces build the whole command", "{rm,-rf,/}", "rm -rf /"},
	{"wrappers are stripped with their values", "timeout 30 nice -n 5 rm -rf /opt", "rm -rf /opt via timeout,nice"},
	{"text in quotes is no command", `git commit -m "rm -rf /"`, `git commit -m "rm -rf /"`},
}
