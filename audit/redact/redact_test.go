// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"strings"
	"testing"
)

// Made-up secrets of real form. They are put together here so that no scanner takes this file for a leak.
var (
	awsID     = "AKIA" + "IOSFODNN7EXAMPLE"
	awsKey    = "wJalrXUtnFEMI/K7MDENG/" + "bPxRfiCYEXAMPLEKEY"
	ghp       = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
	ghPat     = "github_pat_" + "11ABCDEFG0abcdefghijkl_MNOPQRSTUVWXYZ0123456789abcdefghijklmnopqrstuvwxyz0123456789AB"
	glpat     = "glpat-" + "Zx9-kQ3vLm_T2wR8pYb4"
	slack     = "xoxb-" + "123456789012-1234567890123-AbCdEfGhIjKlMnOpQrStUvWx"
	stripe    = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
	google    = "AIza" + "SyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"
	anthropic = "sk-ant-" + "api03-abcDEF123_456-ghiJKL789"
	openai    = "sk-" + "abcdEFGH1234ijklMNOP5678qrstUVWX9012yzAB3456cdEF"
	openaiPrj = "sk-proj-" + "Ab1_cd-EF2gh3IJ4kl5MN6op7QR8st"
	npm       = "npm_" + "aBcDeFgHiJkLmNoPqRsTuVwXyZ0123456789"
	pypi      = "pypi-" + "AgEIcHlwaS5vcmcCJDU3Nzk4YjE1LTQ4ZGQtNDlmYS04YjYxLTg4ZGE0"
	jwt       = "eyJ" + "hbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
	pemBody   = "MIIEpAIBAAKCAQEA7bq7Ahk2b9kFq0Y2\nq3Zl8n5d0xw1vJ9C4m8Xo+ZrT/5uQw==\n"
	pemKey    = "-----BEGIN RSA " + "PRIVATE KEY-----\n" + pemBody + "-----END RSA " + "PRIVATE KEY-----"
)

var secrets = []struct{ name, in, secret, want string }{
	{"AWS access key id", "aws configure set aws_access_key_id " + awsID, awsID, "aws configure set aws_access_key_id [redacted:aws-access-key-id]"},
	{"AWS secret by its variable", "export AWS_SECRET_ACCESS_KEY=" + awsKey + " && aws s3 ls", awsKey, "export AWS_SECRET_ACCESS_KEY=[redacted:key] && aws s3 ls"},
	{"AWS secret in the credentials file", "[default]\naws_secret_access_key = " + awsKey + "\nregion = eu-west-1", awsKey, "[default]\naws_secret_access_key = [redacted:key]\nregion = eu-west-1"},
	{"AWS secret beside its id", awsID + "," + awsKey, awsKey, "[redacted:aws-access-key-id],[redacted:aws-secret-key]"},
	{"GitHub token", "git clone https://" + ghp + "@github.com/a/b", ghp, "git clone https://[redacted:url-password]@github.com/a/b"},
	{"GitHub token alone", "echo " + ghp + " | gh auth login --with-token", ghp, "echo [redacted:github-token] | gh auth login --with-token"},
	{"GitHub token after an escape", `printf 'a\n` + ghp + `'`, ghp, `printf 'a\n[redacted:github-token]'`},
	{"GitHub fine-grained token", "x " + ghPat + " y", ghPat, "x [redacted:github-token] y"},
	{"GitLab token", "curl --header 'PRIVATE-TOKEN: " + glpat + "' u", glpat, "curl --header 'PRIVATE-TOKEN: [redacted:token]' u"},
	{"GitLab token alone", "# " + glpat, glpat, "# [redacted:gitlab-token]"},
	{"Slack token", slack, slack, "[redacted:slack-token]"},
	{"Stripe key", "stripe.api = " + stripe, stripe, "stripe.api = [redacted:stripe-key]"},
	{"Google API key", "https://maps.googleapis.com/x?key=" + google + "&y=1", google, "https://maps.googleapis.com/x?key=[redacted:google-api-key]&y=1"},
	{"Anthropic key", "k " + anthropic, anthropic, "k [redacted:anthropic-key]"},
	{"OpenAI key", "k " + openai, openai, "k [redacted:openai-key]"},
	{"OpenAI project key", "k " + openaiPrj, openaiPrj, "k [redacted:openai-key]"},
	{"npm token", "//registry.example.test/:_authToken=" + npm, npm, "//registry.example.test/:_authToken=[redacted:token]"},
	{"npm token alone", npm, npm, "[redacted:npm-token]"},
	{"PyPI token", "twine upload -u __token__ -p " + pypi, pypi, "twine upload -u __token__ -p [redacted:pypi-token]"},
	{"JSON web token", "got " + jwt + "!", jwt, "got [redacted:jwt]!"},
	{"private key", "cat <<E\n" + pemKey + "\nE\n", "MIIEpAIBAAKCAQEA7bq7Ahk2b9kFq0Y2", "cat <<E\n[redacted:private-key]\nE\n"},
	{"private key on one line", strings.ReplaceAll(pemKey, "\n", `\n`), "q3Zl8n5d0xw1vJ9C4m8Xo", "[redacted:private-key]"},
	{"private key without an end", "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5vbmU\n", "b3BlbnNzaC1rZXktdjEAAAAABG5vbmU", "[redacted:private-key]\n"},
	{"password in a URL", "psql postgres://app:s3cr3t!@db.local:5432/x", "s3cr3t!", "psql postgres://app:[redacted:url-password]@db.local:5432/x"},
	{"password with an @ in a URL", "redis://:p@ss@h/0", "p@ss", "redis://:[redacted:url-password]@h/0"},
	{"password with a slash in a URL", "amqp://u:pa/ss@h/v", "pa/ss", "amqp://u:[redacted:url-password]@h/v"},
	{"bearer header", `curl -H "Authorization: Bearer abcdefghijklmnop" https://x`, "abcdefghijklmnop", `curl -H "Authorization: Bearer [redacted:authorization]" https://x`},
	{"basic header", "Authorization: Basic dXNlcjpwYXNz\r\nHost: x", "dXNlcjpwYXNz", "Authorization: Basic [redacted:authorization]\r\nHost: x"},
	{"header without a scheme", "-H 'authorization: 0123456789abcdef'", "0123456789abcdef", "-H 'authorization: [redacted:authorization]'"},
	{"bearer anywhere", "sent bearer 9f8e7d6c5b4a39281706 to it", "9f8e7d6c5b4a39281706", "sent bearer [redacted:authorization] to it"},
	{"key header", "X-Api-Key: 12ab34", "12ab34", "X-Api-Key: [redacted:api-key]"},
	{"cookies", "Cookie: sid=abc123; csrf=def\nX: y", "abc123", "Cookie: [redacted:cookie]\nX: y"},
	{"environment assignment", "DB_PASSWORD=hunter2 ./run", "hunter2", "DB_PASSWORD=[redacted:password] ./run"},
	{"environment assignment without a border", "PGPASSWORD=hunter2 psql", "hunter2", "PGPASSWORD=[redacted:password] psql"},
	{"quoted assignment", `export API_KEY="a b c"; ls`, "a b c", `export API_KEY="[redacted:api-key]"; ls`},
	{"single quotes with a dollar", "PASSWORD='$ecret' ls", "$ecret", "PASSWORD='[redacted:password]' ls"},
	{"dotenv file", "# comment\nSECRET_KEY=abc/def+1\nDEBUG=1\n", "abc/def+1", "# comment\nSECRET_KEY=[redacted:secret]\nDEBUG=1\n"},
	{"numbered name", "API_TOKEN_2=abcdef", "abcdef", "API_TOKEN_2=[redacted:token]"},
	{"name with an environment behind it", "DB_PASSWORD_PROD=abcdef", "abcdef", "DB_PASSWORD_PROD=[redacted:password]"},
	{"flag with a space", "tool --password hunter2 --verbose", "hunter2", "tool --password [redacted:password] --verbose"},
	{"flag with an equals sign", "tool --api-key=abc123 x", "abc123", "tool --api-key=[redacted:api-key] x"},
	{"flag with quotes", "tool --token 'abc 123' x", "abc 123", "tool --token '[redacted:token]' x"},
	{"flag in a list", `["--client-secret", "abc123"]`, "abc123", `["--client-secret", "[redacted:secret]"]`},
	{"mysql", "mysql -u root -phunter2 db", "hunter2", "mysql -u root -p[redacted:password] db"},
	{"sshpass", "sshpass -p hunter2 ssh h", "hunter2", "sshpass -p [redacted:password] ssh h"},
	{"docker login", "docker login -u me -p hunter2 r", "hunter2", "docker login -u me -p [redacted:password] r"},
	{"curl user", "curl -u me:hunter2 https://x", "hunter2", "curl -u me:[redacted:password] https://x"},
	{"curl user in quotes", `curl --user "me:hunter 2" https://x`, "hunter 2", `curl --user "me:[redacted:password]" https://x`},
	{"query string", "GET /x?access_token=abc123&y=2", "abc123", "GET /x?access_token=[redacted:token]&y=2"},
	{"connection string", "Server=db;User Id=sa;Password=h;unter2;Database=x", "=h;", "Server=db;User Id=sa;Password=[redacted:password];unter2;Database=x"},
	{"storage connection string", "AccountName=a;AccountKey=abc+/9==;EndpointSuffix=x", "abc+/9==", "AccountName=a;AccountKey=[redacted:key];EndpointSuffix=x"},
	{"libpq string", "host=db user=app password=hunter2 sslmode=require", "hunter2", "host=db user=app password=[redacted:password] sslmode=require"},
	{"JSON in text", `{"user":"u","password":"hunter2"}`, "hunter2", `{"user":"u","password":"[redacted:password]"}`},
	{"JSON in a string", `echo "{\"api_key\": \"abc123\", \"x\": 1}"`, "abc123", `echo "{\"api_key\": \"[redacted:api-key]\", \"x\": 1}"`},
	{"YAML", "db:\n  password: hunter2\n  user: app\n", "hunter2", "db:\n  password: [redacted:password]\n  user: app\n"},
	{"YAML block", "password: |\n  hunter2\nuser: x\n", "hunter2", "password: |\n  [redacted:password]\nuser: x\n"},
	{"code", `client_secret := "abc123"`, "abc123", `client_secret := "[redacted:secret]"`},
	{"hash rocket", `'password' => 'hunter2',`, "hunter2", `'password' => '[redacted:password]',`},
	{"subscript", `config["password"] = "hunter2"`, "hunter2", `config["password"] = "[redacted:password]"`},
	{"XML", "<password>hunter2</password>", "hunter2", "<password>[redacted:password]</password>"},
	{"netrc", "machine h login me password hunter2", "hunter2", "machine h login me password [redacted:password]"},
	{"SQL", "CREATE USER a IDENTIFIED BY 'hunter2'; ALTER ROLE b PASSWORD 'x y'", "hunter2", "CREATE USER a IDENTIFIED BY '[redacted:password]'; ALTER ROLE b PASSWORD '[redacted:password]'"},
	{"default of a variable", "x=${DB_PASSWORD:-hunter2}", "hunter2", "x=${DB_PASSWORD:[redacted:password]}"},
	{"a mark does not switch it off", "password=[redacted:x]hunter2", "hunter2", "password=[redacted:password]"},
	{"a mark in front does not switch it off", "[redacted:off] TOKEN=abc123", "abc123", "[redacted:off] TOKEN=[redacted:token]"},
	{"signed URL", "curl 'https://a.blob.example/x?sv=2024&sig=abc%2Bdef%3D&se=1'", "abc%2Bdef%3D", "curl 'https://a.blob.example/x?sv=2024&sig=[redacted:signature]&se=1'"},
	{"presigned URL", "https://b.s3.example/k?X-Amz-Date=1&X-Amz-Signature=0123abcd", "0123abcd", "https://b.s3.example/k?X-Amz-Date=1&X-Amz-Signature=[redacted:signature]"},
	{"openssl", "openssl rsa -in k.pem -passin pass:hunter2", "hunter2", "openssl rsa -in k.pem -passin [redacted:password]"},
	{"keytool", "keytool -storepass hunter2 -list", "hunter2", "keytool -storepass [redacted:password] -list"},
	{"kubectl literal", "kubectl create secret generic a --from-literal=password=hunter2", "hunter2", "kubectl create secret generic a --from-literal=password=[redacted:password]"},
	{"PowerShell", `$env:API_KEY = "hunter2"; ls`, "hunter2", `$env:API_KEY = "[redacted:api-key]"; ls`},
	{"heredoc into a file", "cat > .env <<EOF\nAPI_KEY=hunter2\nEOF", "hunter2", "cat > .env <<EOF\nAPI_KEY=[redacted:api-key]\nEOF"},
	{"echo into a file", `echo "TOKEN=hunter2" >> .env`, "hunter2", `echo "TOKEN=[redacted:token]" >> .env`},
	{"sed", `sed -i 's/^PASSWORD=.*/PASSWORD=hunter2/' .env`, "hunter2", `sed -i 's/^PASSWORD=[redacted:password]' .env`},
	{"Docker token", "x " + "dckr_" + "pat_AbCdEfGh1jKlMnOpQrStUvWxYz0", "pat_AbCd", "x [redacted:docker-token]"},
	{"a space of the word", `PASSWORD=a\ hunter2 ls`, "hunter2", `PASSWORD=[redacted:password] ls`},
	{"a password named pass that begins with a digit", "pass=1secret", "1secret", "pass=[redacted:password]"},
	{"two in a row", "A_TOKEN=abc123 B_TOKEN=def456", "def456", "A_TOKEN=[redacted:token] B_TOKEN=[redacted:token]"},
}

var ordinary = []string{
	"ls -la", "git commit -m 'fix: token refresh'", "git checkout 3f786850e387550fdab836ed7e6dc881de23001b",
	"rm -rf node_modules", "npm test -- --watch=false", "go test ./... -run TestToken -count=1",
	"echo password", "grep -rn 'password' src/", "cat token.go", "kubectl get secret -n kube-system", "kubectl describe secret my-secret",
	"curl https://example.com:8080/@scope/pkg?x=1#y", "docker run -u 1000:1000 -p 8080:80 img", "git clone git@github.com:a/b.git",
	"ssh user@host:22 true", "npm install @types/node@20 left-pad@^1.3.0", "https://registry.example.test/@babel/core/-/core-7.1.0.tgz",
	`"integrity": "sha512-oGMuvW3Vz2G2M6rjlnAlQxQzUiIVC2pm9QvjHrGyC2g4rO0sQ2QdLm0D0gnWq0pCk2vJ8wFvGGqf6YyHn0aZ2w=="`,
	"550e8400-e29b-41d4-a716-446655440000", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
	"data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
	"github.com/x/y v1.2.3 h1:abcdefghijklmnopqrstuvwxyz0123456789ABCDEFG=",
	"--- PASS: TestFoo (0.00s)\nPASS\nok  pkg 0.1s", "PASS: test_one", "12 passed, 0 failed; pass=12",
	"cd /home/dev && PWD=/tmp make", "PASSWORD=$(pass show db) ./run", `TOKEN="$GITHUB_TOKEN" ./run`, "TOKEN=${TOKEN} ./run", "PASSWORD=`cat f` x",
	"token: ${{ secrets.GITHUB_TOKEN }}", "password: <your password>", "password=****** x", "max_tokens: 4096", "tokens = tokenize(text)",
	"token := r.Header.Get(\"X\")", "password: string;", "const token = getToken();", "if token == expected {", "this.token = opts.token",
	"secretName: my-tls", "tokenizer=bpe", "--token-file /run/t", "--password-stdin", "token_type=bearer", "secret::Key", "password != x",
	"DOCKER_BUILDKIT=1 docker build --secret id=npm,src=.npmrc .", "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
	"-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----", "keyboard: de", "monkey=1", "task-force-sk-learn-something-with-dashes",
	"see https://docs.rs/tokio/1.0.0/tokio/", "bearer of bad news everyone", "Authorization: ${AUTH}", "use Basic auth", "sk-learn", "author: me", "pass through", "mkdir -p a/b", "a:b=c:d==e",
	"xml: unexpected token: expected a comma", "The tests should pass: memory is freed", `t.Fatalf("secret = %x, want %x", a, b)`,
	`open "/etc/passwd": invalid URI`, "for _, pass := range all {", `{"token": "[redacted]"}`, "NewPrivateKey: %v",
	`{"type":"object","properties":{"password":{"type":"string","description":"of the user"}}}`,
}

func TestSecretsAreTakenOut(t *testing.T) {
	t.Parallel()
	r := New()
	for _, tc := range secrets {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			res := r.Text([]byte(tc.in), 0)
			if got := string(res.Data); got != tc.want {
				t.Errorf("\n got %q\nwant %q", got, tc.want)
			}
			if res.Redacted == 0 || res.Full != len(tc.in) || res.Cut {
				t.Errorf("result %d redacted, full %d, cut %v", res.Redacted, res.Full, res.Cut)
			}
			if strings.Contains(string(res.Data), tc.secret) {
				t.Errorf("%q is still there", tc.secret)
			}
		})
	}
}

func TestOrdinaryTextIsUntouched(t *testing.T) {
	t.Parallel()
	r := New()
	for _, in := range ordinary {
		if res := r.Text([]byte(in), 0); string(res.Data) != in || res.Redacted != 0 {
			t.Errorf("%q became %q", in, res.Data)
		}
	}
}
