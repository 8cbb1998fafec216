// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/control"
)

func checkDaemon(_ context.Context, f *Facts) []Finding {
	if f.Status == nil {
		return []Finding{f.away()}
	}
	var out []Finding
	if f.Status.Version != f.Version {
		out = append(out, Finding{ID: "daemon.version", Severity: Warning, Command: f.Self + " restart",
			Text:     "the daemon that runs is of another version than this program",
			Evidence: fmt.Sprintf("daemon %s, this program %s", f.Status.Version, f.Version)})
	}
	own := filepath.Join(filepath.Dir(f.Exe), "triplined")
	switch exe := f.DaemonExe; {
	case strings.HasSuffix(exe, " (deleted)"):
		out = append(out, Finding{ID: "daemon.replaced", Severity: Warning, Command: f.Self + " restart", Evidence: exe,
			Text: "the daemon's program was replaced since it started: the old one still runs"})
	case exe != "" && !sameFile(exe, own):
		out = append(out, Finding{ID: "daemon.elsewhere", Severity: Warning, Evidence: exe, Command: f.Self + " restart",
			Text: "the daemon that runs is not the triplined beside this program"})
	}
	return out
}

// away says why no daemon answers.
func (f *Facts) away() Finding {
	p := Finding{ID: "daemon.down", Severity: Problem, Command: f.Self + " start"}
	if f.StatusErr != nil {
		p.Evidence = f.StatusErr.Error()
	}
	effect := "; no agent is wired, so nothing is blocked or recorded"
	switch {
	case f.User.Wired() && f.Config.OnDown == "allow":
		effect = ": calls of wired agents pass unjudged"
	case f.User.Wired():
		effect = ": every guarded call of a wired agent is denied"
	}
	switch {
	case !errors.Is(f.StatusErr, control.ErrUnreachable):
		p.ID, p.Text, p.Command = "daemon.error", "the daemon does not say how it is", f.Self+" restart"
	case f.LockPID != 0:
		p.ID, p.Command = "daemon.mute", f.Self+" restart"
		p.Text = fmt.Sprintf("a daemon runs (pid %d) and does not answer on its control socket%s", f.LockPID, effect)
	case f.Stopped:
		p.ID, p.Text = "daemon.stopped", "a person stopped the daemon, and it stays so until it is started again"+effect
	default:
		p.Text = "no daemon runs" + effect
	}
	if slices.ContainsFunc(f.Closed, func(c Closed) bool { return c.needed() }) {
		p.Text += "; none can start before its directories can be written"
	}
	return p
}

func checkConfig(_ context.Context, f *Facts) []Finding {
	if f.ConfigErr != nil {
		return []Finding{{ID: "config.broken", Severity: Problem, Command: edit(f.Places.ConfigFile), Evidence: f.ConfigErr.Error(),
			Text: "the configuration does not load; the daemon keeps its last good one: " + f.ConfigErr.Error()}}
	}
	var out []Finding
	mode, onDown := f.Config.Mode, f.Config.OnDown
	if f.Status != nil {
		mode, onDown = f.Status.Mode, f.Status.OnDown
	}
	if mode == "observe" {
		out = append(out, Finding{ID: "config.observe", Severity: Note, Command: edit(f.Places.ConfigFile),
			Text: "mode observe is in force: only the floor blocks, everything else is just recorded"})
	}
	if onDown == "allow" {
		out = append(out, Finding{ID: "config.on_down", Severity: Note, Command: edit(f.Places.ConfigFile),
			Text: "on_down is allow: while no daemon runs, calls pass unjudged"})
	}
	if f.Places.TriplineHome != "" {
		out = append(out, Finding{ID: "config.home", Severity: Note, Command: "unset TRIPLINE_HOME", Evidence: f.Places.TriplineHome,
			Text: "TRIPLINE_HOME is set: this is about the install in that directory"})
	}
	return out
}

func checkRules(_ context.Context, f *Facts) []Finding {
	broken := f.RulesErr
	text := ""
	if f.Status != nil && f.Status.RulesError != "" {
		text = f.Status.RulesError
	} else if broken != nil {
		text = broken.Error()
	}
	if text != "" && f.ConfigErr != nil && strings.Contains(text, f.ConfigErr.Error()) {
		return nil // checkConfig says it
	}
	if text != "" {
		return []Finding{{ID: "rules.broken", Severity: Problem, Command: f.editRules(text), Evidence: text,
			Text: "the rules on disk are not in force, the last good ones are: " + text}}
	}
	if f.Status == nil || len(f.Status.Loosening) == 0 {
		return nil
	}
	return []Finding{{ID: "rules.loosening", Severity: Warning, Command: f.Self + " rules reload --dry-run",
		Text:     fmt.Sprintf("%s on disk would loosen the rules and %s for a person", words.Count(len(f.Status.Loosening), "change"), verb(len(f.Status.Loosening), "waits", "wait")),
		Evidence: strings.Join(f.Status.Loosening, "; ")}}
}

// editRules opens the file that an error is about, if it says which.
func (f *Facts) editRules(text string) string {
	for _, name := range names(f.Places.RulesDir) {
		if path := filepath.Join(f.Places.RulesDir, name); strings.Contains(text, path) {
			return edit(path)
		}
	}
	if f.ConfigErr != nil || strings.Contains(text, f.Places.ConfigFile) {
		return edit(f.Places.ConfigFile)
	}
	return f.Self + " rules reload --dry-run"
}

func checkApprovals(_ context.Context, f *Facts) []Finding {
	if f.Status == nil || f.Status.Pending == 0 {
		return nil
	}
	text := fmt.Sprintf("%s %s for a person", words.Count(f.Status.Pending, "approval"), verb(f.Status.Pending, "waits", "wait"))
	if at := f.OldestWaiting(); !at.IsZero() {
		text += ", the oldest for " + Ago(f.Now.Sub(at))
	}
	return []Finding{{ID: "approvals.waiting", Severity: Note, Text: text, Command: f.Self + " approvals list"}}
}

// OldestWaiting is when the oldest approval that waits was asked for; zero if none is known.
func (f *Facts) OldestWaiting() (at time.Time) {
	for _, a := range f.Waiting {
		if at.IsZero() || a.Requested.Before(at) {
			at = a.Requested
		}
	}
	return at
}

func checkAlarms(_ context.Context, f *Facts) []Finding {
	if f.Status == nil {
		return nil
	}
	var out []Finding
	for i, text := range f.Status.Alarms {
		if i == maxListed {
			out = append(out, Finding{ID: "alarms.more", Severity: Problem, Text: "and " + words.Count(len(f.Status.Alarms)-i, "more alarm"), Command: f.Self + " status -o json"})
			break
		}
		out = append(out, Finding{ID: "alarms.standing", Severity: Problem, Text: "alarm: " + AlarmText(text, f.Now), Command: f.Self + " " + alarmEvents(text)})
	}
	return out
}

// alarmText is how the daemon words an alarm that has a record: its kind, a place, the time.
var alarmText = regexp.MustCompile(`^((?:tamper|daemon|config)\.[a-z-]+) (?:.* )?\((\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)\)$`)

// AlarmText is an alarm for people: its time is that of now's zone, without the day where that is today's. An alarm without a time, or
// with one that is none, stays as it is.
func AlarmText(text string, now time.Time) string {
	m := alarmText.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	t, err := time.Parse(time.RFC3339, m[2])
	if err != nil {
		return text
	}
	layout := time.DateTime
	if t = t.In(now.Location()); t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		layout = time.TimeOnly
	}
	return strings.TrimSuffix(text, m[2]+")") + t.Format(layout) + ")"
}

// alarmEvents is the command that shows the record of an alarm, which may be of another day than today.
func alarmEvents(text string) string {
	if m := alarmText.FindStringSubmatch(text); m != nil {
		return "events --kind " + m[1] + " --since " + m[2]
	}
	if strings.Contains(text, "audit log") || strings.Contains(text, "recorded") {
		return "events --kind daemon --since 7d"
	}
	return "events --kind tamper --since 7d"
}

// maxListed bounds what one check lists of a kind.
const maxListed = 5

func checkMetrics(_ context.Context, f *Facts) []Finding {
	if f.Status == nil || f.Status.MetricsAddr != "" || !f.PortTaken || f.ConfigErr != nil { // a broken file does not say which port
		return nil
	}
	mend := edit(f.Places.ConfigFile) + " && " + f.Self + " restart"
	return []Finding{{ID: "metrics.port", Severity: Warning, Command: mend,
		Text:     "another program answers on " + f.Listen + ", so there are no metrics; give metrics.listen another port",
		Evidence: "metrics.listen: " + f.Listen}}
}

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}

// Ago is a span in words of at most two units: 12s, 5m, 3h 5m, 4d. Negative spans are 0s.
func Ago(d time.Duration) string {
	const day = 24 * time.Hour
	switch d = max(d, 0); {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%dh", d/time.Hour) + unlessZero(" %dm", d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd", d/day) + unlessZero(" %dh", d%day/time.Hour)
}

func unlessZero(format string, n time.Duration) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, int64(n))
}
