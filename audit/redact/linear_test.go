// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"testing"
	"time"
)

// Text made of the beginnings of secrets must not cost more than its length allows: a quadratic pass would need half a
// minute for each of these.
func TestHalvesOfSecretsCostNoMoreThanTheirLength(t *testing.T) {
	t.Parallel()
	r := New()
	for _, unit := range []string{
		"eyJ", "eyJa-", "eyJabcdefghijkl.", "ghp_", "sk-", "sk-a-", "xoxb-", "AKIA", "://", "a://b:c", "a://b:c/", "a://b:/@", "password=", "password=(", "password = (",
		`password="`, `password='`, `"password":"`, `\"password\":\"`, "password=\\", "password=${", "password=$(", "password=$", "password=`", "password: |\n", "password=\n", "--password \n", "token: a b ", "password", "password ",
		"<password>", "<password", "--password ", "--password", "-p", " -pmysql ", "mysql -p ", " -u curl ", "curl -u a", "curl -u a:", "--user curl ", "login password ",
		"-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----A1", "-----BEGIN PRIVATE KEY-----\n\n", "-----END ", "Proc-Type: ", "bearer ", "Bearer a1", "Authorization: ", "Authorization: Basic ",
		"Cookie: ", "Cookie: a=", "cookie=a=b; ", "identified by '", "PASSWORD '", "a=", "a:", "=", ":", "-", "--", "\\", "\\\\\"", "'", "\"", "[redacted:", "token=[redacted:", "\t", "a.", "\u00e9",
	} {
		in := []byte(strings.Repeat(unit, 512<<10/len(unit)))
		begin := time.Now()
		r.Text(in, 0)
		if d := time.Since(begin); d > 10*time.Second {
			t.Errorf("%q: %v", unit, d)
		}
	}
}
