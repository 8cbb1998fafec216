// SPDX-License-Identifier: Apache-2.0

package ingest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// newSpool returns an empty spool and its directory.
func newSpool(t testing.TB) (*Spool, string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func put(t testing.TB, dir, event, payload string) {
	t.Helper()
	m := spool.Meta{Flags: spool.FlagSent, Answer: spool.Passed, Fault: spool.Absent, Read: uint64(len(payload))}
	if err := spool.Write(dir, m, wire.Header{Agent: "claude", Event: event, Token: "tok", Deadline: 3, Started: 1, Sent: 2, ParentPID: 7}, []byte(payload)); err != nil {
		t.Fatal(err)
	}
}

func scan(t testing.TB, s *Spool, limit int) *Result {
	t.Helper()
	res, err := s.Scan(limit)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestWhatTheHookWroteIsRead(t *testing.T) {
	t.Parallel()
	s, dir := newSpool(t)
	payloads := []string{"", `{"a":1}`, strings.Repeat("x", spool.MaxPayload), strings.Repeat("y", spool.MaxPayload+1)}
	for i, p := range payloads {
		put(t, dir, fmt.Sprint("Event", i), p)
	}
	res := scan(t, s, 10)
	if len(res.Names) != len(payloads) || res.More || len(res.Bad) != 0 || !slices.IsSorted(res.Names) {
		t.Fatalf("scan found %+v", res)
	}
	for i, name := range res.Names {
		e, err := s.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		want := &Entry{
			Name:    name,
			Meta:    spool.Meta{Flags: spool.FlagSent, Answer: spool.Passed, Fault: spool.Absent, Read: uint64(len(payloads[i]))},
			Header:  wire.Header{Agent: "claude", Event: fmt.Sprint("Event", i), Token: "tok", Deadline: 3, Started: 1, Sent: 2, ParentPID: 7},
			Payload: []byte(payloads[i]),
		}
		if len(payloads[i]) > spool.MaxPayload {
			want.Payload = want.Payload[:spool.MaxPayload]
			want.Meta.Flags |= spool.FlagCut
		}
		want.Header.PayloadLen = uint32(len(want.Payload))
		if d := cmp.Diff(want, e); d != "" {
			t.Errorf("entry %d (-want +got):\n%.500s", i, d)
		}
	}
}

func TestAnEntryStaysUntilItIsRemoved(t *testing.T) {
	t.Parallel()
	s, dir := newSpool(t)
	for i := range 5 {
		put(t, dir, "Stop", fmt.Sprint(i))
	}
	var got []string
	for {
		res := scan(t, s, 2)
		again := scan(t, s, 2)
		if !slices.Equal(res.Names, again.Names) {
			t.Fatalf("two scans found %q and %q", res.Names, again.Names)
		}
		if len(res.Names) == 0 {
			break
		}
		if want := len(got)+len(res.Names) < 5; res.More != want {
			t.Errorf("after %d entries, More is %v", len(got), res.More)
		}
		for _, name := range res.Names {
			e, err := s.Load(name)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(e.Payload))
			for range 2 {
				if err := s.Remove(name); err != nil {
					t.Error(err)
				}
			}
			if _, err := s.Load(name); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("loading a removed entry: %v", err)
			}
		}
	}
	if !slices.Equal(got, []string{"0", "1", "2", "3", "4"}) {
		t.Errorf("entries came as %q", got)
	}
}

func entryFile(payload string) (name string, content []byte) {
	b := spool.AppendPreamble(nil, spool.Meta{Answer: spool.Silent, Fault: spool.Absent, Read: uint64(len(payload))})
	b, err := wire.AppendHeader(b, &wire.Header{Agent: "claude", Event: "Stop", PayloadLen: uint32(len(payload))})
	if err != nil {
		panic(err)
	}
	b = append(b, payload...)
	return fmt.Sprintf("%019d-1-a-%d.evt", 5, len(b)), b
}

// TestForeignThings puts everything into the spool that a process of the same user could, beside one good entry.
func TestForeignThings(t *testing.T) {
	t.Parallel()
	name, good := entryFile("{}")
	victim := filepath.Join(t.TempDir(), "victim")
	if err := os.WriteFile(victim, good, 0o600); err != nil {
		t.Fatal(err)
	}
	file := func(b []byte) func(string) error {
		return func(path string) error { return os.WriteFile(path, b, 0o600) }
	}
	sized := func(b []byte) string { return fmt.Sprintf("%019d-1-a-%d.evt", 5, len(b)) }
	with := func(at int, v byte) []byte {
		b := bytes.Clone(good)
		b[at] = v
		return b
	}
	for what, tc := range map[string]struct {
		name string
		make func(path string) error
		stay bool // it may stay where it is
	}{
		"a link to an entry":             {name, func(p string) error { return os.Symlink(victim, p) }, false},
		"a link to itself":               {name, func(p string) error { return os.Symlink(p, p) }, false},
		"a link to a device":             {name, func(p string) error { return os.Symlink("/dev/zero", p) }, false},
		"a hard link to another file":    {name, func(p string) error { return os.Link(victim, p) }, false},
		"a FIFO":                         {name, func(p string) error { return syscall.Mkfifo(p, 0o600) }, false},
		"a directory":                    {name, func(p string) error { return os.Mkdir(p, 0o700) }, false},
		"a directory that holds things":  {name, func(p string) error { return os.MkdirAll(p+"/a/b", 0o700) }, false},
		"a socket":                       {name, listen, false},
		"a file that is not in the form": {sized(with(0, 'X')), file(with(0, 'X')), false},
		"a file of an unknown version":   {sized(with(4, 9)), file(with(4, 9)), false},
		"a broken request header":        {sized(with(16, 'X')), file(with(16, 'X')), false},
		"a streamed request header":      {sized(with(21, 1)), file(with(21, 1)), false},
		"a payload that ends early":      {sized(good[1:]), file(good[:len(good)-1]), false},
		"a payload that goes on":         {sized(append(good, 'x')), file(append(bytes.Clone(good), 'x')), false},
		"a cut that was none":            {sized(with(5, spool.FlagCut)), file(with(5, spool.FlagCut)), false},
		"an empty file":                  {sized(nil), file(nil), false},
		"a size other than in the name":  {name, file(append(bytes.Clone(good), good...)), false},
		"a file of 1 TiB":                {name, func(p string) error { return errors.Join(file(nil)(p), os.Truncate(p, 1<<40)) }, false},
		"a name of another kind":         {"notes.txt", file([]byte("x")), false},
		"a name that is almost one":      {name + "~", file(good), false},
		"a name of hostile bytes":        {"\x1b]0;x\a\n\xff", file(good), false},
		"a name of leading dashes":       {"-rf", file(good), false},
		"a count that is a link":         {spool.DroppedName, func(p string) error { return os.Symlink(victim, p) }, false},
		"a count that is a directory":    {spool.DroppedName, func(p string) error { return os.Mkdir(p, 0o700) }, false},
		"a count that is a FIFO":         {spool.DroppedName, func(p string) error { return syscall.Mkfifo(p, 0o600) }, false},
		"a bad that is a link":           {badName, func(p string) error { return os.Symlink(filepath.Dir(victim), p) }, true},
		"a bad that is a file":           {badName, file(nil), true},
		"a name being written, long dead": {strings.Replace(name, ".evt", ".tmp", 1), func(p string) error {
			return errors.Join(file(good)(p), os.Chtimes(p, time.Unix(1, 0), time.Unix(1, 0)))
		}, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s, dir := newSpool(t)
			if err := tc.make(filepath.Join(dir, tc.name)); err != nil {
				t.Fatal(err)
			}
			put(t, dir, "Stop", "good")
			var bad []error
			loaded := 0
			for range 2 { // what was put aside is not met again
				res := scan(t, s, 10)
				bad = append(bad, res.Bad...)
				if res.Dropped != 0 {
					t.Errorf("counted %d drops", res.Dropped)
				}
				for _, n := range res.Names {
					e, err := s.Load(n)
					if err != nil {
						bad = append(bad, err)
						continue
					}
					loaded++
					if string(e.Payload) != "good" {
						t.Errorf("took %q for an entry", e.Payload)
					}
				}
			}
			if loaded != 2 {
				t.Errorf("the good entry was loaded %d times in 2 scans", loaded)
			}
			if want := map[bool]int{false: 1, true: 0}[tc.stay]; len(bad) != want {
				t.Errorf("reported %q, want %d reports", bad, want)
			}
			for _, err := range bad {
				if !errors.Is(err, ErrForeign) || strings.Contains(err.Error(), "{}") || strings.ContainsAny(err.Error(), "\x1b\n") {
					t.Errorf("reported as %q", err)
				}
			}
			if b, err := os.ReadFile(victim); err != nil || !bytes.Equal(b, good) {
				t.Errorf("the victim has changed: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		if e, err := os.ReadDir(filepath.Dir(victim)); err != nil || len(e) != 1 {
			t.Errorf("something was moved through a link: %v, %v", e, err)
		}
	})
}

// listen leaves a socket at path. A relative name keeps it short enough.
func listen(path string) error {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	short := filepath.Join(os.TempDir(), fmt.Sprintf("tl%d", os.Getpid()))
	if err := syscall.Bind(fd, &syscall.SockaddrUnix{Name: short}); err != nil {
		return err
	}
	return os.Rename(short, path)
}

func TestBadThingsBesideABrokenBad(t *testing.T) {
	t.Parallel()
	for what, mk := range map[string]func(path string) error{
		"a link": func(p string) error { return os.Symlink("/nonexistent", p) },
		"a file": func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"full": func(p string) error {
			err := os.Mkdir(p, 0o700)
			for i := range maxBad {
				err = errors.Join(err, os.WriteFile(fmt.Sprint(p, "/", i), nil, 0o600))
			}
			return err
		},
	} {
		t.Run("bad is "+what, func(t *testing.T) {
			t.Parallel()
			s, dir := newSpool(t)
			if err := mk(filepath.Join(dir, badName)); err != nil {
				t.Fatal(err)
			}
			for i := range 3 {
				if err := os.WriteFile(filepath.Join(dir, fmt.Sprint("x", i)), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if first, second := scan(t, s, 1), scan(t, s, 1); len(first.Bad) != 3 || len(second.Bad) != 0 {
				t.Errorf("reported %q, then %q", first.Bad, second.Bad)
			}
		})
	}
}

func TestAnEntryThatIsBeingWrittenIsLeftAlone(t *testing.T) {
	t.Parallel()
	s, dir := newSpool(t)
	name, good := entryFile("{}")
	tmp := strings.Replace(name, ".evt", ".tmp", 1)
	if err := os.WriteFile(filepath.Join(dir, tmp), good, 0o600); err != nil {
		t.Fatal(err)
	}
	if res := scan(t, s, 10); len(res.Names)+len(res.Bad) != 0 {
		t.Errorf("scan found %+v", res)
	}
	s.now = func() time.Time { return time.Now().Add(unfinishedAfter + time.Second) }
	if res := scan(t, s, 10); len(res.Names) != 0 || len(res.Bad) != 1 {
		t.Errorf("later, scan found %+v", res)
	}
}

func TestDropsAreDeclaredExactly(t *testing.T) {
	t.Parallel()
	s, dir := newSpool(t)
	drop := func(n int) {
		f, err := os.OpenFile(filepath.Join(dir, spool.DroppedName), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.Write(make([]byte, n)); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct{ drop, declare, left int }{{0, 0, 0}, {3, 3, 0}, {5, 2, 3}, {1, 4, 0}, {2, 99, 0}} {
		if step.drop > 0 {
			drop(step.drop)
		}
		scan(t, s, 1)
		if err := s.Declared(int64(step.declare)); err != nil {
			t.Fatal(err)
		}
		if res := scan(t, s, 1); res.Dropped != int64(step.left) {
			t.Errorf("%+v left %d drops", step, res.Dropped)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for name, mk := range map[string]func(p string) error{
		"a link":                               func(p string) error { return os.Symlink(base, p) },
		"a file":                               func(p string) error { return os.WriteFile(p, nil, 0o600) },
		"a directory that others may write to": func(p string) error { return errors.Join(os.Mkdir(p, 0o700), os.Chmod(p, 0o770)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := filepath.Join(t.TempDir(), "spool")
			if err := mk(p); err != nil {
				t.Fatal(err)
			}
			if s, err := Open(p); err == nil || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Open = %v, %v", s, err)
			}
		})
	}
	if _, err := Open(filepath.Join(base, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing spool: %v", err)
	}
}

func TestNamesFromOutsideAreNotPaths(t *testing.T) {
	t.Parallel()
	s, dir := newSpool(t)
	outside := filepath.Join(filepath.Dir(dir), "outside")
	if err := os.WriteFile(outside, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"../outside", outside, "", ".", "..", spool.DroppedName, badName} {
		if err := s.Remove(name); !errors.Is(err, ErrForeign) {
			t.Errorf("Remove(%q) = %v", name, err)
		}
		if _, err := s.Load(name); !errors.Is(err, ErrForeign) {
			t.Errorf("Load(%q) = %v", name, err)
		}
	}
	if _, err := os.Lstat(outside); err != nil {
		t.Error(err)
	}
}

// One encoding for one entry: what decodes is what the hook's side would have written.
func FuzzDecode(f *testing.F) {
	for _, payload := range []string{"", `{"a":1}`, strings.Repeat("x", 5000)} {
		_, good := entryFile(payload)
		f.Add(good)
		f.Add(good[:len(good)-1])
		f.Add(append(bytes.Clone(good), 0))
	}
	f.Fuzz(func(t *testing.T, content []byte) {
		e, err := decode(content)
		if err != nil {
			return
		}
		b, err := wire.AppendHeader(spool.AppendPreamble(nil, e.Meta), &e.Header)
		if err != nil || !bytes.Equal(append(b, e.Payload...), content) {
			t.Errorf("%x decodes to %+v, %v", content, e, err)
		}
	})
}
