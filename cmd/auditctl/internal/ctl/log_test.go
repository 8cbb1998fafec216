// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/daemon/control"
)

func TestAlarmsBesideAnAnswerHaveTheUsersTime(t *testing.T) {
	t.Parallel()
	var errs bytes.Buffer
	zone := time.FixedZone("", -5*3600)
	a := &app{Env: Env{Err: &errs, Now: func() time.Time { return time.Date(2026, 11, 30, 18, 0, 0, 0, zone) }, Getenv: func(string) string { return "" }, Name: "auditctl", Exe: "auditctl"}}
	a.warn(control.Status{Alarms: []string{"tamper.denied-ran (2026-11-30T20:46:18Z)", "tamper.hooks-removed /s (2026-11-30T01:00:00Z)"}})
	want := "alarm: tamper.denied-ran (15:46:18)\nalarm: tamper.hooks-removed /s (2026-11-29 20:00:00)\n  see auditctl status\n"
	if errs.String() != want {
		t.Errorf("got:\n%swant:\n%s", &errs, want)
	}
}
