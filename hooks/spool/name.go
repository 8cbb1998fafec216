// SPDX-License-Identifier: Apache-2.0

package spool

import "strconv"

const timeDigits = 19 // Unix nanoseconds until the year 2286

// entryName returns the name of an entry without its ending.
func entryName(unixNano int64, pid int, random uint64, size int) string {
	b := make([]byte, 0, 80)
	t := strconv.FormatInt(max(unixNano, 0), 10)
	for range timeDigits - len(t) {
		b = append(b, '0')
	}
	b = append(b, t...)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(pid), 10)
	b = append(b, '-')
	b = strconv.AppendUint(b, random, 16)
	b = append(b, '-')
	b = strconv.AppendInt(b, int64(size), 10)
	return string(b)
}

// ParseName takes the name of a file in a spool apart. ok reports that it is the name of an entry: size is what it says about the
// file's length, and tmp that the entry was still being written.
func ParseName(name string) (size int64, tmp, ok bool) {
	const digits, hex = "0123456789", "0123456789abcdef"
	if len(name) > 80 {
		return 0, false, false
	}
	n, rest := span(name, digits)
	if n != timeDigits || rest == "" || rest[0] != '-' {
		return 0, false, false
	}
	for _, set := range [...]string{digits, hex} {
		n, rest = span(rest[1:], set)
		if n == 0 || rest == "" || rest[0] != '-' {
			return 0, false, false
		}
	}
	rest = rest[1:]
	n, end := span(rest, digits)
	size, err := strconv.ParseInt(rest[:n], 10, 64)
	if err != nil || size > MaxEntry || end != ".evt" && end != ".tmp" {
		return 0, false, false
	}
	return size, end == ".tmp", true
}

// span returns how many leading bytes of s are in set, and what follows them.
func span(s, set string) (n int, rest string) {
	for n < len(s) && has(set, s[n]) {
		n++
	}
	return n, s[n:]
}

func has(set string, c byte) bool {
	for i := range len(set) {
		if set[i] == c {
			return true
		}
	}
	return false
}
