// SPDX-License-Identifier: Apache-2.0

package spool_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/hooks/spool"
)

func TestPreambleRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range []spool.Meta{
		{Answer: spool.Denied, Fault: spool.Absent},
		{Flags: spool.FlagCut | spool.FlagOpen | spool.FlagSent, Answer: spool.Silent, Fault: spool.Output, Read: 1<<64 - 1},
		{Flags: spool.FlagSent, Answer: spool.Passed, Fault: spool.Absent, Read: 6_000_000},
	} {
		b := spool.AppendPreamble(nil, want)
		if len(b) != spool.PreambleLen {
			t.Errorf("preamble has %d bytes, want %d", len(b), spool.PreambleLen)
		}
		if got, err := spool.ParsePreamble(b); err != nil || got != want {
			t.Errorf("got %+v, %v; want %+v", got, err, want)
		}
	}
}

func TestParsePreambleRefuses(t *testing.T) {
	t.Parallel()
	good := string(spool.AppendPreamble(nil, spool.Meta{Answer: spool.Denied, Fault: spool.Timeout}))
	for name, in := range map[string]string{
		"nothing":             "",
		"one byte too little": good[:len(good)-1],
		"another magic":       "TRPL" + good[4:],
		"another version":     good[:4] + "\x02" + good[5:],
		"an unknown flag":     good[:5] + "\x08" + good[6:],
		"no answer":           good[:6] + "\x00" + good[7:],
		"an unknown answer":   good[:6] + "\x04" + good[7:],
		"no fault":            good[:7] + "\x00" + good[8:],
		"an unknown fault":    good[:7] + "\x0a" + good[8:],
	} {
		if m, err := spool.ParsePreamble([]byte(in)); err == nil {
			t.Errorf("%s was taken for %+v", name, m)
		}
	}
}

func TestParseName(t *testing.T) {
	t.Parallel()
	const stamp = "1796058720123456789"
	for name, want := range map[string]string{
		stamp + "-1-a-0.evt":                            "0 false true",
		stamp + "-4194304-0123456789abcdef-1048576.evt": "1048576 false true",
		stamp + "-1-a-76.tmp":                           "76 true true",
		"":                                              "0 false false",
		"dropped":                                       "0 false false",
		"bad":                                           "0 false false",
		stamp:                                           "0 false false",
		stamp + "-":                                     "0 false false",
		stamp + "-1-a-":                                 "0 false false",
		stamp + "-1-a-1":                                "0 false false",
		stamp + "-1-a-.evt":                             "0 false false",
		stamp + "-1--1.evt":                             "0 false false",
		stamp + "--a-1.evt":                             "0 false false",
		stamp + "-1-A-1.evt":                            "0 false false",
		stamp + "-1-a--1.evt":                           "0 false false",
		stamp + "-1-a-1.evt.evt":                        "0 false false",
		stamp + "-1-a-1.EVT":                            "0 false false",
		stamp + "-1-a-99999999.evt":                     "0 false false",
		stamp + "-1-a-99999999999999999999999999.evt":          "0 false false",
		stamp[1:] + "-1-a-1.evt":                               "0 false false",
		"0" + stamp + "-1-a-1.evt":                             "0 false false",
		"../" + stamp + "-1-a-1.evt":                           "0 false false",
		stamp + "-1-a/../b-1.evt":                              "0 false false",
		stamp + "-" + strings.Repeat("1", 300) + "-a-1.evt":    "0 false false",
		stamp + "-1-a-1.evt\x00":                               "0 false false",
		stamp + "-1-" + strings.Repeat("a", 60) + "-10000.evt": "0 false false",
	} {
		size, tmp, ok := spool.ParseName(name)
		if got := fmt.Sprint(size, tmp, ok); got != want {
			t.Errorf("ParseName(%q) = %s, want %s", name, got, want)
		}
	}
}

func TestEveryFaultHasItsRule(t *testing.T) {
	t.Parallel()
	for f, want := range map[spool.Fault]string{
		spool.Absent: "daemon.unreachable", spool.Unreachable: "daemon.unreachable", spool.Impostor: "daemon.impostor",
		spool.Timeout: "daemon.timeout", spool.Garbled: "daemon.garbled", spool.Input: "hook.input",
		spool.Interrupted: "hook.interrupted", spool.Internal: "hook.internal", spool.Output: "hook.output",
		0: "hook.internal", 200: "hook.internal",
	} {
		if got := f.Rule(); got != want {
			t.Errorf("fault %d has rule %q, want %q", f, got, want)
		}
	}
	for a, want := range map[spool.Answer]string{spool.Denied: "denied", spool.Passed: "passed", spool.Silent: "silent", 0: "unknown"} {
		if got := a.String(); got != want {
			t.Errorf("answer %d is %q, want %q", a, got, want)
		}
	}
}
