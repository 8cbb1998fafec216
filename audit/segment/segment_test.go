// SPDX-License-Identifier: Apache-2.0

package segment_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment"
)

var day = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func sign(n segment.Name, size uint64, root tlog.Hash) ([]byte, error) {
	return fmt.Appendf(nil, "%s %d %s", n.Origin(), size, root), nil
}

func items(from uint64, n int) []segment.Item {
	var out []segment.Item
	for i := range n {
		seq := from + uint64(i)
		out = append(out, segment.Item{
			Seq: seq, Leaf: fmt.Appendf(nil, `{"v":1,"seq":%d}`, seq), Time: day.Add(time.Duration(seq) * time.Second),
			Bodies: []record.Body{{Name: "input", Salt: make([]byte, record.SaltSize), Data: fmt.Append(nil, seq)}},
		})
	}
	return out
}

func create(t testing.TB, o segment.Options) string {
	t.Helper()
	dir := t.TempDir()
	name := segment.Name{Day: segment.Day(day), First: 101}
	m := &record.SegmentMeta{V: 1, Log: "l", Name: name.File(), First: 101, Created: day}
	if err := segment.Create(dir, m, map[string][]byte{"k": []byte("v")}, items(101, 1), sign, o); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name.File())
}

func TestASegmentGrowsAndIsReadBack(t *testing.T) {
	t.Parallel()
	o := segment.Options{LogID: "l", Timeout: time.Second, Write: true, MapSize: 1 << 26}
	path := create(t, o)
	s, err := segment.Open(path, o)
	if err != nil {
		t.Fatal(err)
	}
	var roots []tlog.Hash
	for seq, n := uint64(102), 1; n < 40; n++ {
		r, err := s.Append(items(seq, n), []segment.Op{{Key: fmt.Sprint("k", n), Value: []byte("x")}, {Key: "k", Value: nil}}, sign)
		if err != nil {
			t.Fatal(err)
		}
		roots, seq = append(roots, r...), seq+uint64(n)
	}
	tip := s.Tip()
	// Each root that was returned is the one that the stored hashes give for that size, for ever.
	for i, want := range roots {
		if got, err := s.RootAt(uint64(i) + 2); err != nil || got != want {
			t.Fatalf("root at %d: %v, %v", i+2, got, err)
		}
	}
	if tip.Size != uint64(len(roots))+1 || tip.Root != roots[len(roots)-1] || tip.Last(101) != 100+tip.Size {
		t.Errorf("tip %+v", tip)
	}
	if _, err := s.Append(items(500000, 1), nil, sign); err == nil {
		t.Error("a hole was written")
	}
	if _, err := segment.Open(path, segment.Options{LogID: "l"}); !errors.Is(err, segment.ErrLocked) {
		t.Errorf("second open: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	r, err := segment.Open(path, segment.Options{LogID: "l"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}()
	h, err := r.Head()
	if err != nil || h.Size != tip.Size || !h.From.Equal(day.Add(101*time.Second)) || !h.To.Equal(day.Add(time.Duration(tip.Last(101))*time.Second)) {
		t.Errorf("head %+v, %v", h, err)
	}
	n := uint64(101)
	for {
		page, err := r.Page(n)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, row := range page {
			if row.Seq != n || string(row.Leaf) != fmt.Sprintf(`{"v":1,"seq":%d}`, n) {
				t.Fatalf("row %d %s, want %d", row.Seq, row.Leaf, n)
			}
			n++
		}
	}
	if n != 101+tip.Size {
		t.Errorf("read up to %d", n)
	}
	if b, err := r.Bodies(150, 151, 9999); err != nil || len(b) != 2 || string(b[151][0].Data) != "151" || len(b[151][0].Salt) != record.SaltSize {
		t.Errorf("bodies %+v, %v", b, err)
	}
	if st, err := r.State(); err != nil || len(st) != 39 || st["k"] != nil {
		t.Errorf("state %v, %v", st, err)
	}
	if c, err := r.Checkpoints(); err != nil || len(c) != 3 {
		t.Errorf("kept %q, %v", c, err)
	}
}

func TestADamagedFileIsNotLeftLocked(t *testing.T) {
	t.Parallel()
	o := segment.Options{LogID: "l", Timeout: 50 * time.Millisecond, Write: true, MapSize: 1 << 26}
	for pages := range 20 {
		path := create(t, o)
		s, err := segment.Open(path, o)
		if err != nil {
			t.Fatal(err)
		}
		for seq := uint64(102); seq < 150; seq++ {
			if _, err := s.Append(items(seq, 1), nil, sign); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, int64(pages)*4096); err != nil {
			t.Fatal(err)
		}
		for _, write := range []bool{true, true, false, true} {
			o.Write = write
			s, err := segment.Open(path, o)
			switch {
			case err == nil:
				if err := s.Close(); err != nil {
					t.Fatal(err)
				}
			case !errors.Is(err, segment.ErrDamaged):
				t.Errorf("%d pages, write %v: %v", pages, write, err)
			}
		}
	}
}

func TestNamesAreExact(t *testing.T) {
	t.Parallel()
	for _, tt := range names {
		n, ok := segment.ParseName(tt.file)
		if ok != tt.ok || ok && n.File() != tt.file {
			t.Errorf("%q: %+v, %v", tt.file, n, ok)
		}
	}
}

var names = []struct {
	file string
	ok   bool
}{
	{"2026-11-30-000000000001.db", true},
	{"2026-11-30-1234567890123.db", true},
	{"2026-11-30-000000000000.db", false},
	{"2026-11-30-0000000000001.db", false},
	{"2026-11-30-00000000001.db", false},
	{"2026-13-30-000000000001.db", false},
	{"2026-11-30-+00000000001.db", false},
	{"2026-11-30-000000000001.db~corrupt-20261130T000000Z", false},
	{".new-2026-11-30-000000000001.db", false},
	{"2026-11-30-99999999999999999999.db", false},
	{"2026-11-30.db", false},
	{"lock", false},
	{"", false},
}

func FuzzParseName(f *testing.F) {
	for _, tt := range names {
		f.Add(tt.file)
	}
	f.Fuzz(func(t *testing.T, file string) {
		if n, ok := segment.ParseName(file); ok && (n.File() != file || n.First < 1 || filepath.Base(file) != file) {
			t.Errorf("%q became %+v", file, n)
		}
	})
}

// FuzzOpen opens files that somebody damaged: at each offset of a segment some bytes are something else. It may be an error
// or go unnoticed (Verify notices), but it must not panic, hang, or write.
func FuzzOpen(f *testing.F) {
	o := segment.Options{LogID: "l", Timeout: time.Second, Write: true}
	path := create(f, o)
	s, err := segment.Open(path, o)
	if err != nil {
		f.Fatal(err)
	}
	for seq := uint64(102); seq < 400; seq += 10 {
		if _, err := s.Append(items(seq, 10), nil, sign); err != nil {
			f.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		f.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	whole = whole[:min(len(whole), 256<<10)]
	for _, at := range []uint32{0, 16, 24, 40, 4096, 4112, 8192, 12288, 20000, 40960} {
		f.Add(at, []byte{0xff, 0xff, 0xff, 0xff}, uint32(len(whole)))
		f.Add(at, []byte{0}, at)
	}
	f.Fuzz(func(t *testing.T, at uint32, bytes []byte, size uint32) {
		data := append([]byte(nil), whole[:min(int(size), len(whole))]...)
		if int(at) < len(data) {
			copy(data[at:], bytes)
		}
		file := filepath.Join(t.TempDir(), filepath.Base(path))
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		s, err := segment.Open(file, segment.Options{LogID: "l"})
		if err == nil {
			_, _ = s.Head()
			for from := uint64(101); ; {
				page, err := s.Page(from)
				if err != nil || len(page) == 0 || page[len(page)-1].Seq < from {
					break
				}
				from = page[len(page)-1].Seq + 1
			}
			_, _ = s.Bodies(101, 200, 399)
			_, _ = s.State()
			_, _ = s.Checkpoints()
			_, _ = s.RootAt(100)
			_ = s.Close()
		}
		if after, err := os.ReadFile(file); err != nil || string(after) != string(data) {
			t.Errorf("the file was changed: %v", err)
		}
	})
}

// BenchmarkCommit compares one record with everything that belongs to it against one value of the same size in bbolt alone,
// in turns, so that both meet the same disk. The metrics are medians and their ratio.
func BenchmarkCommit(b *testing.B) {
	o := segment.Options{LogID: "l", Timeout: time.Second, Write: true, MapSize: 1 << 28}
	s, err := segment.Open(create(b, o), o)
	if err != nil {
		b.Fatal(err)
	}
	bare, err := bolt.Open(filepath.Join(b.TempDir(), "x.db"), 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType, InitialMmapSize: 1 << 28})
	if err != nil {
		b.Fatal(err)
	}
	var ours, theirs []time.Duration
	seq := uint64(102)
	for b.Loop() {
		it := items(seq, 1)
		it[0].Leaf = append(it[0].Leaf, make([]byte, 1000)...)
		start := time.Now()
		if _, err := s.Append(it, nil, sign); err != nil {
			b.Fatal(err)
		}
		ours = append(ours, time.Since(start))
		start = time.Now()
		err := bare.Update(func(tx *bolt.Tx) error {
			bucket, err := tx.CreateBucketIfNotExists([]byte("b"))
			if err != nil {
				return err
			}
			return bucket.Put(fmt.Appendf(nil, "%08d", seq), it[0].Leaf)
		})
		if err != nil {
			b.Fatal(err)
		}
		theirs = append(theirs, time.Since(start))
		seq++
	}
	slices.Sort(ours)
	slices.Sort(theirs)
	x, y := ours[len(ours)/2], theirs[len(theirs)/2]
	b.ReportMetric(float64(x.Microseconds()), "segment-µs")
	b.ReportMetric(float64(y.Microseconds()), "bare-µs")
	b.ReportMetric(float64(x)/float64(y), "ratio")
	if err := errors.Join(s.Close(), bare.Close()); err != nil {
		b.Fatal(err)
	}
}
