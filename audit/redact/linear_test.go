// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"testing"
	"time"
)

// Text made of the beginnings of secrets must not cost more than its length allows: a quadratic pass would need minutes
// for each of these.
func TestHalvesOfSecretsCostNoMoreThanTheirLength(t *testing.T) {
	t.Parallel()
	r := New()
	for _, unit := range []string{
		"eyJ", "eyJa-", "eyJabcdefghijkl.", "ghp_", "sk-", "sk-a-", "xoxb-", "AKIA", "://", "a://b:c", "a://b:c/", "a://b:/@", "password=", "password=(", "password = (",
		`password="`, `password='`, `"password":"`, `\"password\":\"`, "password=\\", "password=${", "password=$(", "password=$", "password=`", "password: |\n", "password", "password ",
		"<password>", "<password", "--password ", "--password", "-p", " -pmysql ", "mysql -p ", " -u curl ", "curl -u a", "curl -u a:", "--user curl ", "login password ",
		"-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----A1", "-----BEGIN PRIVATE KEY-----\n\n", "-----END ", "Proc-Type: ", "bearer ", "Bearer a1", "Authorization: ", "Authorization: Basic ",
		"Cookie: ", "Cookie: a=", "cookie=a=b; ", "identified by '", "PASSWORD '", "a=", "a:", "=", ":", "-", "--", "\\", "\\\\\"", "'", "\"", "[redacted:", "token=[redacted:", "\t", "a.", "\u00e9", "\xff", "\x00",
	} {
		for _, fill := range []string{"", " ", "\n"} {
			in := []byte(strings.Repeat(unit+fill, 256<<10/len(unit+fill)))
			begin := time.Now()
			r.Text(in, 0)
			r.JSON(append(append([]byte(`["`), strings.ReplaceAll(strings.ReplaceAll(strings.ToValidUTF8(string(in), ""), `\`, `\\`), `"`, `\"`)...), `"]`...), 0)
			if d := time.Since(begin); d > 3*time.Second {
				t.Errorf("%q with %q: %v", unit, fill, d)
			}
		}
	}
}
