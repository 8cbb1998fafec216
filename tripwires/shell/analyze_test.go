// SPDX-License-Identifier: Apache-2.0

package shell

import "testing"

// tableCase is one source and what its analysis looks like (see render). Sources run in /home/dev/shop.
type tableCase struct{ name, src, want string }

func tables() map[string][]tableCase {
	return map[string][]tableCase{
		"simple": simpleCases, "wrappers": wrappersCases, "feeding": feedingCases, "elsewhere": elsewhereCases, "downloads": downloadsCases,
		"scripts": scriptsCases, "variables": variablesCases, "flow": flowCases, "zsh": zshCases,
	}
}

func TestAnalyzeListsWhatWouldRun(t *testing.T) {
	t.Parallel()
	for table, cases := range tables() {
		for _, tc := range cases {
			t.Run(table+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				if got := render(Analyze(tc.src, scriptOptions())); got != tc.want {
					t.Errorf("Analyze(%q)\n--- got\n%s\n--- want\n%s", tc.src, got, tc.want)
				}
			})
		}
	}
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
