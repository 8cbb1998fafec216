// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"strings"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/hooks/event"
)

// Sizes of rendered texts, in bytes.
const (
	maxReason = 2000
	maxPrompt = 300
)

// reason says in one or two sentences what the deciding opinion is about. Texts of a project's rules are not in it.
func (x *evaluation) reason(o opinion) string {
	var parts []string
	if what := x.subject(o); what != "" {
		parts = append(parts, what)
	}
	why := o.Why
	if o.Layer == string(LayerProject) {
		why = "a rule of this project"
	}
	if why != "" {
		parts = append(parts, why)
	}
	return show.Line(strings.Join(parts, ": "), 600)
}

// subject names the effect that an opinion matched, in words.
func (x *evaluation) subject(o opinion) string {
	if o.rule == nil {
		return ""
	}
	for i := range o.rule.patterns {
		p := &o.rule.patterns[i]
		for j := range x.findings {
			if f := &x.findings[j]; (p.effect != nil || p.path != "" || p.domain != "") && p.onFinding(x, f) && !x.excepted(o.rule, nil, f) {
				said := *f
				if o.Why != "" && f.Kind != Unknown && f.Kind != SelfTamper {
					said.Note = "" // the rule says it better
				}
				return said.words()
			}
		}
	}
	return o.Token
}

// kindWords says what each kind of effect does.
var kindWords = map[EffectKind]string{
	Read: "reads", Write: "writes", Append: "appends to", Delete: "deletes", Empty: "empties", Overwrite: "overwrites",
	ExecuteDownload: "runs what was downloaded", NetworkSend: "sends to the network", SecretRead: "reads a secret:", VCSDiscard: "discards in git:",
	VCSRewriteRemote: "rewrites the remote", Privilege: "takes another user's rights", PermissionChange: "changes permissions of", DeviceWrite: "writes to a device",
	ProcessKill: "stops a process", Persistence: "makes something run later:", DatabaseDestroy: "destroys data in a database:", InfraDestroy: "destroys resources:",
	HistoryWipe: "wipes a history", SelfTamper: "acts on Tripline or an agent's hooks:", AgentUnguarded: "starts an agent without its guards:",
	Execute: "runs", ResourceExhaust: "exhausts the machine", Unknown: "would run something that could not be read",
}

// words renders an effect: "rm deletes src, with all below it, without asking (project)".
func (f *finding) words() string {
	if f.Kind == Unknown && f.Note != "" {
		return f.Note
	}
	var b strings.Builder
	if f.Program != "" {
		b.WriteString(shorten(f.Program, 40))
		b.WriteByte(' ')
	}
	b.WriteString(kindWords[f.Kind])
	if f.Target != "" {
		b.WriteByte(' ')
		b.WriteString(shorten(f.Target, 160))
	}
	if f.Recursive {
		b.WriteString(" and all below it")
	}
	if f.Place != "" {
		b.WriteString(" (" + f.Place + ")")
	}
	if f.Note != "" {
		b.WriteString(", " + f.Note)
	}
	return b.String()
}

// RenderReason is the text that the model reads of a deny: what was refused, by which rule, what to do instead, and that the
// same call will be refused again. At most 2,000 bytes; control and bidi characters are made visible.
func RenderReason(d Decision) string {
	var b strings.Builder
	head := "Tripline refused this call"
	if d.Verdict == event.Ask {
		head = "Tripline needs a person's word for this call"
	}
	b.WriteString(head)
	if d.Rule != "" {
		b.WriteString(" (rule " + show.Line(d.Rule, 100) + ")")
	}
	b.WriteString(". ")
	if d.Reason != "" {
		b.WriteString(sentence(show.Line(d.Reason, 700)))
	}
	if d.Instead != "" {
		b.WriteString("Instead: " + sentence(show.Line(d.Instead, 600)))
	}
	if d.Floor {
		b.WriteString("This rule holds always; nobody can approve the call. ")
	}
	b.WriteString("This is policy, not a fault: do not retry the same call or look for another way to the same effect. If it is needed, say so to the person.")
	return show.Line(b.String(), maxReason)
}

func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" {
		return ""
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "!") && !strings.HasSuffix(s, "?") && !strings.HasSuffix(s, "…") {
		s += "."
	}
	return s + " "
}

// RenderAsk is the text of the agent's own prompt: the command, the directory, the project, what it would do, and, always last
// and whole, the rule. At most 300 bytes; of what is too long the middle goes, first of the command.
func RenderAsk(d Decision, c Call) string {
	const head, leastWhat = "Tripline: ", 100
	tail := " [rule " + show.Line(d.Rule, maxIDLen+len("project:")) + "]"
	where := " | in " + middle(tildePath(c.Cwd, c.Homes), 46)
	if d.Project != "" && d.Project != c.Cwd {
		where += " (project " + middle(tildePath(d.Project, c.Homes), 36) + ")"
	} else if d.Project != "" {
		where += " (project root)"
	}
	where += " | "
	room := maxPrompt - len(head) - len(where) - len(tail)
	command, what := middle(callText(c), room), show.Line(d.Reason, room)
	if len(command)+len(what) > room {
		what = middle(what, max(room-len(command), min(leastWhat, room/2)))
		command = middle(command, room-len(what))
	}
	return show.Line(head+command+where+what+tail, maxPrompt)
}

// middle makes a text visible and takes out its middle where it is longer than most bytes: how a command ends often says more
// than what stands in between.
func middle(s string, most int) string {
	const gap = " … "
	if len(s) > 64<<10 {
		s = s[:32<<10] + gap + s[len(s)-32<<10:]
	}
	if s = show.Line(s, 0); len(s) <= most {
		return s
	}
	keep := most - len(gap)
	if keep < 8 {
		return show.Line(s, most)
	}
	head, end := keep*3/5, len(s)-(keep-keep*3/5)
	for head > 0 && !utf8.RuneStart(s[head]) {
		head--
	}
	for end < len(s) && !utf8.RuneStart(s[end]) {
		end++
	}
	return s[:head] + gap + s[end:]
}

// callText is what the call says it does: its command or its path.
func callText(c Call) string {
	in, ok := decodeInput(c.Input)
	if !ok {
		return c.Tool
	}
	for _, key := range []string{"command", "cmd", "file_path", "notebook_path", "url", "path"} {
		if s, found := in.text(key); found {
			if shellTools[c.Tool] != "" {
				return s
			}
			return c.Tool + " " + s
		}
	}
	return c.Tool
}

func tildePath(p string, homes []string) string {
	for _, h := range homes {
		if h != "" && h != "/" && within(h, p) {
			return "~" + strings.TrimPrefix(p, h)
		}
	}
	return p
}

// Explained is one line of `auditctl explain`.
type Explained struct {
	ID      string         `json:"id"`
	Verdict event.Decision `json:"verdict"`
	Rule    string         `json:"rule"`
	Floor   bool           `json:"floor"`
	Reason  string         `json:"reason"`
	Effects []Effect       `json:"effects"`
}

// Explain renders the decision for `auditctl explain`; Effects is never nil.
func (d Decision) Explain(id string) Explained {
	e := Explained{ID: id, Verdict: d.Verdict, Rule: d.Rule, Floor: d.Floor, Reason: d.Reason, Effects: d.Effects}
	if e.Effects == nil {
		e.Effects = []Effect{}
	}
	return e
}
