// SPDX-License-Identifier: Apache-2.0

package rawjson_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/tripline-sh/tripline/hooks/agents/internal/rawjson"
)

// texts are JSON texts and near misses: table and fuzz seeds in one.
var texts = []struct {
	name, text string
	want       error // nil = an object
}{
	{"an empty object", `{}`, nil},
	{"white space around", " \t\r\n{ \"a\" : [ 1 , { } ] } \n", nil},
	{"every kind of value", `{"a":null,"b":true,"c":false,"d":-0.5e+10,"e":"x","f":[],"g":{}}`, nil},
	{"every escape", `{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00"}`, nil},
	{"a lone surrogate", `{"a":"\ud800"}`, nil},
	{"a NUL", `{"a":"\u0000"}`, nil},
	{"an empty text", ``, rawjson.ErrSyntax},
	{"an array", `[1]`, rawjson.ErrNoObject},
	{"a string", `"x"`, rawjson.ErrNoObject},
	{"a second value", `{} {}`, rawjson.ErrSyntax},
	{"a log line behind", "{}\nok", rawjson.ErrSyntax},
	{"a byte order mark", "\ufeff{}", rawjson.ErrSyntax},
	{"a NUL behind", "{}\x00", rawjson.ErrSyntax},
	{"a trailing comma", `{"a":1,}`, rawjson.ErrSyntax},
	{"a comment", `{/**/}`, rawjson.ErrSyntax},
	{"a bare key", `{a:1}`, rawjson.ErrSyntax},
	{"single quotes", `{'a':1}`, rawjson.ErrSyntax},
	{"no colon", `{"a" 1}`, rawjson.ErrSyntax},
	{"no value", `{"a":}`, rawjson.ErrSyntax},
	{"a bare newline in a string", "{\"a\":\"\n\"}", rawjson.ErrSyntax},
	{"a bare NUL in a string", "{\"a\":\"\x00\"}", rawjson.ErrSyntax},
	{"an unknown escape", `{"a":"\x41"}`, rawjson.ErrSyntax},
	{"a short unicode escape", `{"a":"\u12"}`, rawjson.ErrSyntax},
	{"a leading zero", `{"a":01}`, rawjson.ErrSyntax},
	{"a plus sign", `{"a":+1}`, rawjson.ErrSyntax},
	{"a number that ends in a point", `{"a":1.}`, rawjson.ErrSyntax},
	{"a number that ends in an exponent", `{"a":1e}`, rawjson.ErrSyntax},
	{"not a number", `{"a":NaN}`, rawjson.ErrSyntax},
	{"a misspelt word", `{"a":nul}`, rawjson.ErrSyntax},
	{"bytes that are not UTF-8", "{\"a\":\"\xff\"}", rawjson.ErrUTF8},
	{"a surrogate in UTF-8", "{\"a\":\"\xed\xa0\x80\"}", rawjson.ErrUTF8},
	{"as deep as allowed", strings.Repeat(`{"a":`, 199) + "{}" + strings.Repeat("}", 199), nil},
	{"deeper than allowed", strings.Repeat(`{"a":`, 200) + "{}" + strings.Repeat("}", 200), rawjson.ErrDepth},
	{"a million open brackets", `{"a":` + strings.Repeat("[", 1<<20), rawjson.ErrDepth},
}

func none(_, _ []byte) error { return nil }

func TestObject(t *testing.T) {
	t.Parallel()
	for _, tc := range texts {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if err := rawjson.Object([]byte(tc.text), none); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

func TestMembersAliasTheText(t *testing.T) {
	t.Parallel()
	text := []byte(` {"a" : [1, 2] , "b\u0063":"x" , "a":{}}`)
	var got []string
	err := rawjson.Object(text, func(k, v []byte) error {
		got = append(got, string(k)+"="+string(v))
		return nil
	})
	want := []string{`"a"=[1, 2]`, `"b\u0063"="x"`, `"a"={}`}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %q, %v; want %q", got, err, want)
	}
	stop := errors.New("stop")
	if err := rawjson.Object(text, func(_, _ []byte) error { return stop }); err != stop {
		t.Errorf("the callback's error came back as %v", err)
	}
}

func TestArray(t *testing.T) {
	t.Parallel()
	var got []string
	each := func(v []byte) error { got = append(got, string(v)); return nil }
	if err := rawjson.Array([]byte(` [1 , "x",{ }] `), each); err != nil || !reflect.DeepEqual(got, []string{"1", `"x"`, "{ }"}) {
		t.Errorf("got %q, %v", got, err)
	}
	for _, bad := range []string{"", "{}", "[1,]", "[1] 2", "[\"\xff\"]"} {
		if rawjson.Array([]byte(bad), each) == nil {
			t.Errorf("%q passed as an array", bad)
		}
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"plain", `"ls -l"`, "ls -l"},
		{"escapes", `"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t"},
		{"a NUL", `"a\u0000b"`, "a\x00b"},
		{"a surrogate pair", `"\ud83d\ude00"`, "😀"},
		{"a lone high surrogate", `"a\ud800b"`, "a\ufffdb"},
		{"a lone low surrogate", `"\udc00"`, "\ufffd"},
		{"two high surrogates", `"\ud800\ud83d\ude00"`, "\ufffd😀"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got, ok := rawjson.Text([]byte(tc.in)); !ok || got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	if _, ok := rawjson.Text([]byte("12")); ok {
		t.Error("a number passed as a string")
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	keys := rawjson.NewKeys("command", "task_id", "description")
	for _, tc := range []struct {
		name, key string
		n         int
		exact     bool
	}{
		{"the name", `"command"`, 0, true},
		{"the name in escapes", `"\u0063ommand"`, 0, true},
		{"all of it in escapes", `"\u0063\u006f\u006d\u006d\u0061\u006e\u0064"`, 0, true},
		{"capital first", `"Command"`, 0, false},
		{"capitals in escapes", `"\u0043ommand"`, 0, false},
		{"the Kelvin sign", "\"tas\u212a_id\"", 1, false},
		{"the long s", "\"ta\u017fk_id\"", 1, false},
		{"the long s in escapes", `"de\u017fcription"`, 2, false},
		{"another name", `"commands"`, -1, false},
		{"another separator", `"taskId"`, -1, false},
		{"a NUL inside", `"com\u0000mand"`, -1, false},
		{"the empty key", `""`, -1, false},
		{"a very long key", `"` + strings.Repeat("c", 1<<16) + `"`, -1, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if n, exact := keys.Find([]byte(tc.key)); n != tc.n || exact != tc.exact {
				t.Errorf("got %d %v, want %d %v", n, exact, tc.n, tc.exact)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	drop := func(key string, _ []byte) bool { return key == "description" }
	for _, tc := range []struct {
		name, in, want string
		err            error
	}{
		{"sorted, without space", "{ \"b\" : 1 ,\n\"a\" : [ 1 , { \"d\":0,\"c\":0 } ] }", `{"a":[1,{"c":0,"d":0}],"b":1}`, nil},
		{"numbers as written", `{"a":1.0,"b":1e2,"c":12345678901234567890}`, `{"a":1.0,"b":1e2,"c":12345678901234567890}`, nil},
		{"one spelling of a string", `{"a":"\u0041\/\u00e9\n\u000a\u007f"}`, `{"a":"A/é\n\n\u007f"}`, nil},
		{"lone surrogates stay apart", `{"a":"\uD800","b":"\ufffd"}`, "{\"a\":\"\\ud800\",\"b\":\"\ufffd\"}", nil},
		{"commentary is dropped", `{"description":"x","command":"ls"}`, `{"command":"ls"}`, nil},
		{"commentary is dropped in any spelling of its key", `{"\u0064escription":"x"}`, `{}`, nil},
		{"nested keys of that name stay", `{"a":{"description":"x"}}`, `{"a":{"description":"x"}}`, nil},
		{"an empty object", ` {} `, `{}`, nil},
		{"empty inside", `{"a":[],"b":{},"c":[[],{}]}`, `{"a":[],"b":{},"c":[[],{}]}`, nil},
		{"the same key twice", `{"a":1,"\u0061":2}`, "", rawjson.ErrDuplicate},
		{"the same key twice, nested", `{"x":[{"a":1,"b":2,"a":3}]}`, "", rawjson.ErrDuplicate},
		{"the dropped key twice", `{"description":1,"description":2}`, "", rawjson.ErrDuplicate},
		{"not an object", `[]`, "", rawjson.ErrNoObject},
		{"broken", `{"a"`, "", rawjson.ErrSyntax},
		{"too many members", `{"a":[` + strings.Repeat(`{"a":1},`, 100_000) + `1]}`, "", rawjson.ErrTangled},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := rawjson.Canonical([]byte(tc.in), drop)
			if !errors.Is(err, tc.err) || string(got) != tc.want {
				t.Errorf("got %.200s, %v; want %.200s, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestCanonicalRefusesWorkBeyondTheSizeOfTheText(t *testing.T) {
	t.Parallel()
	// Each level is out of order, so that each would move all that lies inside it.
	in := strings.Repeat(`{"b":`, 190) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat(`,"a":0}`, 190)
	if _, err := rawjson.Canonical([]byte(in), nil); !errors.Is(err, rawjson.ErrTangled) {
		t.Errorf("got %v", err)
	}
}

func FuzzAgainstEncodingJSON(f *testing.F) {
	for _, tc := range texts {
		if len(tc.text) < 1<<12 {
			f.Add([]byte(tc.text))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		err := rawjson.Object(b, func(k, v []byte) error {
			want := ""
			if json.Unmarshal(k, &want) != nil {
				t.Fatalf("key %q is none for encoding/json", k)
			}
			if got, ok := rawjson.Text(k); !ok || got != want {
				t.Fatalf("key %q read as %q, want %q", k, got, want)
			}
			if !json.Valid(v) {
				t.Fatalf("value %q is none for encoding/json", v)
			}
			return nil
		})
		object := json.Valid(b) && utf8.Valid(b) && strings.TrimLeft(string(b), " \t\r\n")[0] == '{'
		if err == nil != object && !errors.Is(err, rawjson.ErrDepth) {
			t.Fatalf("error %v, but encoding/json finds object=%v", err, object)
		}
		one, err1 := rawjson.Canonical(b, nil)
		if err1 != nil {
			return
		}
		if err != nil {
			t.Fatalf("canonical form of what is no object: %q", one)
		}
		two, err2 := rawjson.Canonical(one, nil)
		if err2 != nil || string(one) != string(two) {
			t.Fatalf("the canonical form %q has another one: %q, %v", one, two, err2)
		}
		var x, y any
		if json.Unmarshal(b, &x) == nil && json.Unmarshal(one, &y) == nil && !reflect.DeepEqual(x, y) {
			t.Fatalf("%q became %q", b, one)
		}
	})
}
