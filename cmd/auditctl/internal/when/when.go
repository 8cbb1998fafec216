// SPDX-License-Identifier: Apache-2.0

// Package when reads the time words that people use about the past ("tuesday", "yesterday 14:00", "2h", "2026-11-24") as
// half-open ranges [From, To) in one time zone. A text that it does not know is an error, never "now".
package when

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Range is a half-open range of time. Instant is set when the words named a point ("yesterday 14:00", "2h ago"): as the end
// of a range, such words mean From; the words for a period ("tuesday") mean To.
type Range struct {
	From, To time.Time
	Instant  bool
}

// Since is the range's meaning as a lower bound.
func (r Range) Since() time.Time { return r.From }

// Until is the range's meaning as an (exclusive) upper bound.
func (r Range) Until() time.Time {
	if r.Instant {
		return r.From
	}
	return r.To
}

// Examples lists what Parse understands, for help texts and errors.
const Examples = `today, yesterday, tuesday, "last friday", "yesterday 14:00", "monday morning", 2h, 3d, "last week", "this month", "nov 24", 2026-11-24, "2026-11-24 09:30", 2026-11-24T09:30:00Z`

// An Error is an unknown text.
type Error struct{ Text string }

func (e *Error) Error() string {
	return fmt.Sprintf("unknown time %q; try one of: %s", e.Text, Examples)
}

var (
	ago   = regexp.MustCompile(`^(\d{1,6})\s*(s|sec|secs|second|seconds|m|min|mins|minute|minutes|h|hour|hours|d|day|days|w|week|weeks|months?|y|years?)(\s+ago)?$`)
	clock = regexp.MustCompile(`^([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?$`)
	isoD  = regexp.MustCompile(`^(\d{4})-(\d{2})-(\d{2})$`)
	spans = regexp.MustCompile(`^(last|past|this)\s+(hour|day|week|month|year)$`)
	dayNo = regexp.MustCompile(`^([0-3]?\d)(?:st|nd|rd|th)?$`)
)

var weekdays = map[string]time.Weekday{
	"sunday": time.Sunday, "sun": time.Sunday, "monday": time.Monday, "mon": time.Monday, "tuesday": time.Tuesday, "tue": time.Tuesday,
	"tues": time.Tuesday, "wednesday": time.Wednesday, "wed": time.Wednesday, "thursday": time.Thursday, "thu": time.Thursday,
	"thur": time.Thursday, "thurs": time.Thursday, "friday": time.Friday, "fri": time.Friday, "saturday": time.Saturday, "sat": time.Saturday,
}

var months = map[string]time.Month{
	"jan": 1, "january": 1, "feb": 2, "february": 2, "mar": 3, "march": 3, "apr": 4, "april": 4, "may": 5, "jun": 6, "june": 6, "jul": 7,
	"july": 7, "aug": 8, "august": 8, "sep": 9, "sept": 9, "september": 9, "oct": 10, "october": 10, "nov": 11, "november": 11, "dec": 12,
	"december": 12,
}

// parts of a day: hours from and to, counted from the day's midnight.
var dayParts = map[string][2]int{"morning": {6, 12}, "noon": {12, 13}, "afternoon": {12, 18}, "evening": {18, 24}, "night": {18, 30}}

// Parse reads text as seen at now; the zone is now's. Weekdays and dates without a year are the most recent ones: "tuesday"
// on a Tuesday is today, "last tuesday" is then the one a week ago.
func Parse(text string, now time.Time) (Range, error) {
	t := strings.Join(strings.Fields(strings.ToLower(text)), " ")
	if at, ok := timestamp(strings.TrimSpace(text), now.Location()); ok {
		return Range{From: at, To: at.Add(time.Hour), Instant: true}, nil
	}
	if m := ago.FindStringSubmatch(t); m != nil {
		return relative(m[1], m[2], now), nil
	}
	if m := spans.FindStringSubmatch(t); m != nil {
		return span(m[1], m[2], now), nil
	}
	day, rest, ok := leadingDay(t, now)
	if !ok {
		return Range{}, &Error{Text: text}
	}
	r, ok := within(day, rest)
	if !ok {
		return Range{}, &Error{Text: text}
	}
	return r, nil
}

// timestamp reads the machine forms that name an instant.
func timestamp(s string, loc *time.Location) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, s, loc); err == nil {
			return at.In(loc), true
		}
	}
	return time.Time{}, false
}

func relative(n, unit string, now time.Time) Range {
	k, _ := strconv.Atoi(n) // at most six digits
	from := now
	switch unit[0] {
	case 'y':
		from = now.AddDate(-min(k, 10_000), 0, 0)
	case 's':
		from = now.Add(-time.Duration(k) * time.Second)
	case 'm':
		from = now.Add(-time.Duration(k) * time.Minute)
		if strings.HasPrefix(unit, "mo") {
			from = now.AddDate(0, -min(k, 120_000), 0)
		}
	case 'h':
		from = now.Add(-time.Duration(k) * time.Hour)
	case 'd':
		from = now.AddDate(0, 0, -k)
	case 'w':
		from = now.AddDate(0, 0, -7*k)
	}
	return Range{From: from, To: now, Instant: true}
}

func span(which, unit string, now time.Time) Range {
	y, m, d := now.Date()
	at := func(y int, m time.Month, d, h int) time.Time { return time.Date(y, m, d, h, 0, 0, 0, now.Location()) }
	back := 0
	if which != "this" {
		back = 1
	}
	switch unit {
	case "hour":
		start := now.Truncate(time.Hour).Add(-time.Duration(back) * time.Hour)
		return Range{From: start, To: start.Add(time.Hour)}
	case "day":
		return Range{From: at(y, m, d-back, 0), To: at(y, m, d-back+1, 0)}
	case "week":
		monday := d - (int(now.Weekday())+6)%7 - 7*back
		return Range{From: at(y, m, monday, 0), To: at(y, m, monday+7, 0)}
	case "month":
		return Range{From: at(y, m-time.Month(back), 1, 0), To: at(y, m-time.Month(back)+1, 1, 0)}
	}
	return Range{From: at(y-back, 1, 1, 0), To: at(y-back+1, 1, 1, 0)}
}

// leadingDay reads the words that name a day and returns that day's midnight and the words after it.
func leadingDay(t string, now time.Time) (time.Time, string, bool) {
	y, m, d := now.Date()
	midnight := func(y int, m time.Month, d int) time.Time { return time.Date(y, m, d, 0, 0, 0, 0, now.Location()) }
	words := strings.Split(t, " ")
	rest := func(n int) string { return strings.Join(words[n:], " ") }
	switch words[0] {
	case "today":
		return midnight(y, m, d), rest(1), true
	case "yesterday":
		return midnight(y, m, d-1), rest(1), true
	}
	if iso := isoD.FindStringSubmatch(words[0]); iso != nil {
		yy, _ := strconv.Atoi(iso[1])
		mm, _ := strconv.Atoi(iso[2])
		dd, _ := strconv.Atoi(iso[3])
		day := midnight(yy, time.Month(mm), dd)
		if day.Year() != yy || int(day.Month()) != mm || day.Day() != dd {
			return time.Time{}, "", false
		}
		return day, rest(1), true
	}
	n, before := 0, false
	if words[0] == "last" || words[0] == "this" || words[0] == "on" {
		n, before = 1, words[0] == "last"
	}
	if len(words) <= n {
		return time.Time{}, "", false
	}
	if wd, ok := weekdays[words[n]]; ok {
		back := (int(now.Weekday()) - int(wd) + 7) % 7
		if before && back == 0 {
			back = 7
		}
		return midnight(y, m, d-back), rest(n + 1), true
	}
	if n == 0 && len(words) >= 2 {
		if day, ok := monthDay(words[0], words[1], now); ok {
			return day, rest(2), true
		}
	}
	if clock.MatchString(words[0]) { // a bare time is today's
		return midnight(y, m, d), t, true
	}
	return time.Time{}, "", false
}

// monthDay reads "nov 24" and "24 nov" as the most recent such day.
func monthDay(a, b string, now time.Time) (time.Time, bool) {
	mo, ok := months[a]
	no := dayNo.FindStringSubmatch(b)
	if !ok {
		mo, ok = months[b]
		no = dayNo.FindStringSubmatch(a)
	}
	if !ok || no == nil {
		return time.Time{}, false
	}
	dd, _ := strconv.Atoi(no[1])
	for y := now.Year(); y > now.Year()-9; y-- { // 29 February may be years back
		day := time.Date(y, mo, dd, 0, 0, 0, 0, now.Location())
		if day.Month() == mo && !day.After(now) {
			return day, true
		}
	}
	return time.Time{}, false
}

// within narrows a day by what follows its name.
func within(day time.Time, rest string) (Range, bool) {
	at := func(h, m, s int) time.Time {
		return time.Date(day.Year(), day.Month(), day.Day(), h, m, s, 0, day.Location())
	}
	rest = strings.TrimPrefix(rest, "at ")
	if rest == "" {
		return Range{From: at(0, 0, 0), To: at(24, 0, 0)}, true
	}
	if p, ok := dayParts[rest]; ok {
		return Range{From: at(p[0], 0, 0), To: at(p[1], 0, 0)}, true
	}
	c := clock.FindStringSubmatch(rest)
	if c == nil {
		return Range{}, false
	}
	h, _ := strconv.Atoi(c[1])
	m, _ := strconv.Atoi(c[2])
	s, _ := strconv.Atoi("0" + c[3])
	from := at(h, m, s)
	return Range{From: from, To: from.Add(time.Hour), Instant: true}, true
}
