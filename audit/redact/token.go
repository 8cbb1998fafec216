// SPDX-License-Identifier: Apache-2.0

package redact

import "bytes"

// tokenRule describes secrets that are known by their own form: a prefix and a run of characters.
type tokenRule struct {
	kind   string
	prefix string
	chars  func(byte) bool
	min    int  // length of the run at least
	exact  bool // the run is min bytes long and ends at a border
	border bool // the prefix must begin a word
	mixed  bool // the first bytes of the run must hold a digit
}

// tokenRules lists them. Among rules with the same first byte the longer prefix comes first.
func tokenRules() []tokenRule {
	alnum, word := isAlnum, isWord
	upper := func(c byte) bool { return isUpper(c) || isDigit(c) }
	under := func(c byte) bool { return isAlnum(c) || c == '_' }
	dotted := func(c byte) bool { return isWord(c) || c == '.' }
	rules := []tokenRule{
		{kind: "github-token", prefix: "github_pat_", chars: under, min: 22},
		{kind: "gcp-oauth-secret", prefix: "GOCSPX-", chars: word, min: 20},
		{kind: "google-api-key", prefix: "AIza", chars: word, min: 35, border: true},
		{kind: "google-oauth-token", prefix: "ya29.", chars: dotted, min: 20, border: true},
		{kind: "anthropic-key", prefix: "sk-ant-", chars: word, min: 12},
		{kind: "openai-key", prefix: "sk-proj-", chars: word, min: 20, border: true},
		{kind: "openai-key", prefix: "sk-svcacct-", chars: word, min: 20, border: true},
		{kind: "openai-key", prefix: "sk-admin-", chars: word, min: 20, border: true},
		{kind: "openrouter-key", prefix: "sk-or-v1-", chars: alnum, min: 32, border: true},
		{kind: "openai-key", prefix: "sk-", chars: alnum, min: 20, border: true, mixed: true},
		{kind: "stripe-key", prefix: "sk_live_", chars: alnum, min: 10},
		{kind: "stripe-key", prefix: "sk_test_", chars: alnum, min: 10},
		{kind: "stripe-key", prefix: "rk_live_", chars: alnum, min: 10},
		{kind: "stripe-key", prefix: "rk_test_", chars: alnum, min: 10},
		{kind: "webhook-secret", prefix: "whsec_", chars: isBase64, min: 20},
		{kind: "npm-token", prefix: "npm_", chars: alnum, min: 30, border: true},
		{kind: "pypi-token", prefix: "pypi-", chars: word, min: 40, border: true, mixed: true},
		{kind: "digitalocean-token", prefix: "dop_v1_", chars: isHex, min: 40},
		{kind: "huggingface-token", prefix: "hf_", chars: alnum, min: 30, border: true},
		{kind: "vault-token", prefix: "hvs.", chars: word, min: 20, border: true},
		{kind: "sendgrid-key", prefix: "SG.", chars: dotted, min: 40, border: true},
		{kind: "age-key", prefix: "AGE-SECRET-KEY-1", chars: alnum, min: 40},
		{kind: "slack-token", prefix: "xapp-", chars: word, min: 20, border: true},
		{kind: "slack-webhook", prefix: "hooks.slack.com/services/", chars: func(c byte) bool { return isAlnum(c) || c == '/' }, min: 16},
	}
	for _, v := range []struct {
		kind, prefix string
		min          int
	}{
		{"atlassian-token", "ATATT3", 40}, {"databricks-token", "dapi", 32}, {"docker-token", "dckr_pat_", 20}, {"doppler-token", "dp.pt.", 30},
		{"figma-token", "figd_", 30}, {"fly-token", "FlyV1 ", 30}, {"grafana-token", "glsa_", 30}, {"groq-key", "gsk_", 30}, {"linear-key", "lin_api_", 30},
		{"newrelic-key", "NRAK-", 20}, {"notion-token", "ntn_", 30}, {"planetscale-token", "pscale_tkn_", 20}, {"postman-key", "PMAK-", 30},
		{"pulumi-token", "pul-", 32}, {"replicate-token", "r8_", 30}, {"rubygems-key", "rubygems_", 40}, {"shopify-token", "shpat_", 24},
		{"shopify-token", "shpss_", 24}, {"supabase-token", "sbp_", 30}, {"tailscale-key", "tskey-", 20}, {"xai-key", "xai-", 40},
	} {
		rules = append(rules, tokenRule{kind: v.kind, prefix: v.prefix, chars: word, min: v.min, border: true, mixed: true})
	}
	for _, c := range "pousr" {
		rules = append(rules, tokenRule{kind: "github-token", prefix: "gh" + string(c) + "_", chars: under, min: 20, border: true},
			tokenRule{kind: "github-token", prefix: "gh" + string(c) + "_", chars: alnum, min: 36, mixed: true}) // its full form also behind a letter
	}
	for _, name := range []string{"glpat-", "gldt-", "glrt-", "glptt-", "glsoat-", "glft-", "glcbt-", "glagent-"} {
		rules = append(rules, tokenRule{kind: "gitlab-token", prefix: name, chars: dotted, min: 20, border: true})
	}
	for _, c := range "abeoprs" {
		rules = append(rules, tokenRule{kind: "slack-token", prefix: "xox" + string(c), chars: func(c byte) bool { return isWord(c) || c == '.' }, min: 11, border: true, mixed: true})
	}
	for _, id := range []string{"AKIA", "ASIA", "ABIA", "ACCA"} {
		rules = append(rules, tokenRule{kind: "aws-access-key-id", prefix: id, chars: upper, min: 16, exact: true, border: true})
	}
	return rules
}

// token reports whether r matches at i and where the secret ends. Only a match is measured beyond r.min.
func (p *pass) token(i int, r *tokenRule) (end int, ok bool) {
	if !p.has(i, r.prefix) || r.border && !p.border(i) {
		return 0, false
	}
	from := i + len(r.prefix)
	end = from
	digit := false
	for end < len(p.src) && end-from < r.min && r.chars(p.src[end]) {
		digit = digit || isDigit(p.src[end])
		end++
	}
	if end-from < r.min || r.mixed && !digit {
		return 0, false
	}
	if r.exact {
		if end < len(p.src) && isAlnum(p.src[end]) {
			return 0, false
		}
		return end, true
	}
	for end < len(p.src) && r.chars(p.src[end]) {
		end++
	}
	return end, true
}

// follows finds the AWS secret key right after its id, as a table or a file of columns has it. Such a key has no form of
// its own: 40 characters of base64, of all sorts.
func (p *pass) follows(f found) (found, bool) {
	if f.kind != "aws-access-key-id" {
		return found{}, false
	}
	from := f.end
	for from < len(p.src) && from-f.end < 8 && !isBase64(p.src[from]) {
		from++
	}
	end := from
	var lowers, uppers, digits int
	for end < len(p.src) && end-from <= 40 && (isAlnum(p.src[end]) || p.src[end] == '+' || p.src[end] == '/') {
		switch c := p.src[end]; {
		case isDigit(c):
			digits++
		case isUpper(c):
			uppers++
		case isAlpha(c):
			lowers++
		}
		end++
	}
	if from == f.end || end-from != 40 || lowers == 0 || uppers == 0 || digits == 0 {
		return found{}, false
	}
	return found{from, end, "aws-secret-key"}, true
}

// jwt finds a JSON web token: two or more parts of base64url, of which the first begins like {" does.
func (p *pass) jwt(i int) (found, bool) {
	if !p.has(i, "eyJ") || !p.border(i) {
		return found{}, false
	}
	end := p.run(i)
	if end-i < 12 || !p.has(end, ".") {
		return found{}, false
	}
	payload := end + 1
	end = p.run(payload)
	if end-payload < 8 {
		return found{}, false
	}
	for parts := 2; parts < 5 && p.has(end, "."); parts++ {
		end = p.run(end + 1)
	}
	return found{i, end, "jwt"}, true
}

// run returns the end of the run of base64url characters at i.
func (p *pass) run(i int) int {
	if i >= p.runFrom && i < p.runTo {
		return p.runTo
	}
	end := i
	for end < len(p.src) && isWord(p.src[end]) {
		end++
	}
	p.runFrom, p.runTo = i, end
	return end
}

// pem finds a private key block. Only what looks like the inside of one goes with it: text that merely stands between
// such lines stays readable.
func (p *pass) pem(i int) (found, bool) {
	if !p.has(i, "-----BEGIN ") {
		return found{}, false
	}
	label := p.src[i+len("-----BEGIN "):]
	label = label[:min(len(label), 48)]
	k := bytes.Index(label, []byte("-----"))
	if k < 0 || !bytes.Contains(label[:k], []byte("PRIVATE KEY")) {
		return found{}, false
	}
	end := i + len("-----BEGIN ") + k + len("-----")
	for end < len(p.src) {
		next, ok := p.pemLine(end)
		if !ok {
			break
		}
		end = next
	}
	if p.has(end, "-----END ") {
		tail := p.src[end:]
		tail = tail[:min(len(tail), 64)]
		if k := bytes.Index(tail[9:], []byte("-----")); k >= 0 {
			end += 9 + k + 5
		}
	}
	return found{i, end, "private-key"}, true
}

// pemLine returns the end of the stretch of key material at i, line breaks included: base64, or a header such as
// "DEK-Info: AES-128-CBC,00". Breaks may be spelled \n, as in a one-line string.
func (p *pass) pemLine(i int) (end int, ok bool) {
	end = i
	for end < len(p.src) {
		switch {
		case isBreak(p.src[end]) || isSpace(p.src[end]):
			end++
		case p.src[end] == '\\' && end+1 < len(p.src) && (p.src[end+1] == 'n' || p.src[end+1] == 'r'):
			end += 2
		default:
			goto material
		}
	}
material:
	for _, h := range []string{"Proc-Type: ", "DEK-Info: ", "Version: ", "Comment: ", "Charset: "} {
		if p.has(end, h) {
			stop := bytes.IndexAny(p.src[end:min(len(p.src), end+128)], "\n\\")
			if stop < 0 {
				return i, false
			}
			return end + stop, true
		}
	}
	from, hard := end, false
	for end < len(p.src) && (isAlnum(p.src[end]) || p.src[end] == '+' || p.src[end] == '/' || p.src[end] == '=') {
		c := p.src[end]
		hard = hard || isDigit(c) || isUpper(c) || c == '+' || c == '='
		end++
	}
	if n := end - from; n == 0 || n < 16 && !hard || n < 4 {
		if p.has(end, "-----END ") {
			return end, end > i
		}
		return i, false
	}
	return end, true
}
