// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

var documents = []struct{ name, in, want string }{
	{"nothing to do keeps every byte", ` {"a" : [1, "x\u0041\/", null], "b":"é\ud83d" }`, ` {"a" : [1, "x\u0041\/", null], "b":"é\ud83d" }`},
	{"a command", `{"command":"export TOKEN=abc123 && ls","timeout":5}`, `{"command":"export TOKEN=[redacted:token] && ls","timeout":5}`},
	{"a token spelled with escapes", `{"x":"\u0067hp\u005f16C7e42F292c6912E7710c838347Ae178B4a"}`, `{"x":"[redacted:github-token]"}`},
	{"a separator spelled with an escape", `{"x":"PASSWORD\u003dhunter2"}`, `{"x":"PASSWORD=[redacted:password]"}`},
	{"a key spelled with escapes", `{"pass\u0077ord":"hunter2"}`, `{"pass\u0077ord":"[redacted:password]"}`},
	{"quotes within", `{"x":"curl -H \"Authorization: Bearer abcdefghijklmnop\" u"}`, `{"x":"curl -H \"Authorization: Bearer [redacted:authorization]\" u"}`},
	{"a JSON document within a string", `{"content":"{\"api_key\":\"abc123\",\n\"n\":1}"}`, `{"content":"{\"api_key\":\"[redacted:api-key]\",\n\"n\":1}"}`},
	{"a name that says it", `{"api_key":"a b","nested":{"clientSecret":"x y"},"user":"me"}`, `{"api_key":"[redacted:api-key]","nested":{"clientSecret":"[redacted:secret]"},"user":"me"}`},
	{"a list under such a name", `{"passwords":["a","b"],"token":["c"]}`, `{"passwords":["[redacted:secrets]","[redacted:secrets]"],"token":["[redacted:token]"]}`},
	{"an object of credentials", `{"credentials":{"user":"a","value":"b"}}`, `{"credentials":{"user":"[redacted:credential]","value":"[redacted:credential]"}}`},
	{"a schema", `{"password":{"type":"string"}}`, `{"password":{"type":"string"}}`},
	{"a number under such a name", `{"password":123456,"token":7}`, `{"password":"[redacted:password]","token":7}`},
	{"name and value", `[{"name":"API_TOKEN","value":"a b"},{"name":"HOME","value":"/home"}]`, `[{"name":"API_TOKEN","value":"[redacted:token]"},{"name":"HOME","value":"/home"}]`},
	{"an argument list", `{"args":["--password","hunter 2","--verbose"]}`, `{"args":["--password","[redacted:password]","--verbose"]}`},
	{"headers", `{"headers":{"Authorization":"Bearer x"}}`, `{"headers":{"Authorization":"[redacted:authorization]"}}`},
	{"a reference stays", `{"env":{"TOKEN":"${TOKEN}","PASSWORD":""}}`, `{"env":{"TOKEN":"${TOKEN}","PASSWORD":""}}`},
	{"a secret as a key", `{"ghp_16C7e42F292c6912E7710c838347Ae178B4a":1}`, `{"[redacted:github-token]":1}`},
	{"lone surrogates survive beside a secret", `{"x":"\ud83d TOKEN=abc123 \udc00\ud83d\ude00"}`, `{"x":"\ud83d TOKEN=[redacted:token] \udc00😀"}`},
	{"a bare string", `"TOKEN=abc123"`, `"TOKEN=[redacted:token]"`},
	{"bytes that are no UTF-8", "{\"x\":\"a\xffb\"}", "{\"x\":\"a\ufffdb\"}"},
	{"control characters and markup", `{"x":"\u0000\u001b<&> TOKEN=abc123"}`, `{"x":"\u0000\u001b<&> TOKEN=[redacted:token]"}`},
	{"no JSON", `{"TOKEN=abc123 `, `"{\"TOKEN=[redacted:token] "`},
	{"nothing", ``, `null`},
	{"a settings file", `{"content":"A=1\nDB_PASSWORD=a&b;c|d\nexport TOKEN=e(f)g\n  password: h<i>j\r\nx: y"}`, `{"content":"A=1\nDB_PASSWORD=[redacted:password]\nexport TOKEN=[redacted:token]\n  password: [redacted:password]\r\nx: y"}`},
	{"a command of several lines", `{"command":"A=1\nDB_PASSWORD=a;reboot\n"}`, `{"command":"A=1\nDB_PASSWORD=[redacted:password];reboot\n"}`},
	{"a list of commands", `{"commands":["TOKEN=a;reboot"],"x":"TOKEN=a;b"}`, `{"commands":["TOKEN=[redacted:token];reboot"],"x":"TOKEN=[redacted:token]"}`},
	{"code in a file", `{"content":"password = get(x);\nsecret: a;\n"}`, `{"content":"password = get(x);\nsecret: [redacted:secret]\n"}`},
	{"repeated keys", `{"token":"a1b2c3","token":"d4e5f6"}`, `{"token":"[redacted:token]","token":"[redacted:token]"}`},
}

func TestJSONKeepsItsForm(t *testing.T) {
	t.Parallel()
	r := New()
	for _, tc := range documents {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := string(r.JSON([]byte(tc.in), 0).Data); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

func TestEverySecretIsTakenOutOfAJSONString(t *testing.T) {
	t.Parallel()
	r := New()
	for _, tc := range secrets {
		if !strings.Contains(tc.secret, " ") { // a JSON list of its own is told apart elsewhere
			plain, err := json.Marshal(map[string]string{"command": tc.in})
			if err != nil {
				t.Fatal(err)
			}
			for _, doc := range [][]byte{plain, escapeAll(tc.in)} {
				var got map[string]string
				if err := json.Unmarshal(r.JSON(doc, 0).Data, &got); err != nil {
					t.Fatal(err)
				}
				if got["command"] != tc.want {
					t.Errorf("%s:\n got %q\nwant %q", tc.name, got["command"], tc.want)
				}
			}
		}
	}
}

// escapeAll is a document in which every character of s is spelled as an escape.
func escapeAll(s string) []byte {
	b := []byte(`{"command":"`)
	for _, r := range s {
		b = fmt.Appendf(b, `\u%04x`, r)
	}
	return append(b, `"}`...)
}

func TestLongJSONIsShortened(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("0123456789", n/10) }
	cases := []struct {
		name, in string
		max      int
		keeps    []string
	}{
		{"the longest string goes first", `{"path":"/a/b","content":"` + long(100_000) + `","old":"` + long(500) + `"}`, 4096, []string{`"/a/b"`, `"` + long(500) + `"`, "bytes cut]"}},
		{"beginning and end stay", `{"command":"first ` + long(10_000) + ` last"}`, 1000, []string{"first ", " last\""}},
		{"several long ones share", `["` + long(9000) + `","` + long(9000) + `"]`, 2000, []string{"bytes cut]"}},
		{"escapes are not split", `{"x":"` + strings.Repeat(`\u00e9\"\\`, 5000) + `"}`, 777, []string{"bytes cut]"}},
		{"pairs are not split", `{"x":"` + strings.Repeat(`\ud83d\ude00`, 5000) + `"}`, 779, []string{"bytes cut]"}},
		{"backslashes are not split", `{"x":"` + strings.Repeat(`\\`, 5000) + `"}`, 778, []string{"bytes cut]"}},
		{"characters are not split", `{"x":"` + strings.Repeat("漢", 5000) + `"}`, 776, []string{"bytes cut]"}},
		{"no JSON is cut as a string", long(5000) + "{", 500, []string{"bytes cut]"}},
		{"too many keys", "{" + strings.TrimSuffix(strings.Repeat(`"k":1,`, 5000), ",") + "}", 500, []string{`{"truncated":true,"len":30001,"redacted":0}`}},
		{"one long key", `{"` + long(5000) + `":1}`, 500, []string{`{"truncated":true,"len":5006,"redacted":0}`}},
		{"deep nesting", strings.Repeat("[", 9000) + strings.Repeat("]", 9000), 500, []string{`"truncated":true`}},
		{"too deep nesting", strings.Repeat("[", 50_000) + strings.Repeat("]", 50_000), 500, []string{`"[[[`, "bytes cut]"}},
	}
	r := New()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			res := r.JSON([]byte(tc.in), tc.max)
			checkJSON(t, []byte(tc.in), res, tc.max)
			if !res.Cut {
				t.Error("not marked as cut")
			}
			for _, k := range tc.keeps {
				if !bytes.Contains(res.Data, []byte(k)) {
					t.Errorf("%q is missing in %.200s", k, res.Data)
				}
			}
			if tc.name == "pairs are not split" && bytes.Contains(res.Data, []byte(`"\ude00`)) {
				t.Error("half a pair")
			}
		})
	}
}

func TestASecretAcrossTheBorderOfACutIsTakenOut(t *testing.T) {
	t.Parallel()
	r := New()
	for at := 300; at < 420; at++ {
		in := strings.Repeat("a ", at/2) + ghp + strings.Repeat(" b", 400)
		for _, res := range []Result{r.Text([]byte(in), 512), r.JSON([]byte(`{"x":"`+in+`"}`), 512)} {
			if !res.Cut || res.Redacted != 1 || bytes.Contains(res.Data, []byte("ghp_")) || bytes.Contains(res.Data, []byte("347Ae178B4a")) {
				t.Fatalf("at %d: %s", at, res.Data)
			}
		}
	}
}

func TestTextIsCutInTheMiddle(t *testing.T) {
	t.Parallel()
	r := New()
	res := r.Text([]byte("first "+strings.Repeat("ä", 5000)+" last"), 501)
	if !res.Cut || len(res.Data) > 501 || len(res.Data) < 430 || !utf8.Valid(res.Data) || res.Full != 10011 {
		t.Errorf("%d bytes, cut %v, full %d: %s", len(res.Data), res.Cut, res.Full, res.Data)
	}
	if !bytes.HasPrefix(res.Data, []byte("first ä")) || !bytes.HasSuffix(res.Data, []byte("ä last")) {
		t.Errorf("beginning or end is missing: %s", res.Data)
	}
	if got := r.Text(make([]byte, DefaultMax+1), 0); len(got.Data) > DefaultMax || !got.Cut {
		t.Errorf("default limit: %d bytes", len(got.Data))
	}
	if got := r.Text([]byte(strings.Repeat("x", 1000)), 1); len(got.Data) > minMax {
		t.Errorf("least limit: %d bytes", len(got.Data))
	}
}

func TestTheInputIsNeverChanged(t *testing.T) {
	t.Parallel()
	r := New()
	for _, tc := range documents {
		in := []byte(tc.in)
		r.JSON(in, 0)
		r.Text(in, 0)
		if string(in) != tc.in {
			t.Errorf("%s: became %s", tc.name, in)
		}
	}
}

// A program must not be able to hide what it runs behind something that looks like a secret.
func TestACommandCannotHideInASecret(t *testing.T) {
	t.Parallel()
	r := New()
	for _, in := range []string{
		"PASSWORD=$(rm -rf ~) x", `PASSWORD="$(rm -rf ~)" x`, `PASSWORD="a$(rm -rf ~)" x`, "PASSWORD=`rm -rf ~` x", "PASSWORD=a;rm -rf ~",
		"PASSWORD=a&&rm -rf ~", "TOKEN=a|rm -rf ~", `PASSWORD='x\' ; rm -rf ~ ; echo ' '`, "PASSWORD=\"a\nrm -rf ~\n\"",
		"-----BEGIN PRIVATE KEY-----\nrm -rf ~\n-----END PRIVATE KEY-----", "echo -----BEGIN PRIVATE KEY-----; rm -rf ~", "Cookie: a=b; rm -rf ~",
		"curl -u a:$(rm -rf ~) x", "x --token $(rm -rf ~)", "Authorization: Bearer x; rm -rf ~", "https://a:b;rm -rf ~;@h", "TOKEN=${X:-$(rm -rf ~)}",
	} {
		if res := r.Text([]byte(in), 0); !bytes.Contains(res.Data, []byte("rm -rf ~")) {
			t.Errorf("%q became %q", in, res.Data)
		}
	}
}

func checkJSON(t *testing.T, in []byte, res Result, max int) {
	t.Helper()
	if !json.Valid(res.Data) || !utf8.Valid(res.Data) {
		t.Errorf("no valid JSON or UTF-8: %.300q", res.Data)
	}
	if len(res.Data) > limit(max) {
		t.Errorf("%d bytes, limit %d", len(res.Data), limit(max))
	}
	trimmed := bytes.TrimLeft(in, " \t\r\n")
	if json.Valid(in) && trimmed[0] == '{' && bytes.TrimLeft(res.Data, " \t\r\n")[0] != '{' {
		t.Errorf("an object became %.100s", res.Data)
	}
	if res.Full != len(in) {
		t.Errorf("full %d, want %d", res.Full, len(in))
	}
}

func FuzzJSON(f *testing.F) {
	for _, tc := range documents {
		f.Add([]byte(tc.in), 0)
	}
	f.Add([]byte(`{"x":"`+strings.Repeat(`\ud83d\ude00\\`, 50)+`"}`), 200)
	r := New()
	f.Fuzz(func(t *testing.T, in []byte, max int) {
		before := bytes.Clone(in)
		res := r.JSON(in, max)
		checkJSON(t, in, res, max)
		if !bytes.Equal(in, before) {
			t.Error("input changed")
		}
		if res.Redacted == 0 && !res.Cut && json.Valid(in) && utf8.Valid(in) && !bytes.Equal(res.Data, in) {
			t.Errorf("changed without need: %q", res.Data)
		}
		// A secret inside survives no neighbourhood.
		doc, err := json.Marshal(map[string]string{"x": strings.ToValidUTF8(string(in), "?") + "\n" + ghp})
		if err != nil {
			t.Fatal(err)
		}
		if out := r.JSON(doc, max).Data; bytes.Contains(out, []byte(ghp)) {
			t.Errorf("the secret is still in %q", out)
		}
	})
}

func FuzzText(f *testing.F) {
	for _, tc := range secrets {
		f.Add(tc.in)
	}
	for _, s := range ordinary {
		f.Add(s)
	}
	r := New()
	f.Fuzz(func(t *testing.T, in string) {
		res := r.Text([]byte(in), 300)
		if len(res.Data) > 300 || !utf8.Valid(res.Data) {
			t.Errorf("%d bytes, valid %v", len(res.Data), utf8.Valid(res.Data))
		}
		for _, around := range []string{in + "\n" + ghp + "\n" + in, in + "\nPASSWORD=hunter2hunter2 " + in, ghp + in} {
			out := string(r.Text([]byte(around), 1<<20).Data)
			if strings.Count(out, ghp) > strings.Count(in, ghp)*2 || strings.Contains(out, "hunter2hunter2") && !strings.Contains(in, "hunter2hunter2") {
				t.Errorf("the secret is still in %q", out)
			}
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	command := `cd /home/dev/shop && git log --oneline -5 && grep -rn "passwordField" src/ | head; npm test -- --watch=false 2>&1 | tail -20 # retry with DEBUG=1 when port: 8080 is busy, see http://localhost:8080/health`
	line := "\tif err := store.Put(ctx, key, value); err != nil { return fmt.Errorf(\"put %q: %w\", key, err) } // name: value, a=b\n"
	r := New()
	for _, bc := range []struct {
		name string
		doc  []byte
	}{
		{"200B", mustJSON(b, command)},
		{"10KB", mustJSON(b, strings.Repeat(line, 10<<10/len(line)))},
		{"6MB", mustJSON(b, strings.Repeat(line, 6<<20/len(line)))},
		{"6MB of halves", mustJSON(b, strings.Repeat("eyJa-password=\"sk-ghp_://a:-----BEGIN ", 6<<20/38))},
	} {
		b.Run(bc.name, func(b *testing.B) {
			b.SetBytes(int64(len(bc.doc)))
			b.ReportAllocs()
			for b.Loop() {
				r.JSON(bc.doc, 0)
			}
		})
	}
}

func mustJSON(b *testing.B, s string) []byte {
	doc, err := json.Marshal(map[string]string{"command": s})
	if err != nil {
		b.Fatal(err)
	}
	return doc
}
