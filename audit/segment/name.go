// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"time"
)

// suffix ends the names of segment files.
const suffix = ".db"

// Name is a segment's file name taken apart: DATE-FIRSTSEQ.db, as in 2026-11-30-000000000001.db.
type Name struct {
	Day   string // UTC, 2026-11-30
	First uint64 // sequence number of the first record
}

// Day returns the UTC day of t as it stands in names.
func Day(t time.Time) string { return t.UTC().Format(time.DateOnly) }

// File returns the file name.
func (n Name) File() string { return fmt.Sprintf("%s-%012d%s", n.Day, n.First, suffix) }

// Origin returns the name as it stands in checkpoints.
func (n Name) Origin() string { return strings.TrimSuffix(n.File(), suffix) }

// ParseName takes a file name apart. Only what File can return is a name.
func ParseName(file string) (Name, bool) {
	const day = len(time.DateOnly)
	if len(file) < day+1+12+len(suffix) || file[day] != '-' || !strings.HasSuffix(file, suffix) {
		return Name{}, false
	}
	first, err := strconv.ParseUint(file[day+1:len(file)-len(suffix)], 10, 63)
	if err != nil || first < 1 {
		return Name{}, false
	}
	if _, err := time.Parse(time.DateOnly, file[:day]); err != nil {
		return Name{}, false
	}
	n := Name{Day: file[:day], First: first}
	return n, n.File() == file
}

// List returns the names of everything in dir that is called like a segment, by first sequence number. It opens nothing.
func List(dir string) ([]Name, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []Name
	for _, e := range entries {
		if n, ok := ParseName(e.Name()); ok {
			names = append(names, n)
		}
	}
	sort.Slice(names, func(i, j int) bool {
		if names[i].First != names[j].First {
			return names[i].First < names[j].First
		}
		return names[i].Day < names[j].Day
	})
	return names, nil
}
