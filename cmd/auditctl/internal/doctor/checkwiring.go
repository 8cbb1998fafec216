// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/hooks/install"
)

func checkWiring(_ context.Context, f *Facts) []Finding {
	u := &f.User
	fix := f.Self + " install claude"
	if u.Err != nil {
		return []Finding{{ID: "wiring.unreadable", Severity: Problem, Command: edit(u.Path), Evidence: u.Path,
			Text: "the agent's settings cannot be read, and the agent drops the whole file, hooks included: " + u.Err.Error()}}
	}
	var out []Finding
	for _, w := range u.Warnings {
		if !u.DisableAll || !strings.HasPrefix(w, "disableAllHooks") { // that one is the switches' business
			out = append(out, Finding{ID: "wiring.dropped", Severity: Problem, Text: w, Command: edit(u.Path), Evidence: u.Path})
		}
	}
	if !u.Wired() {
		if f.Agent.Found {
			return append(out, Finding{ID: "wiring.none", Severity: Note, Text: "claude is on this machine and not wired: nothing that it does is seen", Command: fix, Evidence: u.Path})
		}
		return append(out, Finding{ID: "wiring.none", Severity: Note, Text: "no agent is wired", Command: fix, Evidence: u.Path})
	}
	switch {
	case f.TokenErr != nil:
		out = append(out, Finding{ID: "wiring.token", Severity: Problem, Command: "chmod 600 " + words.Shell(f.Places.TokenFile), Evidence: f.Places.TokenFile,
			Text: "the install token cannot be read: " + f.TokenErr.Error()})
	case f.Token == "":
		out = append(out, Finding{ID: "wiring.token", Severity: Problem, Command: fix, Evidence: f.Places.TokenFile,
			Text: "the install token is not there, so that copies of our entries cannot be told from them"})
	}
	if u.PlanErr != nil {
		return append(out, f.refused())
	}
	out = append(out, f.binaryOf()...)
	differs := f.differences()
	if !u.Current && len(differs) == 0 {
		differs = []string{"an entry has a matcher, an order or a key that install does not write"}
	}
	if len(differs) > 0 {
		out = append(out, Finding{ID: "wiring.differs", Severity: Problem, Command: fix, Evidence: u.Path,
			Text: "the entries in the agent's settings are not those that install writes: " + strings.Join(differs, "; ")})
	}
	return out
}

// refused explains why install would not touch the file.
func (f *Facts) refused() Finding {
	p := Finding{ID: "wiring.refused", Severity: Problem, Text: "install would not touch the agent's settings: " + f.User.PlanErr.Error(), Evidence: f.User.Path}
	text := f.User.PlanErr.Error()
	if _, command, ok := strings.Cut(text, "first: chmod "); ok {
		p.ID, p.Command = "wiring.mode", "chmod go-w "+words.Shell(strings.TrimPrefix(command, "go-w "))
	}
	switch {
	case strings.Contains(text, "is a link"):
		p.ID, p.Command = "wiring.link", "ls -l "+words.Shell(f.User.Path)
	case strings.Contains(text, "belongs to another user"):
		p.ID, p.Command = "wiring.owner", "ls -ld "+words.Shell(f.User.Path)
	case errors.Is(f.User.PlanErr, install.ErrOptions):
		p.ID, p.Command = "wiring.programs", f.Self+" install claude"
	}
	return p
}

// binaryOf looks at the programs that our entries name.
func (f *Facts) binaryOf() []Finding {
	var out []Finding
	seen := map[string]bool{}
	mend := f.Self + " install claude"
	if !executable(f.Hook.Binary) {
		mend = "make up" // in the source's directory; install has no hook to name
	}
	for _, e := range f.User.Installed {
		if seen[e.Command] || len(seen) == maxListed {
			continue
		}
		seen[e.Command] = true
		if !executable(e.Command) {
			out = append(out, Finding{ID: "wiring.binary", Severity: Problem, Command: mend, Evidence: e.Command,
				Text: "the hook that the agent's settings name is not there or cannot be run: every event fails"})
		}
	}
	return out
}

// differences says in words how the entries of the file differ from the wanted ones.
func (f *Facts) differences() []string {
	var out, missing, twice, unknown []string
	wrong := map[string][]string{} // what differs -> events
	var order []string
	note := func(what, event string) {
		if wrong[what] == nil {
			order = append(order, what)
		}
		wrong[what] = append(wrong[what], event)
	}
	for _, want := range f.User.Wanted {
		n := 0
		for _, e := range f.User.Installed {
			if e.Under != want.Under {
				continue
			}
			if n++; n > 1 {
				twice = append(twice, e.Under)
				continue
			}
			for _, d := range differs(e, want) {
				note(d, e.Under)
			}
		}
		if n == 0 {
			missing = append(missing, want.Under)
		}
	}
	for _, e := range f.User.Installed {
		if !slices.ContainsFunc(f.User.Wanted, func(w install.Entry) bool { return w.Under == e.Under }) {
			unknown = append(unknown, e.Under)
		}
	}
	if len(missing) > 0 {
		out = append(out, fmt.Sprintf("%d of %d events are not registered (%s)", len(missing), len(f.User.Wanted), some(missing)))
	}
	if len(twice) > 0 {
		out = append(out, "registered twice: "+some(twice))
	}
	if len(unknown) > 0 {
		out = append(out, "must not be registered: "+some(unknown))
	}
	for _, what := range order {
		out = append(out, what+" ("+some(wrong[what])+")")
	}
	return out
}

// differs names what of an entry is not as wanted.
func differs(e, want install.Entry) []string {
	var out []string
	for _, d := range []struct {
		what string
		same bool
	}{
		{"another hook binary", e.Command == want.Command},
		{"another socket", e.Socket == want.Socket},
		{"another server uid", e.UID == want.UID},
		{"another spool", e.Spool == want.Spool},
		{"another token than the token file", e.Token == want.Token},
		{"another deadline", e.DeadlineMS == want.DeadlineMS},
		{"another timeout", e.Timeout == want.Timeout},
		{"onFailure is not block", e.Block || !want.Block},
		{"onFailure where it must not be", !e.Block || want.Block},
		{"another answer while the daemon is away", e.AllowOnDown == want.AllowOnDown},
		{"another event in its arguments", e.Event == want.Event},
		{"another command to start the daemon", slices.Equal(e.Daemon, want.Daemon)},
	} {
		if !d.same {
			out = append(out, d.what)
		}
	}
	return out
}

func some(list []string) string {
	if len(list) > maxListed {
		return strings.Join(list[:maxListed-1], ", ") + fmt.Sprintf(" and %d more", len(list)-maxListed+1)
	}
	return strings.Join(list, ", ")
}

func checkForeign(_ context.Context, f *Facts) []Finding {
	marks := []string{"tripline-hook", f.Hook.Socket, f.Token}
	for _, e := range f.User.Installed {
		marks = append(marks, e.Token)
	}
	var out []Finding
	look := func(s *Settings, ours bool) {
		n := 0
		event := ""
		for _, h := range s.Handlers {
			if h.Mentions(marks...) && !(ours && h.Ours) {
				n++
				event = h.Event
			}
		}
		if n == 0 {
			return
		}
		p := Finding{ID: "foreign." + s.Scope, Severity: Problem, Command: edit(s.Path), Evidence: s.Path + ", under " + event,
			Text: words.Count(n, "handler") + " of the " + s.Scope + " settings " + verb(n, "runs our hook or carries", "run our hook or carry") + " its arguments, and install did not write " + verb(n, "it", "them") +
				": a copy can take the place of ours"}
		if s.Scope == "managed" { // an administrator wires it there
			p.Severity, p.Text = Note, "the administrator's settings run our hook"
		}
		out = append(out, p)
	}
	look(&f.User.Settings, true)
	if f.Home != nil {
		look(f.Home, true)
	}
	for i := range f.Others {
		look(&f.Others[i], false)
	}
	return out
}
