// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// authorization reports whether name is that of a header which carries credentials after a scheme.
func authorization(name []byte) bool {
	return len(name) >= len("authorization") && bytes.EqualFold(name[len(name)-len("authorization"):], []byte("authorization"))
}

// header finds the credentials in the value of an Authorization header: the word after the scheme, or the only word.
func (p *pass) header(v int) (found, bool) {
	v = p.skipSpace(v)
	for v < len(p.src) && (p.src[v] == '\\' || isQuote(p.src[v])) {
		v++
	}
	end := v
	for end < len(p.src) && (isWord(p.src[end])) {
		end++
	}
	if word := p.skipSpace(end); end > v && word > end && scheme(p.src[v:end]) {
		return p.bare(word, "authorization", false)
	}
	return p.bare(v, "authorization", true)
}

func scheme(word []byte) bool {
	for _, s := range []string{"bearer", "basic", "token", "digest", "negotiate", "apikey", "key", "hmac", "oauth"} {
		if bytes.EqualFold(word, []byte(s)) {
			return true
		}
	}
	return false
}

// bearer finds "Bearer TOKEN" wherever it stands.
func (p *pass) bearer(i int) (found, bool) {
	if !p.hasFold(i, "bearer ") || !p.border(i) {
		return found{}, false
	}
	from := p.skipSpace(i + len("bearer "))
	end, digit := from, false
	for end < len(p.src) && (isBase64(p.src[end]) || p.src[end] == '.' || p.src[end] == '~') {
		digit = digit || isDigit(p.src[end])
		end++
	}
	if end-from < 16 || !digit {
		return found{}, false
	}
	return found{from, end, "authorization"}, true
}

// cookies finds the pairs of a Cookie header; what is no pair ends them.
func (p *pass) cookies(v int) (found, bool) {
	v = p.skipSpace(v)
	for v < len(p.src) && (p.src[v] == '\\' || isQuote(p.src[v])) {
		v++
	}
	end := v
	for at := v; ; {
		k := at
		for k < len(p.src) && k-at < 128 && (isWord(p.src[k]) || p.src[k] == '.') {
			k++
		}
		if k == at || !p.has(k, "=") {
			break
		}
		for k < len(p.src) && !isSpace(p.src[k]) && !isBreak(p.src[k]) && !isQuote(p.src[k]) && p.src[k] != ';' && !runs(p.src[k:]) {
			k++
		}
		end = k
		if !p.has(k, "; ") {
			break
		}
		at = k + 2
	}
	if end == v {
		return p.value(v, "cookie", true)
	}
	return found{v, end, "cookie"}, true
}

// element finds the text of <name>text</, i being at the >.
func (p *pass) element(i int, name []byte, kind string) (found, bool) {
	open := i - len(name) - 1
	if open < 0 || p.src[open] != '<' {
		return found{}, false
	}
	end := i + 1
	for end < len(p.src) && p.src[end] != '<' && !isBreak(p.src[end]) {
		end++
	}
	if !p.has(end, "</") || isReference(p.src[i+1:end], 0) {
		return found{}, false
	}
	return found{i + 1, end, kind}, true
}

// flag finds the value of a flag that stands after a space, or in the next item of a list: --token abc, "--token", "abc",
// and the short flags of a few programs; i is at a hyphen.
func (p *pass) flag(i int) (found, bool) {
	if i > 0 && (isWord(p.src[i-1]) || p.src[i-1] == '.') {
		return found{}, false
	}
	from := i
	for from < len(p.src) && p.src[from] == '-' && from-i < 2 {
		from++
	}
	end := from
	for end < len(p.src) && end-from <= maxName && isWord(p.src[end]) {
		end++
	}
	if end == from || end-from > maxName {
		return found{}, false
	}
	if from-i == 1 {
		if f, ok := p.short(i, from, end); ok {
			return f, true
		}
	}
	kind := secretName(p.src[from:end])
	if kind == "" && from-i == 2 {
		switch string(p.src[from:end]) {
		case "user", "proxy-user":
			return p.userPassword(i, end)
		}
	}
	if kind == "" {
		return found{}, false
	}
	v := end
	for k := 0; v < len(p.src) && k < 4 && (p.src[v] == '\\' || isQuote(p.src[v])); k++ {
		v++
	}
	if v > end {
		if !p.has(v, ",") {
			return found{}, false
		}
		v++
	}
	val := p.skipSpace(v)
	if val == end || val >= len(p.src) || p.src[val] == '-' || p.has(val, "id=") {
		return found{}, false
	}
	return p.value(val, kind, false)
}

// short finds what follows the short flags that carry a password: -pSECRET of the database clients, -p SECRET of sshpass
// and of a login, -u NAME:SECRET of curl.
func (p *pass) short(i, from, end int) (found, bool) {
	if i == 0 || !isSpace(p.src[i-1]) && !isQuote(p.src[i-1]) {
		return found{}, false
	}
	switch p.src[from] {
	case 'p':
		cmd := p.before(i, 256)
		attached := bytes.Contains(cmd, []byte("mysql")) || bytes.Contains(cmd, []byte("mariadb"))
		apart := bytes.Contains(cmd, []byte(" login ")) || bytes.Contains(cmd, []byte("redis-cli"))
		if bytes.Contains(cmd, []byte("sshpass")) {
			attached, apart = true, true
		}
		if attached && from+1 < len(p.src) && !isSpace(p.src[from+1]) {
			return p.value(from+1, "password", false)
		}
		if apart && end == from+1 && p.skipSpace(end) > end {
			return p.value(end, "password", false)
		}
	case 'a':
		if end == from+1 && p.skipSpace(end) > end && bytes.Contains(p.before(i, 256), []byte("redis-cli")) {
			return p.value(end, "password", false)
		}
	case 'u', 'U':
		if end == from+1 {
			return p.userPassword(i, end)
		}
	}
	return found{}, false
}

// userPassword finds the password in NAME:PASSWORD after the flag of curl that ends at end.
func (p *pass) userPassword(i, end int) (found, bool) {
	v := end
	if p.has(v, "=") {
		v++
	}
	v = p.skipSpace(v)
	if v == end || !bytes.Contains(p.before(i, 256), []byte("curl")) {
		return found{}, false
	}
	if v < len(p.src) && isQuote(p.src[v]) {
		v++
	}
	colon := v
	for colon < len(p.src) && colon-v < 256 && p.src[colon] != ':' && !p.endsBare(colon) {
		colon++
	}
	if !p.has(colon, ":") {
		return found{}, false
	}
	if q := p.src[v-1]; isQuote(q) {
		f := colon + 1
		for f < len(p.src) && p.src[f] != q && !isBreak(p.src[f]) && !runs(p.src[f:]) {
			f++
		}
		if f == colon+1 || isReference(p.src[colon+1:f], q) {
			return found{}, false
		}
		return found{colon + 1, f, "password"}, true
	}
	return p.bare(colon+1, "password", false)
}

// spoken finds a password after a word and a space: "login NAME password SECRET" of a netrc file, "PASSWORD 'SECRET'" and
// "IDENTIFIED BY 'SECRET'" of SQL.
func (p *pass) spoken(i int) (found, bool) {
	if !p.border(i) {
		return found{}, false
	}
	sql := 0
	switch {
	case p.hasFold(i, "password "):
		sql = i + len("password ")
	case p.hasFold(i, "identified by "):
		sql = i + len("identified by ")
	default:
		return found{}, false
	}
	v := p.skipSpace(sql)
	if v < len(p.src) && (p.src[v] == '\'' || p.src[v] == '"') {
		return p.quoted(v, 0, "password")
	}
	w := p.src[max(0, i-160):i]
	if k := bytes.LastIndex(w, []byte("login ")); k >= 0 && lower(p.src[i]) == 'p' && bytes.IndexByte(w[k:], ';') < 0 {
		return p.bare(v, "password", false)
	}
	return found{}, false
}
