// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"cmp"
	"slices"
	"strings"
)

// Near returns those of names that may be meant by a mistyped one, the best first, at most three.
func Near(name string, names []string) []string {
	type scored struct {
		name string
		cost int
	}
	if name = strings.ToLower(name); len(name) > maxIDLen || name == "" {
		return nil
	}
	var out []scored
	for _, n := range slices.Compact(slices.Sorted(slices.Values(names))) {
		most := max(2, len(name)/4)
		_, tail, _ := strings.Cut(n, ".")
		cost := min(distance(name, strings.ToLower(n)), 1+distance(name, strings.ToLower(tail)))
		if len(name) >= 3 && strings.Contains(strings.ToLower(n), name) {
			cost = min(cost, 1)
		}
		if cost <= most {
			out = append(out, scored{n, cost})
		}
	}
	slices.SortStableFunc(out, func(a, b scored) int { return cmp.Compare(a.cost, b.cost) })
	var near []string
	for _, s := range out[:min(len(out), 3)] {
		near = append(near, s.name)
	}
	return near
}

// distance is the number of bytes to insert, delete, change or swap with their neighbour to make a of b.
func distance(a, b string) int {
	if len(a) > maxIDLen || len(b) > maxIDLen {
		return maxIDLen
	}
	var rows [3][]int
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
	}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		older, old, row := rows[(i-1+3)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(old[j]+1, row[j-1]+1, old[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], older[j-2]+1)
			}
		}
	}
	return rows[(len(a)+1)%3][len(b)]
}

// didYouMean ends a message about a name that is not known.
func didYouMean(name string, names []string) string {
	near := Near(name, names)
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, ", ") + "?"
}
