// SPDX-License-Identifier: Apache-2.0

package install

import (
	"fmt"
	"strings"
)

// context is how many unchanged lines a hunk shows on either side.
const context = 3

// maxTable bounds the comparison of lines; beyond it, all that lies between the first and the last difference is shown as
// replaced.
const maxTable = 4 << 20

// edit is one line of a diff: ' ', '-' or '+' and the text without its end of line.
type edit struct {
	op   byte
	text string
}

// unified renders the change from old to new as a unified diff with one file header. nil is no file.
func unified(path string, old, new []byte) string {
	from, to := path, path
	if old == nil {
		from = "/dev/null"
	}
	if new == nil {
		to = "/dev/null"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", from, to)
	edits := compare(lines(old), lines(new))
	a, b := 1, 1 // line numbers of edits[i]
	for i := 0; i < len(edits); {
		start, end := hunk(edits, i)
		if start == end {
			break
		}
		for ; i < start; i++ { // unchanged
			a, b = a+1, b+1
		}
		na, nb := count(edits[start:end])
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", span(a, na), span(b, nb))
		for ; i < end; i++ {
			e := edits[i]
			text, whole := strings.CutSuffix(e.text, "\n")
			fmt.Fprintf(&out, "%c%s\n", e.op, text)
			if !whole {
				out.WriteString("\\ No newline at end of file\n")
			}
		}
		a, b = a+na, b+nb
	}
	return out.String()
}

// hunk returns the next stretch of edits from i on with its context; start == end if there is none.
func hunk(edits []edit, i int) (start, end int) {
	first := i
	for first < len(edits) && edits[first].op == ' ' {
		first++
	}
	if first == len(edits) {
		return i, i
	}
	last := first
	for n := first; n < len(edits) && n-last <= 2*context; n++ {
		if edits[n].op != ' ' {
			last = n
		}
	}
	return max(i, first-context), min(len(edits), last+1+context)
}

func count(edits []edit) (old, new int) {
	for _, e := range edits {
		if e.op != '+' {
			old++
		}
		if e.op != '-' {
			new++
		}
	}
	return old, new
}

// span is a range of lines as a hunk header gives it.
func span(first, n int) string {
	switch n {
	case 0:
		return fmt.Sprintf("%d,0", first-1)
	case 1:
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, n)
}

// lines splits a text behind each end of line.
func lines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	all := strings.SplitAfter(string(b), "\n")
	if all[len(all)-1] == "" {
		all = all[:len(all)-1]
	}
	return all
}

// compare returns the shortest edits from a to b, by their longest common subsequence.
func compare(a, b []string) []edit {
	var head, tail []edit
	for len(a) > 0 && len(b) > 0 && a[0] == b[0] {
		head = append(head, edit{' ', a[0]})
		a, b = a[1:], b[1:]
	}
	n := 0
	for n < len(a) && n < len(b) && a[len(a)-1-n] == b[len(b)-1-n] {
		n++
	}
	for _, line := range a[len(a)-n:] {
		tail = append(tail, edit{' ', line})
	}
	return append(append(head, middle(a[:len(a)-n], b[:len(b)-n])...), tail...)
}

func middle(a, b []string) []edit {
	var out []edit
	if (len(a)+1)*(len(b)+1) > maxTable {
		for _, line := range a {
			out = append(out, edit{'-', line})
		}
		for _, line := range b {
			out = append(out, edit{'+', line})
		}
		return out
	}
	width := len(b) + 1
	common := make([]int32, (len(a)+1)*width) // common[i*width+j]: of a[i:] and b[j:]
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				common[i*width+j] = common[(i+1)*width+j+1] + 1
			} else {
				common[i*width+j] = max(common[(i+1)*width+j], common[i*width+j+1])
			}
		}
	}
	i, j := 0, 0
	for i < len(a) || j < len(b) {
		switch {
		case i < len(a) && j < len(b) && a[i] == b[j]:
			out = append(out, edit{' ', a[i]})
			i, j = i+1, j+1
		case i < len(a) && (j == len(b) || common[(i+1)*width+j] >= common[i*width+j+1]):
			out = append(out, edit{'-', a[i]})
			i++
		default:
			out = append(out, edit{'+', b[j]})
			j++
		}
	}
	return out
}
