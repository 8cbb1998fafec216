// SPDX-License-Identifier: Apache-2.0

package ci

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// finishSpan is the longest time from the word that a finish takes the hooks out to the end of the daemon that it stops.
const finishSpan = 2 * time.Minute

// Guard is what the log tells of the guard itself: what it began with, whether it was ever away, and whether a finish ended it. The
// job's file tells the same and is worth nothing here, since the agent's user can write it; so can it the log, but not without the
// daemon or the daemon's key.
type Guard struct {
	Started               time.Time // of the first daemon; zero = the log shows none
	Version               string
	Mode, Profile, OnDown string // as it began; OnDown is "" if the log does not tell
	LastMode, LastProfile string // as it ended

	Wired     string    // the settings file that was wired first, "" = none
	wiredHash string    // of that path, if it must not stand in the log
	Agent     string    // whose file that is
	Running   bool      // the log does not show the end of the last daemon
	Ended     time.Time // of the last daemon; zero while Running
	Died      bool      // a daemon was followed by another one and its end is not in the log
	Away      bool      // one was stopped and another one started while the agent was wired

	out      time.Time // when the hooks were said to be taken out; zero while they are in
	finished bool
}

// add takes up the next record of the log.
func (g *Guard) add(r *record.Record) {
	d := r.Detail
	switch r.Kind {
	case record.DaemonStart:
		if g.Started.IsZero() {
			g.Started, g.Version, g.Mode, g.Profile, g.OnDown = r.Time, clip(d["version"]), clip(d["mode"]), clip(d["profile"]), clip(d["on_down"])
		}
		g.Died = g.Died || g.Running
		g.Away = g.Away || !g.Running && g.Wired != ""
		g.Running, g.Ended = true, time.Time{}
		g.finished, g.out = false, time.Time{} // a finish ends the daemon that it told
		g.LastMode, g.LastProfile = clip(d["mode"]), clip(d["profile"])
	case record.DaemonStop:
		g.Running, g.Ended = false, r.Time
		g.finished = !g.out.IsZero() && r.Time.Sub(g.out) <= finishSpan
	case record.ConfigRules:
		g.LastMode, g.LastProfile = clip(d["mode"]), clip(d["profile"])
	case record.ConfigSettings:
		if r.Source == "control" && d["announced"] == "1" {
			g.announced(r)
		}
	}
}

// announced takes up the word of a person, or of whoever spoke as one, that a settings file is about to be written.
func (g *Guard) announced(r *record.Record) {
	path, hash := r.Detail["path"], r.Detail["path_sha256"]
	install := r.Detail["action"] == "install"
	if g.Wired == "" && install {
		g.Wired, g.wiredHash, g.Agent = path, hash, clip(r.Agent)
	}
	if path != g.Wired || hash != g.wiredHash {
		return
	}
	if g.out = r.Time; install {
		g.out = time.Time{}
	}
}

// Finished is when a finish ended the guard, as far as the log can prove that: it had the hooks taken out and stopped the daemon at
// once. Zero if it does not.
func (g *Guard) Finished() time.Time {
	if g.finished {
		return g.out
	}
	return time.Time{}
}

// IsWired reports whether path is the file that was wired.
func (g *Guard) IsWired(path string) bool {
	if g.wiredHash == "" {
		return g.Wired != "" && path == g.Wired
	}
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:]) == g.wiredHash
}

// WiredPath is the file that was wired; "" if there is none or its path is not in the log.
func (g *Guard) WiredPath() string {
	if g.wiredHash != "" {
		return ""
	}
	return g.Wired
}

// Differs names what a job's file tells otherwise than the log.
func (g *Guard) Differs(j *Job) (names []string) {
	differs := func(name string, other bool) {
		if other {
			names = append(names, name)
		}
	}
	if g.Started.IsZero() {
		return nil // nothing to compare with; that is told elsewhere
	}
	differs("mode", j.Mode != g.Mode)
	differs("profile", j.Profile != g.Profile)
	differs("on_down", g.OnDown != "" && j.OnDown != g.OnDown)
	if g.Wired != "" {
		differs("settings", !g.IsWired(j.Settings))
		differs("agent", j.Agent != g.Agent)
	}
	return names
}

// End is what a finish found out itself, beside the log.
type End struct {
	Began    time.Time // this finish
	Answered bool      // the daemon did
	AsPut    bool      // the hooks were as ci start puts them, in the file that the job's file names
	Key      string    // --key, "" = not given
}

// Judge says how the guard did. The log was read to its end, and no daemon runs any more.
func (r *Report) Judge(e End) {
	g, j := &r.Guard, r.Job
	over := !g.Ended.IsZero() && g.Ended.Before(e.Began) // it had ended when this finish came
	if over {
		r.Before = g.Finished()
	}
	before := !r.Before.IsZero()
	r.Away = g.Away || over && !before
	r.Died = j.Died || g.Died || g.Running || !e.Answered && !before && !r.Away
	r.Altered = j.Altered || !e.AsPut && !before || !g.Started.IsZero() && g.Wired == ""
	r.Claimed = !j.Finished.IsZero() && !before
	r.Alone = e.Key == ""
	if r.Forged = g.Differs(j); e.Key != "" && j.Key != e.Key {
		r.Forged = append(r.Forged, "key")
	}
	if path := g.WiredPath(); path != "" {
		r.Settings = path
	}
}
