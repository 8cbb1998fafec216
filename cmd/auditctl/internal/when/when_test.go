// SPDX-License-Identifier: Apache-2.0

package when

import (
	"errors"
	"testing"
	"time"
	_ "time/tzdata" // the tests name zones, also on machines without zone files
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	loc, err := time.LoadLocation(name)
	if err != nil {
		t.Fatalf("time zone data: %v", err)
	}
	return loc
}

var words = []struct{ text, from, to string }{
	{"today", "2026-11-26 00:00", "2026-11-27 00:00"},
	{"yesterday", "2026-11-25 00:00", "2026-11-26 00:00"},
	{"Tuesday", "2026-11-24 00:00", "2026-11-25 00:00"},
	{"thursday", "2026-11-26 00:00", "2026-11-27 00:00"},
	{"last thursday", "2026-11-19 00:00", "2026-11-20 00:00"},
	{"last friday", "2026-11-20 00:00", "2026-11-21 00:00"},
	{"  LAST   Friday ", "2026-11-20 00:00", "2026-11-21 00:00"},
	{"yesterday 14:00", "2026-11-25 14:00", "2026-11-25 15:00"},
	{"yesterday at 9:05", "2026-11-25 09:05", "2026-11-25 10:05"},
	{"tuesday morning", "2026-11-24 06:00", "2026-11-24 12:00"},
	{"tuesday evening", "2026-11-24 18:00", "2026-11-25 00:00"},
	{"14:00", "2026-11-26 14:00", "2026-11-26 15:00"},
	{"2h", "2026-11-26 13:30", "2026-11-26 15:30"},
	{"90m ago", "2026-11-26 14:00", "2026-11-26 15:30"},
	{"3 days ago", "2026-11-23 15:30", "2026-11-26 15:30"},
	{"1w", "2026-11-19 15:30", "2026-11-26 15:30"},
	{"1y", "2025-11-26 15:30", "2026-11-26 15:30"},
	{"2 months ago", "2026-09-26 15:30", "2026-11-26 15:30"},
	{"3m", "2026-11-26 15:27", "2026-11-26 15:30"},
	{"last week", "2026-11-16 00:00", "2026-11-23 00:00"},
	{"this week", "2026-11-23 00:00", "2026-11-30 00:00"},
	{"last month", "2026-10-01 00:00", "2026-11-01 00:00"},
	{"2026-11-24", "2026-11-24 00:00", "2026-11-25 00:00"},
	{"2026-11-24 09:30", "2026-11-24 09:30", "2026-11-24 10:30"},
	{"2026-11-24T09:30:00+01:00", "2026-11-24 09:30", "2026-11-24 10:30"},
	{"nov 24", "2026-11-24 00:00", "2026-11-25 00:00"},
	{"24 november", "2026-11-24 00:00", "2026-11-25 00:00"},
	{"dec 24", "2025-12-24 00:00", "2025-12-25 00:00"},
	{"feb 29", "2024-02-29 00:00", "2024-03-01 00:00"},
}

func TestTimeWordsNameRangesInThePast(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 15, 30, 0, 0, zone(t, "Europe/Berlin")) // a Thursday
	for _, w := range words {
		r, err := Parse(w.text, now)
		if err != nil {
			t.Errorf("%q: %v", w.text, err)
			continue
		}
		const f = "2006-01-02 15:04"
		if r.From.Format(f) != w.from || r.To.Format(f) != w.to {
			t.Errorf("%q = [%s, %s), want [%s, %s)", w.text, r.From.Format(f), r.To.Format(f), w.from, w.to)
		}
	}
}

func TestUnknownWordsAreErrorsAndNeverNow(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", " ", "garbage", "now", "next tuesday", "tomorrow", "tuesday garbage", "2026-13-01", "2026-02-30", "25:00",
		"yesterday 24:01", "h", "-2h", "2h2", "99999999h", "last", "last last friday", "feb 30", "tuesday\x00", "\u202e2h"} {
		r, err := Parse(text, time.Now())
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%q = %v, %v; want an *Error", text, r, err)
		}
	}
}

func TestDaysOfClockChangesHave23And25Hours(t *testing.T) {
	t.Parallel()
	loc := zone(t, "Europe/Berlin")
	for _, c := range []struct {
		day   string
		hours float64
	}{{"2026-03-29", 23}, {"2026-10-25", 25}, {"2026-10-26", 24}} {
		r, err := Parse(c.day, time.Date(2026, 11, 26, 15, 30, 0, 0, loc))
		if err != nil || r.To.Sub(r.From).Hours() != c.hours {
			t.Errorf("%s: %v hours, %v; want %v", c.day, r.To.Sub(r.From).Hours(), err, c.hours)
		}
	}
	// "yesterday" on the day after a change is the short day, and "1d" is a calendar day.
	r, _ := Parse("yesterday", time.Date(2026, 3, 30, 1, 0, 0, 0, loc))
	if r.To.Sub(r.From) != 23*time.Hour {
		t.Errorf("yesterday after the change to summer time lasts %v", r.To.Sub(r.From))
	}
	r, _ = Parse("1d", time.Date(2026, 3, 29, 12, 0, 0, 0, loc))
	if r.To.Sub(r.From) != 23*time.Hour {
		t.Errorf("1d across the change to summer time lasts %v", r.To.Sub(r.From))
	}
}

func TestEndWordsMeanTheEndOfAPeriodAndTheStartOfAnInstant(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 26, 15, 30, 0, 0, time.UTC)
	for text, want := range map[string]string{"tuesday": "2026-11-25 00:00", "yesterday 14:00": "2026-11-25 14:00", "2h": "2026-11-26 13:30"} {
		r, err := Parse(text, now)
		if err != nil || r.Until().Format("2006-01-02 15:04") != want {
			t.Errorf("until %q = %v (%v), want %s", text, r.Until(), err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, w := range words {
		f.Add(w.text, int64(1795703400), "Europe/Berlin")
	}
	f.Add("last sunday", int64(1774746000), "Asia/Kathmandu")
	f.Fuzz(func(t *testing.T, text string, unix int64, name string) {
		loc, err := time.LoadLocation(name)
		if err != nil || unix < 0 || unix > 1<<33 {
			t.Skip()
		}
		now := time.Unix(unix, 0).In(loc)
		r, err := Parse(text, now)
		if err != nil {
			return
		}
		if !r.Instant && !r.From.Before(r.To) {
			t.Fatalf("%q at %v: empty period [%v, %v)", text, now, r.From, r.To)
		}
		if r.To.Before(r.From) {
			t.Fatalf("%q at %v: backward range", text, now)
		}
	})
}
