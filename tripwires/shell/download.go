// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"net/url"
	"path"
	"slices"
	"strings"
)

// isDownloader tells that a program prints what it gets from the network.
func isDownloader(name string, args []Word) bool {
	first := ""
	if len(args) > 0 {
		first = args[0].Text
	}
	switch name {
	case "curl", "wget", "wget2", "fetch", "aria2c", "http", "https", "xh", "xhs", "httpie", "lynx", "links", "w3m", "elinks", "nc", "ncat",
		"netcat", "socat", "telnet", "ftp", "tftp", "curlie", "axel", "lwp-request", "GET", "lwp-download", "hurl", "ssh", "rsh", "dig",
		"host", "nslookup", "whois", "finger", "gsutil":
		return true
	case "openssl":
		return first == "s_client"
	case "gh":
		return first == "api" || first == "gist" || first == "release"
	case "aws", "gcloud":
		return len(args) > 1 && (first == "s3" || first == "storage")
	}
	return false
}

// downloads notes the files that a network client writes.
func (in *interp) downloads(s *state, name string, args []Word) {
	var sp spec
	remoteName := false
	switch name {
	case "curl", "curlie":
		sp = spec{short: "oXHdFuAeTbcmxKrCwyYzEPQtUD", long: "output output-dir request header data data-raw data-binary form user user-agent " +
			"referer upload-file cookie cookie-jar max-time proxy config range retry retry-delay connect-timeout write-out url cacert cert key"}
	case "wget", "wget2":
		sp = spec{short: "OPoaeitTwQUAR", long: "output-document directory-prefix output-file append-output tries timeout header user-agent " +
			"post-data post-file user password input-file"}
		remoteName = true
	case "aria2c":
		sp = spec{short: "odsxjk", long: "out dir split"}
		remoteName = true
	case "fetch", "http", "https", "xh", "xhs", "axel", "lynx":
		sp = spec{short: "o", long: "output"}
	case "scp", "rsync", "sftp", "gsutil", "aws", "gcloud":
		sp = spec{short: "PioFJlce"}
	default:
		return
	}
	var urls, outs []Word
	dir := Word{Known: true}
	rest := args
	for len(rest) > 0 {
		o := sp.read(rest)
		for _, n := range []string{"o", "O", "output", "output-document", "out"} {
			if w, ok := o.given[n]; ok && w.Text != "" && !(n == "o" && remoteName && name != "aria2c") {
				outs = append(outs, w)
			}
		}
		if w, ok := o.has("P", "d", "directory-prefix", "output-dir", "dir"); ok && name != "curl" || ok && strings.Contains(name, "curl") && o.given["output-dir"].Text != "" {
			dir = w
			if d, ok := o.given["output-dir"]; ok {
				dir = d
			}
		}
		if w, ok := o.given["url"]; ok {
			urls = append(urls, w)
		}
		if _, ok := o.has("O", "remote-name", "remote-name-all"); ok && strings.Contains(name, "curl") {
			remoteName = true
		}
		if o.at >= len(rest) {
			break
		}
		urls = append(urls, rest[o.at])
		rest = rest[o.at+1:]
	}
	body := val{s: unk, f: fDownload}
	put := func(w Word) {
		if w.Text == "-" {
			return
		}
		if dir.Text != "" && !strings.HasPrefix(w.Text, "/") {
			w.Text = dir.Text + "/" + w.Text
			w.Known = w.Known && dir.Known
		}
		in.write(s, w, body, false)
	}
	if sp.short == "PioFJlce" { // copies: the last operand is where to
		if len(urls) < 2 || !slices.ContainsFunc(urls[:len(urls)-1], func(w Word) bool { return strings.Contains(w.Text, ":") }) {
			return
		}
		to := urls[len(urls)-1]
		for _, from := range urls[:len(urls)-1] {
			put(to)
			put(Word{Text: path.Join(to.Text, path.Base(from.Text)), Known: to.Known && from.Known})
		}
		return
	}
	for _, o := range outs {
		put(o)
	}
	if !remoteName || len(outs) > 0 && name != "curl" {
		return
	}
	for _, w := range urls {
		p := w.Text
		if u, err := url.Parse(p); err == nil && u.Path != "" {
			p = u.Path
		}
		base := path.Base(p)
		put(Word{Text: base, Known: !strings.Contains(base, unk)})
	}
}
