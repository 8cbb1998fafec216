// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

func checkPrograms(_ context.Context, f *Facts) []Finding {
	const again = "make up" // in the source's directory
	var out []Finding
	var places []string            // that others may write to
	loose := map[string][]string{} // programs by them
	for _, p := range f.Programs {
		switch {
		case p.Err != nil:
			out = append(out, Finding{ID: "programs.missing", Severity: Problem, Command: again, Evidence: p.Path,
				Text: p.Name + " is not beside this program or cannot be read; the three belong into one directory"})
		case p.Perm&0o111 == 0:
			out = append(out, Finding{ID: "programs.mode", Severity: Problem, Command: "chmod 755 " + words.Shell(p.Path), Evidence: p.Path,
				Text: p.Name + " cannot be executed"})
		case !p.Ours:
			out = append(out, Finding{ID: "programs.foreign", Severity: Problem, Command: again, Evidence: p.Path + words.Prefixed(" sha256 ", p.SHA256),
				Text: "the file " + p.Path + " is not " + p.Name + ": somebody put another program in its place"})
		case p.Loose != "":
			if loose[p.Loose] == nil {
				places = append(places, p.Loose)
			}
			loose[p.Loose] = append(loose[p.Loose], p.Name)
		}
	}
	for _, place := range places {
		out = append(out, Finding{ID: "programs.writable", Severity: Problem, Command: "chmod go-w " + words.Shell(place), Evidence: place,
			Text: "others may change " + and(loose[place]) + ", since they may write to " + place})
	}
	if revisions(f.Programs) > 1 {
		var seen []string
		for _, p := range f.Programs {
			seen = append(seen, p.Name+" "+p.Revision)
		}
		out = append(out, Finding{ID: "programs.versions", Severity: Warning, Command: again, Evidence: strings.Join(seen, ", "),
			Text: "the three programs beside each other were built from different sources"})
	}
	return out
}

// revisions counts the sources that the programs were built from; unknown ones are not counted.
func revisions(programs []Program) int {
	seen := map[string]bool{}
	for _, p := range programs {
		if p.Ours && p.Revision != "" {
			seen[p.Revision] = true
		}
	}
	return len(seen)
}

func checkEntry(_ context.Context, f *Facts) []Finding {
	if f.Entry != EntryPlain {
		return nil
	}
	return []Finding{{ID: "entry.plain", Severity: Warning, Command: "make up", Evidence: f.Programs[0].Path,
		Text: "tripline-hook was built without its own entry (by go build or go install): variables such as GOMEMLIMIT reach the Go runtime in it and can end it before it denies"}}
}

func checkPath(_ context.Context, f *Facts) []Finding {
	dir := filepath.Dir(f.Exe)
	export := `export PATH=` + words.Shell(dir) + `:"$PATH"`
	if dir == filepath.Join(f.Places.Home, ".local", "bin") {
		export = `export PATH="$HOME/.local/bin:$PATH"`
	}
	first := Hit{}
	second := Hit{}
	for _, h := range f.Hits {
		switch h.Name {
		case "auditctl":
			first = h
		case "tripline":
			second = h
		}
	}
	switch {
	case first.Ours:
		return nil
	case !f.OnPath:
		p := Finding{ID: "path.missing", Severity: Warning, Command: export, Evidence: first.Path,
			Text: "the directory of this program is not in PATH: " + dir}
		if first.Path != "" && !first.Copy {
			p.Text += "; auditctl there is " + first.Path + ", the kernel's audit tool"
		}
		return []Finding{p}
	case first.Copy:
		return []Finding{{ID: "path.copy", Severity: Warning, Command: export, Evidence: first.Path,
			Text: "PATH finds the auditctl of another install first: " + first.Path}}
	case first.Path != "" && second.Ours:
		return []Finding{{ID: "path.kernel", Severity: Note, Command: export, Evidence: first.Path,
			Text: "PATH finds another auditctl first (the kernel's audit tool?): " + first.Path + "; ours answers to the name tripline"}}
	case first.Path != "":
		return []Finding{{ID: "path.kernel", Severity: Warning, Command: export, Evidence: first.Path,
			Text: "PATH finds another auditctl first (the kernel's audit tool?): " + first.Path}}
	}
	return nil
}

func checkAgent(_ context.Context, f *Facts) []Finding {
	if !f.Agent.Found {
		return nil
	}
	v, known := f.Agent.Version()
	what := "claude " + v.String()
	switch {
	case !known && f.User.Wired():
		return []Finding{{ID: "agent.unknown", Severity: Note, Evidence: f.Agent.Program, Command: "claude --version",
			Text: "which release of claude runs cannot be told without running it; hooks need " + claude.FirstOnFailure.String() + " or later"}}
	case !known:
		return nil
	case v.Compare(claude.FirstSupported) < 0:
		return []Finding{{ID: "agent.old", Severity: Problem, Command: "claude update", Evidence: f.Agent.Program,
			Text: what + " is too old for these hooks (older than " + claude.FirstSupported.String() + ")"}}
	case v.Compare(claude.FirstOnFailure) < 0:
		return []Finding{{ID: "agent.fails_open", Severity: Warning, Command: "claude update", Evidence: f.Agent.Program,
			Text: what + " does not know onFailure (it came with " + claude.FirstOnFailure.String() + "): a hook that cannot run lets the call run"}}
	}
	return nil
}
