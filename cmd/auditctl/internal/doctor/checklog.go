// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
)

// Bounds of what is worth saying about room and time.
const (
	roomProblem   = 64 << 20
	roomWarning   = 1 << 30
	verifyEvery   = 7 * 24 * time.Hour
	clockPatience = 2 * time.Minute
)

func checkLog(_ context.Context, f *Facts) []Finding {
	var out []Finding
	if f.Disk.Total > 0 && f.Disk.Free < roomWarning {
		p := Finding{ID: "log.room", Severity: Warning, Command: "df -h " + words.Shell(f.Disk.Path),
			Text:     fmt.Sprintf("only %s are free where the log is; when it is full, every guarded call is denied", Bytes(f.Disk.Free)),
			Evidence: f.Disk.Path}
		if f.Disk.Free < roomProblem {
			p.Severity = Problem
		}
		out = append(out, p)
	}
	if st := f.Status; st != nil && st.Size > 0 {
		checked := st.Started
		if st.Verified != nil {
			checked = st.Verified.At
		}
		if f.Now.Sub(checked) > verifyEvery {
			out = append(out, Finding{ID: "log.unverified", Severity: Note, Command: f.Self + " verify",
				Text: "the log was not verified for " + Ago(f.Now.Sub(checked))})
		}
	}
	return out
}

func checkDisk(_ context.Context, f *Facts) []Finding {
	p := Finding{ID: "disk.kind", Severity: Warning, Evidence: f.Disk.Path + " is on " + f.Disk.Kind,
		Command: "XDG_STATE_HOME=/path/on/a/local/disk " + f.Self + " restart"}
	switch f.Disk.Kind {
	case "tmpfs", "ramfs":
		p.Text = "the log is in memory (" + f.Disk.Kind + ") and dies at the next reboot"
	case "nfs", "smb", "smbfs", "9p", "afs", "ceph", "webdav", "afpfs":
		p.Text = "the log is on a network file system (" + f.Disk.Kind + "), where locks and memory maps cannot be relied upon"
	case "fuse", "macfuse":
		p.Severity, p.Text = Note, "the log is on a FUSE file system: make sure that it is a local one that keeps what is synced"
	default:
		return nil
	}
	return []Finding{p}
}

func checkClock(_ context.Context, f *Facts) []Finding {
	newest, what := f.Log.Last, "the log's newest file"
	later := func(t time.Time, name string) {
		if t.After(newest) {
			newest, what = t, name
		}
	}
	if st := f.Status; st != nil {
		later(st.Started, "the daemon's start")
		for _, a := range st.Agents {
			if a.LastEvent != nil {
				later(*a.LastEvent, "the last event of "+a.Agent)
			}
		}
	}
	if day, err := time.Parse(time.DateOnly, f.Log.Day); err == nil && day.After(f.Now) {
		later(day, "the newest day in the log")
	}
	ahead := newest.Sub(f.Now)
	if ahead <= clockPatience {
		return nil
	}
	return []Finding{{ID: "clock.behind", Severity: Problem, Command: "date -u",
		Text:     fmt.Sprintf("%s lies %s in the future: the clock was or is wrong; set it before the log goes on", what, Ago(ahead)),
		Evidence: newest.UTC().Format(time.RFC3339)}}
}

func checkSpool(_ context.Context, f *Facts) []Finding {
	if f.Spooled == 0 {
		return nil
	}
	p := Finding{ID: "spool.pending", Severity: Note, Evidence: f.Places.SpoolDir, Command: f.Self + " events",
		Text: words.Count(f.Spooled, "event") + " that came while no daemon ran " + verb(f.Spooled, "waits", "wait") + " in the spool; the daemon takes them in within a minute"}
	if f.Status == nil {
		p.Severity, p.Command = Warning, f.Self+" start"
		p.Text = words.Count(f.Spooled, "event") + " " + verb(f.Spooled, "waits", "wait") + " in the spool for a daemon to record " + verb(f.Spooled, "it", "them")
	}
	return []Finding{p}
}

// Bytes is a number of bytes for people: 512 B, 12.3 MB, 120 GB.
func Bytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", max(n, 0))
	}
	v := float64(n)
	for _, unit := range []string{"kB", "MB", "GB", "TB", "PB"} {
		if v /= 1000; v < 999.5 {
			if v < 99.95 {
				return fmt.Sprintf("%.1f %s", v, unit)
			}
			return fmt.Sprintf("%.0f %s", v, unit)
		}
	}
	return fmt.Sprintf("%.0f EB", v/1000)
}
