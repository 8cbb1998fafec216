// SPDX-License-Identifier: Apache-2.0

package redact

import "strings"

// maxName bounds how long a name is.
const maxName = 64

// Words that make a name the name of a secret when it ends in them. Weak ones count only as a word of their own.
var (
	strongWords = []string{
		"password", "passwd", "passphrase", "passcode", "passwort", "secret", "token", "apikey", "accesskey", "secretkey",
		"privatekey", "accountkey", "authkey", "signingkey", "encryptionkey", "masterkey", "sharedkey", "storagekey",
		"servicekey", "licensekey", "deploykey", "storepass", "keypass", "credential", "credentials", "secrets", "passwords",
	}
	weakWords  = []string{"pass", "pwd", "pw", "psk", "otp", "jwt", "pat", "cookie", "bearer", "_auth"}
	afterWords = []string{"value", "string", "base64", "b64", "plain", "prod", "production", "dev", "staging", "test", "live", "old", "new", "current"}
)

// secretName returns the kind of secret that name stands for, or "".
func secretName(name []byte) string {
	for len(name) > 0 && name[0] == '-' {
		name = name[1:]
	}
	if len(name) < 2 || len(name) > maxName || !promising(name) {
		return ""
	}
	switch string(name) {
	case "PWD", "OLDPWD":
		return ""
	case "_auth", "passin", "passout":
		return "password"
	}
	var buf [maxName]byte // lower-case, without separators
	var starts [maxName + 1]bool
	n := 0
	sep := true
	for i, c := range name {
		if c == '_' || c == '-' || c == '.' {
			sep = true
			continue
		}
		starts[n] = sep || isUpper(c) && i > 0 && !isUpper(name[i-1])
		sep = false
		buf[n] = lower(c)
		n++
	}
	for n > 0 && isDigit(buf[n-1]) { // API_KEY_2
		n--
	}
	flat := string(buf[:n])
	if k := kindOf(flat, &starts); k != "" {
		return k
	}
	for _, w := range afterWords {
		if rest, ok := strings.CutSuffix(flat, w); ok && starts[len(rest)] {
			return kindOf(rest, &starts)
		}
	}
	return ""
}

// promising is a cheap test that most names fail: the last letter of every word in the lists, or a digit.
func promising(name []byte) bool {
	switch lower(name[len(name)-1]) {
	case 'd', 'e', 't', 'n', 'y', 's', 'l', 'k', 'p', 'w', 'r', 'h', 'g', 'v', '4':
		return true
	}
	return isDigit(name[len(name)-1])
}

func kindOf(flat string, starts *[maxName + 1]bool) string {
	for _, w := range strongWords {
		if strings.HasSuffix(flat, w) {
			return kindName(w)
		}
	}
	for _, w := range weakWords {
		if rest, ok := strings.CutSuffix(flat, w); ok && starts[len(rest)] {
			return kindName(w)
		}
	}
	return ""
}

func kindName(word string) string {
	switch {
	case strings.HasPrefix(word, "pass"), strings.HasSuffix(word, "pass"), word == "pwd", word == "pw", word == "otp":
		return "password"
	case word == "apikey":
		return "api-key"
	case word == "secretkey", strings.HasSuffix(word, "secret"), word == "secrets":
		return "secret"
	case strings.HasSuffix(word, "key"), word == "psk":
		return "key"
	case word == "cookie":
		return "cookie"
	case strings.HasPrefix(word, "credential"):
		return "credential"
	}
	return "token"
}
