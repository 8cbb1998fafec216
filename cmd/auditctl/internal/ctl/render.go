// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/mattn/go-runewidth"

	"github.com/tripline-sh/tripline/audit/show"
)

// format is a value of -o.
type format string

const (
	formatTable format = "table"
	formatJSON  format = "json"
	formatJSONL format = "jsonl"
	formatCSV   format = "csv"
)

// outputFlag makes -o a flag with a closed list of values.
type outputFlag struct {
	value   format
	allowed []format
}

func newOutput(allowed ...format) *outputFlag {
	return &outputFlag{value: allowed[0], allowed: allowed}
}

func (o *outputFlag) String() string { return string(o.value) }

// Type names the flag's value in help texts.
func (o *outputFlag) Type() string { return o.list("|") }

// Set implements pflag.Value.
func (o *outputFlag) Set(s string) error {
	if !slices.Contains(o.allowed, format(s)) {
		return fmt.Errorf("it is one of %s", o.list(", "))
	}
	o.value = format(s)
	return nil
}

func (o *outputFlag) list(sep string) string {
	names := make([]string, len(o.allowed))
	for i, f := range o.allowed {
		names[i] = string(f)
	}
	return strings.Join(names, sep)
}

// writeJSON writes one value, indented, with hostile runes escaped by the encoder.
func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(&escaping{w})
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// writeJSONL writes one value on one line.
func writeJSONL(w io.Writer, v any) error {
	enc := json.NewEncoder(&escaping{w})
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// escaping replaces what JSON lets through but a terminal must not see (C1 controls, bidi and invisible runes) by \u
// escapes. In encoded JSON such runes stand only inside strings, so that the value stays the same. It expects whole
// encodings in each Write, as json.Encoder gives them.
type escaping struct{ w io.Writer }

func (e *escaping) Write(p []byte) (int, error) {
	var b strings.Builder
	last, changed := 0, false
	s := string(p)
	for i, r := range s {
		if r < 0x7f || show.Visible(r) {
			continue
		}
		changed = true
		b.WriteString(s[last:i])
		if r > 0xffff {
			r1, r2 := (r-0x10000)>>10+0xd800, (r-0x10000)&0x3ff+0xdc00
			fmt.Fprintf(&b, `\u%04x\u%04x`, r1, r2)
		} else {
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		last = i + len(string(r))
	}
	if !changed {
		_, err := e.w.Write(p)
		return len(p), err
	}
	b.WriteString(s[last:])
	_, err := io.WriteString(e.w, b.String())
	return len(p), err
}

// table prints rows below a header, columns aligned; the last column is cut at the terminal's width, if there is one.
// Every cell is made harmless first.
type table struct {
	header []string
	rows   [][]string
	// color, if not nil, wraps a finished cell.
	color func(column int, cell string) string
}

func (t *table) add(cells ...string) {
	for i, c := range cells {
		cells[i] = show.Line(c, 4096)
	}
	t.rows = append(t.rows, cells)
}

func (t *table) print(w io.Writer, width int) error {
	all := append([][]string{t.header}, t.rows...)
	widths := make([]int, len(t.header))
	for _, row := range all {
		for i, c := range row {
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	var b strings.Builder
	for n, row := range all {
		used := 0
		for i, c := range row {
			last := i == len(row)-1
			if last && width > 0 {
				c = runewidth.Truncate(c, max(width-used, 10), "…")
			}
			pad := 0
			if !last {
				pad = widths[i] - runewidth.StringWidth(c) + 2
				used += widths[i] + 2
			}
			if t.color != nil && n > 0 {
				c = t.color(i, c)
			}
			b.WriteString(c)
			b.WriteString(strings.Repeat(" ", pad))
		}
		b.WriteString("\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// writeCSV writes rows for spreadsheets, below the header if there is one: a cell that a spreadsheet would take for a formula gets a quote in front.
func writeCSV(w io.Writer, header []string, rows [][]string) error {
	cw := csv.NewWriter(w)
	if header != nil {
		if err := cw.Write(header); err != nil {
			return err
		}
	}
	for _, row := range rows {
		out := make([]string, len(row))
		for i, c := range row {
			out[i] = show.Line(c, 0)
			if out[i] != "" && strings.ContainsRune("=+-@\t\r", rune(out[i][0])) {
				out[i] = "'" + out[i]
			}
		}
		if err := cw.Write(out); err != nil {
			return err
		}
	}
	cw.Flush()
	return cw.Error()
}

// ANSI colours, used only where Env.color says so.
const (
	red    = "\x1b[31m"
	yellow = "\x1b[33m"
	green  = "\x1b[32m"
	reset  = "\x1b[0m"
)

// writeCSVRow writes one row without a header.
func writeCSVRow(w io.Writer, row []string) error { return writeCSV(w, nil, [][]string{row}) }
