// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// revised is the date of the pages where SOURCE_DATE_EPOCH gives no other: the same source gives the same bytes.
const revised = "2026-11-30"

// manDate is the date of the pages: that of SOURCE_DATE_EPOCH (seconds since 1970) if it is set.
func manDate(epoch string) (string, error) {
	if epoch == "" {
		return revised, nil
	}
	n, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return "", fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	return time.Unix(n, 0).UTC().Format(time.DateOnly), nil
}

// man writes a page for each command.
func man(root *cobra.Command, dir, date string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var failed error
	each(root, func(c *cobra.Command) {
		c.DisableAutoGenTag = true
		name := strings.ReplaceAll(c.CommandPath(), " ", "-")
		var b bytes.Buffer
		header := &doc.GenManHeader{Title: strings.ToUpper(name), Section: "1", Source: "Tripline", Manual: "Tripline", Date: &time.Time{}}
		err := doc.GenMan(c, header, &b)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name+".1"), []byte(clean(b.String(), c, date)), 0o644)
		}
		if failed == nil {
			failed = err
		}
	})
	return failed
}

// clean makes a page of what is rendered: with its date, with a synopsis that tells of commands, and with options as a list, where the
// renderer indents by tabs, which filled text must not hold.
func clean(page string, c *cobra.Command, date string) string {
	page = strings.Replace(page, `"Jan 0001"`, `"`+date+`"`, 1)
	page = strings.Replace(page, `\fB`+c.UseLine()+`\fP`, `\fB`+synopsis(c)+`\fP`, 1)
	var out []string
	for _, line := range strings.Split(page, "\n") {
		text, option := strings.CutPrefix(line, "\t")
		if !option || len(out) == 0 {
			out = append(out, line)
			continue
		}
		at := len(out) - 1 // its name
		name := out[at]
		out = out[:at]
		if at > 0 && out[at-1] == ".PP" {
			out = out[:at-1]
		}
		out = append(out, ".TP", name, text)
	}
	page = strings.Join(out, "\n")
	for strings.Contains(page, "\n\n.") { // each macro makes the space that it needs
		page = strings.ReplaceAll(page, "\n\n.", "\n.")
	}
	return page
}
