// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"encoding/base32"
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
)

// decode models programs that turn text into other text: what they make of known text is computed, the rest is hidden.
func (in *interp) decode(s *state, name string, args []Word) (val, bool) {
	hidden := func(v val) (val, bool) {
		in.an.Computed = true
		return val{s: unk, f: v.f&(fDownload) | fHidden, name: v.name}, true
	}
	computed := func(v val, out []byte) (val, bool) {
		in.an.Computed = true
		var sb strings.Builder
		for _, b := range out {
			putByte(&sb, b)
		}
		return val{s: sb.String(), f: v.f &^ fTemp}, true
	}
	decoding := func(long string) bool {
		return slices.ContainsFunc(args, func(w Word) bool {
			t := w.Text
			return t == long || len(t) > 3 && strings.HasPrefix(t, "--") && strings.HasPrefix(long, t) ||
				len(t) > 1 && t[0] == '-' && t[1] != '-' && strings.ContainsAny(t, "dD")
		})
	}
	switch name {
	case "base64", "gbase64", "base32", "basenc":
		v := in.input(s, operands(args, "wi"))
		if !decoding("--decode") {
			if name != "base64" || !v.known() {
				return spoiled(v), true
			}
			return val{s: base64.StdEncoding.EncodeToString([]byte(fromData(v.s))) + "\n", f: v.f &^ fTemp}, true
		}
		if !v.known() || name == "basenc" {
			return hidden(v)
		}
		t := strings.Map(func(r rune) rune {
			if strings.ContainsRune(" \n\r\t=", r) {
				return -1
			}
			return r
		}, v.s)
		out, err := base64.RawStdEncoding.DecodeString(t)
		if name == "base32" {
			out, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(t)
		}
		if err != nil {
			return hidden(v)
		}
		return computed(v, out)
	case "xxd":
		v := in.input(s, operands(args, "lcso"))
		if !slices.ContainsFunc(args, func(w Word) bool {
			return len(w.Text) > 1 && w.Text[0] == '-' && strings.Contains(w.Text, "r") && w.Text != "-revert" || w.Text == "-revert"
		}) {
			return spoiled(v), true
		}
		if !v.known() || !slices.ContainsFunc(args, func(w Word) bool { return strings.HasPrefix(w.Text, "-") && strings.Contains(w.Text, "p") }) {
			return hidden(v)
		}
		out, err := hex.DecodeString(strings.Join(strings.Fields(v.s), ""))
		if err != nil {
			return hidden(v)
		}
		return computed(v, out)
	case "rev":
		v := in.input(s, operands(args, ""))
		if !v.known() {
			return hidden(v)
		}
		lines := strings.Split(v.s, "\n")
		for i, l := range lines {
			r := []rune(l)
			slices.Reverse(r)
			lines[i] = string(r)
		}
		in.an.Computed = true
		v.s, v.f = strings.Join(lines, "\n"), v.f&^fTemp
		return v, true
	case "tr", "gtr":
		v := in.input(s, nil)
		out, ok := translate(v, args)
		if !ok {
			return hidden(v)
		}
		in.an.Computed = true
		return out, true
	case "openssl", "gpg", "gpg2", "age", "uudecode", "ascii85", "gunzip", "zcat", "gzcat", "bzcat", "xzcat", "zstdcat", "lz4cat", "unxz",
		"bunzip2", "unzstd", "rot13", "caesar", "hxunent", "qprint", "recode", "iconv":
		return hidden(in.input(s, nil))
	case "gzip", "bzip2", "xz", "zstd", "pigz", "lzma":
		if decoding("--decompress") {
			return hidden(in.input(s, nil))
		}
	case "head", "tail":
		return in.lines(s, name, args)
	case "sort", "uniq", "nl", "fold", "fmt", "column", "paste", "tac", "shuf", "cut", "sed", "awk", "gawk", "perl", "python", "python3", "jq",
		"grep", "strings", "dd", "ruby", "node":
		v := in.input(s, nil)
		if s.in.none {
			return val{}, false
		}
		u := val{s: unk, f: v.f & (fDownload | fHidden), name: v.name}
		if v.known() && v.s != "" && name != "grep" && name != "jq" && name != "sort" && name != "uniq" {
			u.f |= fHidden
		}
		return u, true
	}
	return val{}, false
}

// fromData turns stream text back into bytes.
func fromData(s string) string { return strings.ReplaceAll(s, dataNUL, "\x00") }

// lines is head -n and tail -n of known text.
func (in *interp) lines(s *state, name string, args []Word) (val, bool) {
	v := in.input(s, operands(args, "nc"))
	n := int64(10)
	for i, a := range args {
		t := a.Text
		switch {
		case t == "-n" && i+1 < len(args):
			t = args[i+1].Text
		case strings.HasPrefix(t, "-n"):
			t = t[2:]
		case strings.HasPrefix(t, "--lines="):
			t = t[8:]
		case len(t) > 1 && t[0] == '-' && t[1] >= '0' && t[1] <= '9':
			t = t[1:]
		case len(t) > 1 && t[0] == '-' && t != "-q":
			return spoiled(v), true
		default:
			continue
		}
		x, w := digits(t, 10, 9)
		if w == 0 || w != len(t) {
			return spoiled(v), true
		}
		n = x
	}
	if !v.known() {
		return v.lost(), true
	}
	ls := strings.SplitAfter(v.s, "\n")
	if len(ls) > 0 && ls[len(ls)-1] == "" {
		ls = ls[:len(ls)-1]
	}
	k := int(min(n, int64(len(ls))))
	if name == "head" {
		ls = ls[:k]
	} else {
		ls = ls[len(ls)-k:]
	}
	v.s = strings.Join(ls, "")
	return v, true
}

// translate is tr SET1 SET2 and tr -d SET of known text.
func translate(v val, args []Word) (val, bool) {
	del, squeeze := false, false
	var sets []string
	for _, a := range args {
		switch {
		case !a.Known:
			return v, false
		case a.Text == "-d" || a.Text == "--delete":
			del = true
		case a.Text == "-s" || a.Text == "--squeeze-repeats":
			squeeze = true
		case len(a.Text) > 1 && a.Text[0] == '-' && len(sets) == 0:
			return v, false
		default:
			set, ok := trSet(a.Text)
			if !ok {
				return v, false
			}
			sets = append(sets, set)
		}
	}
	if !v.known() || squeeze || del && len(sets) != 1 || !del && (len(sets) != 2 || sets[1] == "") {
		return v, false
	}
	data := fromData(v.s)
	out := make([]byte, 0, len(data))
	for i := range len(data) {
		j := strings.LastIndexByte(sets[0], data[i])
		switch {
		case j < 0:
			out = append(out, data[i])
		case del:
		default:
			out = append(out, sets[1][min(j, len(sets[1])-1)])
		}
	}
	var sb strings.Builder
	for _, b := range out {
		putByte(&sb, b)
	}
	return val{s: sb.String(), f: v.f &^ fTemp}, true
}

// trSet expands ranges, escapes and classes of a tr set; it works on bytes.
func trSet(s string) (string, bool) {
	const lower, upper, digit = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
	s = strings.NewReplacer("[:lower:]", lower, "[:upper:]", upper, "[:digit:]", digit, "[:alpha:]", upper+lower,
		"[:alnum:]", digit+upper+lower, "[:space:]", " \t\n\v\f\r", "[:blank:]", " \t").Replace(s)
	if strings.Contains(s, "[:") || strings.Contains(s, "[=") {
		return "", false
	}
	s, _ = echoEscapes(s, false)
	s = fromData(s)
	var out []byte
	for i := 0; i < len(s); i++ {
		if i+2 < len(s) && s[i+1] == '-' {
			if s[i] > s[i+2] {
				return "", false
			}
			for b := int(s[i]); b <= int(s[i+2]); b++ {
				out = append(out, byte(b))
			}
			i += 2
			continue
		}
		out = append(out, s[i])
	}
	return string(out), true
}
