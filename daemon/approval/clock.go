// SPDX-License-Identifier: Apache-2.0

package approval

import "time"

// instant is one reading of both clocks.
type instant struct {
	wall time.Time
	boot time.Duration
	id   string // of the boot that boot counts from
}

// deadline is a point in time on both clocks. It survives restarts; its boot clock counts only within the same boot.
type deadline struct {
	Set    time.Time     `json:"set"`
	Wall   time.Time     `json:"wall"`
	Boot   time.Duration `json:"boot"`
	BootID string        `json:"boot_id"`
}

// slack is how far the wall clock may have been set back across a reboot before a deadline counts as passed.
const slack = 5 * time.Minute

func (t instant) in(d time.Duration) deadline {
	return deadline{Set: t.wall, Wall: t.wall.Add(d), Boot: t.boot + d, BootID: t.id}
}

// passed reports whether either clock is at or past d. After a reboot only the wall clock is left; when it shows a time
// before d was set, it cannot be believed, and d has passed.
func (d deadline) passed(t instant) bool {
	if d.Wall.IsZero() || !t.wall.Before(d.Wall) {
		return true
	}
	if d.BootID == t.id {
		return t.boot >= d.Boot
	}
	return t.wall.Before(d.Set.Add(-slack))
}

// earlier returns the deadline that passes first on the wall clock.
func earlier(a, b deadline) deadline {
	if b.Wall.Before(a.Wall) {
		return b
	}
	return a
}

func (g *Gate) now() instant {
	return instant{wall: g.o.Now().UTC().Round(0), boot: g.o.Boot(), id: g.bootID}
}
