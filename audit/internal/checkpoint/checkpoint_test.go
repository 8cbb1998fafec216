// SPDX-License-Identifier: Apache-2.0

package checkpoint_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/internal/checkpoint"
)

func newKey(t testing.TB) *checkpoint.Key {
	t.Helper()
	text, err := checkpoint.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	k, err := checkpoint.ParseKey(text + "\n")
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestACheckpointSaysWhatWasSigned(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	want := checkpoint.Checkpoint{LogID: k.LogID(), Segment: "2026-11-30-000000000001", Size: 4711, Root: tlog.RecordHash([]byte("x"))}
	msg, err := k.Sign(want)
	if err != nil {
		t.Fatal(err)
	}
	text := "tripline.log/" + k.LogID() + "/2026-11-30-000000000001\n4711\n" + want.Root.String() + "\n"
	if !strings.HasPrefix(string(msg), text+"\n— tripline.log/"+k.LogID()+" ") {
		t.Errorf("checkpoint %q", msg)
	}
	v, id, err := checkpoint.ParseVerifier(k.Verifier() + "\n")
	if err != nil || id != k.LogID() {
		t.Fatalf("verifier: %q, %v", id, err)
	}
	for name, open := range map[string]func([]byte) (checkpoint.Checkpoint, error){
		"key": k.Open, "verifier": func(b []byte) (checkpoint.Checkpoint, error) { return checkpoint.Open(b, v) },
	} {
		if got, err := open(msg); err != nil || got != want {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		for i := range msg {
			bad := append([]byte(nil), msg...)
			bad[i] ^= 1
			if got, err := open(bad); err == nil {
				t.Fatalf("%s: byte %d changed: %+v", name, i, got)
			}
		}
	}
	if _, err := newKey(t).Open(msg); !errors.Is(err, checkpoint.ErrKey) {
		t.Errorf("another key: %v", err)
	}
	if _, err := k.Open([]byte(strings.Repeat("x", checkpoint.MaxLen+1))); !errors.Is(err, checkpoint.ErrForm) {
		t.Errorf("a long one: %v", err)
	}
}

func TestKeysOfSomethingElseAreRefusedWithoutQuotingThem(t *testing.T) {
	t.Parallel()
	foreign, fvkey, err := note.GenerateKey(zeros{}, "example.org/log")
	if err != nil {
		t.Fatal(err)
	}
	// A signer of another log is a signer all the same; its checkpoints carry its own name.
	for _, text := range []string{"", "x", "PRIVATE+KEY+a+b+c", strings.Replace(foreign, "+A", "+B", 1), strings.Repeat("+", 100)} {
		if _, err := checkpoint.ParseKey(text); err == nil || text != "" && text != "x" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := checkpoint.ParseKey(foreign); err == nil {
		t.Error("a key of another kind of log was taken")
	}
	for _, vkey := range []string{"", "x", fvkey, "tripline.log/+00000000+AAAA"} {
		if _, _, err := checkpoint.ParseVerifier(vkey); err == nil {
			t.Errorf("%q was taken", vkey)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

var root = tlog.RecordHash(nil).String()

var texts = []struct {
	text string
	ok   bool
}{
	{"tripline.log/ab/2026-11-30-000000000001\n1\n" + root + "\n", true},
	{"tripline.log/ab/x\n0\n" + root + "\n", true},
	{"tripline.log/ab/x\n01\n" + root + "\n", false},
	{"tripline.log/ab/x\n-1\n" + root + "\n", false},
	{"tripline.log/ab/x\n9223372036854775808\n" + root + "\n", false},
	{"tripline.log/ab/x/y\n1\n" + root + "\n", false},
	{"tripline.log//x\n1\n" + root + "\n", false},
	{"tripline.log/ab/\n1\n" + root + "\n", false},
	{"tripline.log/ab\n1\n" + root + "\n", false},
	{"other.log/ab/x\n1\n" + root + "\n", false},
	{"tripline.log/ab/\xb9\n1\n" + root + "\n", false},
	{"tripline.log/ab/x y\n1\n" + root + "\n", false},
	{"tripline.log/a\tb/x\n1\n" + root + "\n", false},
	{"tripline.log/ab/x\n1\n" + root[:40] + "\n", false},
	{"tripline.log/ab/x\n1\n" + root, false},
	{"tripline.log/ab/x\n1\n" + root + "\nmore\n", false},
	{"", false},
	{"\n\n\n", false},
}

func TestOnlyTheThreeLinesAreACheckpoint(t *testing.T) {
	t.Parallel()
	for _, tt := range texts {
		if c, err := checkpoint.Parse(tt.text); (err == nil) != tt.ok {
			t.Errorf("%q: %+v, %v", tt.text, c, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range texts {
		f.Add(tt.text)
	}
	k := newKey(f)
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := k.Open([]byte(text)); err == nil {
			t.Fatalf("forged: %q", text)
		}
		c, err := checkpoint.Parse(text)
		if err != nil {
			return
		}
		c.LogID = k.LogID()
		msg, err := k.Sign(c)
		if err != nil {
			t.Fatalf("read but not signed: %v", err)
		}
		if back, err := k.Open(msg); err != nil || back != c {
			t.Fatalf("signed %+v, read %+v, %v", c, back, err)
		}
	})
}
