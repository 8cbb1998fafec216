// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"strconv"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

var csvHeader = []string{"time", "id", "session", "agent", "tool", "tool_use_id", "verdict", "rule", "who", "outcome", "duration_ms", "cwd", "input", "error"}

func csvRow(c record.Call) []string {
	duration := ""
	if c.DurationMS != nil {
		duration = strconv.FormatInt(*c.DurationMS, 10)
	}
	return []string{c.Time.Format(time.RFC3339Nano), c.ID, c.Session, c.Agent, c.Tool, c.ToolUseID, c.Verdict, c.Rule, c.Who, c.Outcome, duration,
		c.Cwd, string(c.Input), c.Error}
}
