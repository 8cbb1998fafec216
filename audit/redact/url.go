// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// maxAuthority bounds how far the user part of a URL is looked for.
const maxAuthority = 512

// urlPassword finds the password of SCHEME://USER:PASSWORD@HOST; i is at the colon of ://.
func (p *pass) urlPassword(i int) (found, bool) {
	if i == 0 || !isAlnum(p.src[i-1]) {
		return found{}, false
	}
	from := i + len("://")
	word := p.src[from:min(len(p.src), from+maxAuthority)]
	if bytes.IndexByte(word, '@') < 0 {
		return found{}, false
	}
	if k := bytes.IndexAny(word, " \t\r\n\"'<>`\\|;"); k >= 0 {
		word = word[:k]
	}
	authority := word
	if k := bytes.IndexAny(word, "/?#"); k >= 0 {
		authority = word[:k]
	}
	at := bytes.LastIndexByte(authority, '@')
	if at < 0 {
		// A password with a slash in it makes what stands before the slash no port.
		colon := bytes.IndexByte(authority, ':')
		if colon < 0 || bytes.HasPrefix(authority, []byte("[")) || allDigits(authority[colon+1:]) {
			return found{}, false
		}
		if at = bytes.LastIndexByte(word, '@'); at < 0 {
			return found{}, false
		}
	}
	user := word[:at]
	colon := bytes.IndexByte(user, ':')
	if colon < 0 {
		if len(user) >= 20 && mixed(user) { // a token in the place of the user
			return found{from, from + at, "url-password"}, true
		}
		return found{}, false
	}
	if value := user[colon+1:]; len(value) == 0 || isReference(value, 0) {
		return found{}, false
	}
	return found{from + colon + 1, from + at, "url-password"}, true
}

func allDigits(b []byte) bool {
	for _, c := range b {
		if !isDigit(c) {
			return false
		}
	}
	return true
}

// mixed reports whether b holds letters and digits and nothing that a name or an address would have.
func mixed(b []byte) bool {
	digit, letter := false, false
	for _, c := range b {
		switch {
		case isDigit(c):
			digit = true
		case isAlpha(c):
			letter = true
		case c != '_' && c != '-':
			return false
		}
	}
	return digit && letter
}
