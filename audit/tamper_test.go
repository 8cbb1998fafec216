// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/audittest"
	"github.com/tripline-sh/tripline/audit/internal/checkpoint"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/segment/segmenttest"
)

// scene is a closed log of three days: records 1-301, 302-312, 313-323, each day beginning with its daemon.segment record.
// The checkpoint of size 256 is kept in the first.
type scene struct {
	o        audit.Options
	days     [3]string // paths
	receipts map[uint64]audit.Receipt
	anchors  []audit.Anchor
}

func newScene(t testing.TB) *scene {
	t.Helper()
	c := newClock(evening)
	s := &scene{o: audittest.Options(t), receipts: map[uint64]audit.Receipt{}}
	s.o.Now = c.now
	l := audittest.Open(t, s.o)
	for day, n := range []int{300, 10, 10} {
		for i := range n {
			r := audittest.Append(t, l, call(fmt.Sprintf("d%d-%d", day, i)))
			s.receipts[r.Seq] = r
		}
		s.days[day] = live(t, s.o)
		c.advance(24 * time.Hour)
	}
	audittest.Close(t, l)
	return s
}

// copy makes a scene of its own for a subtest.
func (s *scene) copy(t *testing.T) *scene {
	t.Helper()
	c := &scene{o: audittest.Options(t), receipts: s.receipts}
	must(t, os.CopyFS(c.o.Dir, os.DirFS(s.o.Dir)))
	must(t, os.CopyFS(c.o.KeyDir, os.DirFS(s.o.KeyDir)))
	for i, path := range s.days {
		c.days[i] = filepath.Join(c.o.Dir, filepath.Base(path))
	}
	return c
}

// anchor lets verify know a receipt.
func (s *scene) anchor(seqs ...uint64) {
	for _, seq := range seqs {
		s.anchors = append(s.anchors, audit.Anchor{Seq: seq, Root: s.receipts[seq].Root})
	}
}

// rewrite replaces the records of a segment from seq on, with hashes and checkpoint as if they had always been so. Without a
// key the checkpoint stays.
func rewrite(t *testing.T, path string, from uint64, key *checkpoint.Key, change func(seq uint64, leaf []byte) []byte) {
	t.Helper()
	var leaves [][]byte
	first := uint64(0)
	segmenttest.Edit(t, path, "record", func(b segmenttest.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			if first == 0 {
				first = seqOf(k)
			}
			leaf := bytes.Clone(v)
			if seqOf(k) >= from {
				leaf = change(seqOf(k), leaf)
			}
			leaves = append(leaves, leaf)
			return nil
		})
	})
	segmenttest.Edit(t, path, "record", func(b segmenttest.Bucket) error {
		for i, leaf := range leaves {
			if err := b.Put(segmenttest.Key(first+uint64(i)), leaf); err != nil {
				return err
			}
		}
		return nil
	})
	var root tlog.Hash
	segmenttest.Edit(t, path, "hash", func(b segmenttest.Bucket) error {
		r := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
			out := make([]tlog.Hash, len(indexes))
			for i, x := range indexes {
				copy(out[i][:], b.Get(segmenttest.Key(uint64(x))))
			}
			return out, nil
		})
		for i, leaf := range leaves {
			hashes, err := tlog.StoredHashes(int64(i), leaf, r)
			if err != nil {
				return err
			}
			for j, h := range hashes {
				if err := b.Put(segmenttest.Key(uint64(tlog.StoredHashIndex(0, int64(i)))+uint64(j)), h[:]); err != nil {
					return err
				}
			}
		}
		var err error
		root, err = tlog.TreeHash(int64(len(leaves)), r)
		return err
	})
	if key == nil {
		return
	}
	signed, err := key.Sign(checkpoint.Checkpoint{Segment: strings.TrimSuffix(filepath.Base(path), ".db"), Size: uint64(len(leaves)), Root: root})
	must(t, err)
	segmenttest.Edit(t, path, "checkpoint", func(b segmenttest.Bucket) error {
		if from <= 256 {
			if err := b.Delete(segmenttest.Key(256)); err != nil {
				return err
			}
		}
		return b.Put([]byte("latest"), signed)
	})
}

func seqOf(k []byte) (n uint64) {
	for _, b := range k {
		n = n<<8 | uint64(b)
	}
	return n
}

// theKey reads the log's signing key, as an attacker of the same user can.
func (s *scene) theKey(t *testing.T) *checkpoint.Key {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.o.KeyDir, "log.key"))
	must(t, err)
	k, err := checkpoint.ParseKey(string(text))
	must(t, err)
	return k
}

// otherKey makes a key of the same name.
func (s *scene) otherKey(t *testing.T) *checkpoint.Key {
	t.Helper()
	skey, _, err := note.GenerateKey(rand.Reader, "tripline.log/"+s.theKey(t).LogID())
	must(t, err)
	k, err := checkpoint.ParseKey(skey)
	must(t, err)
	return k
}

func edit(t *testing.T, path, bucket string, fn func(segmenttest.Bucket) error) {
	t.Helper()
	segmenttest.Edit(t, path, bucket, fn)
}

// flip changes one byte of a value.
func flip(t *testing.T, path, bucket string, key []byte, at int) {
	t.Helper()
	edit(t, path, bucket, func(b segmenttest.Bucket) error {
		v := bytes.Clone(b.Get(key))
		if at < 0 {
			at += len(v)
		}
		v[at] ^= 1
		return b.Put(key, v)
	})
}

// cut removes the records of the last day from seq on with their hashes.
func (s *scene) cut(t *testing.T, path string, first, from uint64) {
	t.Helper()
	edit(t, path, "record", func(b segmenttest.Bucket) error { return deleteFrom(b, from) })
	edit(t, path, "hash", func(b segmenttest.Bucket) error {
		return deleteFrom(b, uint64(tlog.StoredHashIndex(0, int64(from-first))))
	})
}

func deleteFrom(b segmenttest.Bucket, from uint64) error {
	var keys [][]byte
	if err := b.ForEach(func(k, _ []byte) error {
		if seqOf(k[:8]) >= from {
			keys = append(keys, bytes.Clone(k))
		}
		return nil
	}); err != nil {
		return err
	}
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func (s *scene) dropAnchorFile(t *testing.T) {
	t.Helper()
	must(t, os.Remove(filepath.Join(s.o.KeyDir, "last.checkpoint")))
}

func TestVerifyFindsEveryKindOfTampering(t *testing.T) {
	t.Parallel()
	bodyKey := func(seq uint64) []byte { return append(segmenttest.Key(seq), "input"...) }
	tests := []struct {
		name   string
		tamper func(t *testing.T, s *scene)
		want   string
		bad    uint64
	}{
		{"nothing", func(t *testing.T, s *scene) {}, "OK", 0},
		{"nothing, with anchors", func(t *testing.T, s *scene) { s.anchor(2, 256, 257, 301, 303, 323) }, "OK", 0},
		{"a byte of a record", func(t *testing.T, s *scene) { flip(t, s.days[0], "record", segmenttest.Key(57), 150) }, "EDITED", 57},
		{"a byte of the very last record", func(t *testing.T, s *scene) { flip(t, s.days[2], "record", segmenttest.Key(323), -3) }, "EDITED", 323},
		{"two records swapped", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "record", func(b segmenttest.Bucket) error {
				x, y := bytes.Clone(b.Get(segmenttest.Key(20))), bytes.Clone(b.Get(segmenttest.Key(21)))
				if err := b.Put(segmenttest.Key(20), y); err != nil {
					return err
				}
				return b.Put(segmenttest.Key(21), x)
			})
		}, "EDITED", 20},
		{"a record emptied", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "record", func(b segmenttest.Bucket) error { return b.Put(segmenttest.Key(20), nil) })
		}, "EDITED", 20},
		{"a record removed from the middle", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "record", func(b segmenttest.Bucket) error { return b.Delete(segmenttest.Key(20)) })
		}, "GAP", 20},
		{"the first record of a segment removed", func(t *testing.T, s *scene) {
			edit(t, s.days[1], "record", func(b segmenttest.Bucket) error { return b.Delete(segmenttest.Key(302)) })
		}, "GAP", 302},
		{"a leaf hash changed", func(t *testing.T, s *scene) {
			flip(t, s.days[0], "hash", segmenttest.Key(uint64(tlog.StoredHashIndex(0, 20))), 3)
		}, "EDITED", 21},
		{"a tree hash changed", func(t *testing.T, s *scene) {
			flip(t, s.days[0], "hash", segmenttest.Key(uint64(tlog.StoredHashIndex(3, 1))), 3)
		}, "EDITED", 16},
		{"a tree hash removed", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "hash", func(b segmenttest.Bucket) error {
				return b.Delete(segmenttest.Key(uint64(tlog.StoredHashIndex(3, 1))))
			})
		}, "CORRUPT", 1},
		{"a record and its hashes rewritten", func(t *testing.T, s *scene) {
			rewrite(t, s.days[0], 57, nil, blank)
		}, "EDITED", 1},
		{"a record behind the kept checkpoint and its hashes rewritten", func(t *testing.T, s *scene) {
			rewrite(t, s.days[0], 280, nil, blank)
		}, "EDITED", 257},
		{"a day rewritten and signed with another key", func(t *testing.T, s *scene) {
			rewrite(t, s.days[0], 57, s.otherKey(t), blank)
		}, "KEY", 0},
		{"a closed day rewritten and signed with the stolen key", func(t *testing.T, s *scene) {
			rewrite(t, s.days[0], 57, s.theKey(t), blank)
		}, "FORKED", 1},
		{"the live day rewritten with the stolen key, not the anchor file", func(t *testing.T, s *scene) {
			rewrite(t, s.days[2], 320, s.theKey(t), blank)
		}, "FORKED", 323},
		{"the live day rewritten with the stolen key, and an anchor", func(t *testing.T, s *scene) {
			s.dropAnchorFile(t)
			rewrite(t, s.days[2], 320, s.theKey(t), blank)
			s.anchor(319, 321)
		}, "FORKED", 321},
		{"a record moved to another number with everything signed anew", func(t *testing.T, s *scene) {
			rewrite(t, s.days[2], 320, s.theKey(t), func(seq uint64, leaf []byte) []byte {
				return bytes.Replace(leaf, fmt.Appendf(nil, `"seq":%d,`, seq), []byte(`"seq":7,`), 1)
			})
		}, "EDITED", 320},
		{"the last records removed", func(t *testing.T, s *scene) { s.cut(t, s.days[2], 313, 320) }, "TRUNCATED", 320},
		{"all records of the last day removed", func(t *testing.T, s *scene) { s.cut(t, s.days[2], 313, 313) }, "TRUNCATED", 313},
		{"the last records removed and the rest signed with the stolen key", func(t *testing.T, s *scene) {
			s.cut(t, s.days[2], 313, 320)
			rewrite(t, s.days[2], 400, s.theKey(t), blank)
		}, "TRUNCATED", 320},
		{"the same with the anchor file gone, and an anchor", func(t *testing.T, s *scene) {
			s.cut(t, s.days[2], 313, 320)
			rewrite(t, s.days[2], 400, s.theKey(t), blank)
			s.dropAnchorFile(t)
			s.anchor(321)
		}, "TRUNCATED", 320},
		{"records added behind the checkpoint", func(t *testing.T, s *scene) {
			edit(t, s.days[2], "record", func(b segmenttest.Bucket) error {
				leaf := bytes.Replace(bytes.Clone(b.Get(segmenttest.Key(323))), []byte(`"seq":323,`), []byte(`"seq":324,`), 1)
				return b.Put(segmenttest.Key(324), leaf)
			})
			rewrite(t, s.days[2], 400, nil, blank)
		}, "EDITED", 324},
		{"a body changed", func(t *testing.T, s *scene) { flip(t, s.days[0], "body", bodyKey(33), -1) }, "EDITED", 33},
		{"a salt changed", func(t *testing.T, s *scene) { flip(t, s.days[0], "body", bodyKey(33), 0) }, "EDITED", 33},
		{"a body cut to less than a salt", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "body", func(b segmenttest.Bucket) error { return b.Put(bodyKey(33), []byte("x")) })
		}, "EDITED", 33},
		{"a body added", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "body", func(b segmenttest.Bucket) error {
				return b.Put(append(segmenttest.Key(33), "response"...), make([]byte, 64))
			})
		}, "EDITED", 33},
		{"a body taken away", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "body", func(b segmenttest.Bucket) error { return b.Delete(bodyKey(33)) })
		}, "OK", 0},
		{"a byte of a checkpoint's root", func(t *testing.T, s *scene) {
			flip(t, s.days[2], "checkpoint", []byte("latest"), 60)
		}, "EDITED", 313},
		{"a byte of a checkpoint's signature", func(t *testing.T, s *scene) {
			flip(t, s.days[2], "checkpoint", []byte("latest"), -10)
		}, "EDITED", 313},
		{"a kept checkpoint changed", func(t *testing.T, s *scene) {
			flip(t, s.days[0], "checkpoint", segmenttest.Key(256), -10)
		}, "EDITED", 1},
		{"a checkpoint removed", func(t *testing.T, s *scene) {
			edit(t, s.days[2], "checkpoint", func(b segmenttest.Bucket) error { return b.Delete([]byte("latest")) })
		}, "EDITED", 313},
		{"the checkpoint of another segment", func(t *testing.T, s *scene) {
			var other []byte
			edit(t, s.days[1], "checkpoint", func(b segmenttest.Bucket) error {
				other = bytes.Clone(b.Get([]byte("latest")))
				return nil
			})
			edit(t, s.days[2], "checkpoint", func(b segmenttest.Bucket) error { return b.Put([]byte("latest"), other) })
		}, "EDITED", 313},
		{"an older checkpoint of the same segment", func(t *testing.T, s *scene) {
			edit(t, s.days[0], "checkpoint", func(b segmenttest.Bucket) error {
				return b.Put([]byte("latest"), bytes.Clone(b.Get(segmenttest.Key(256))))
			})
		}, "EDITED", 257},
		{"the middle day removed", func(t *testing.T, s *scene) { must(t, os.Remove(s.days[1])) }, "GAP", 302},
		{"the first day removed", func(t *testing.T, s *scene) { must(t, os.Remove(s.days[0])) }, "GAP", 1},
		{"the last day removed", func(t *testing.T, s *scene) { must(t, os.Remove(s.days[2])) }, "TRUNCATED", 313},
		{"everything but the first day removed, and an anchor", func(t *testing.T, s *scene) {
			s.dropAnchorFile(t)
			must(t, os.Remove(s.days[1]))
			must(t, os.Remove(s.days[2]))
			s.anchor(5, 310)
		}, "TRUNCATED", 302},
		{"a closed day shortened to an older copy", func(t *testing.T, s *scene) {
			s.cut(t, s.days[1], 302, 308)
			rewrite(t, s.days[1], 400, s.theKey(t), blank)
		}, "TRUNCATED", 308},
		{"a closed day continued with the stolen key", func(t *testing.T, s *scene) {
			edit(t, s.days[1], "record", func(b segmenttest.Bucket) error {
				leaf := bytes.Replace(bytes.Clone(b.Get(segmenttest.Key(312))), []byte(`"seq":312,`), []byte(`"seq":313,`), 1)
				return b.Put(segmenttest.Key(313), leaf)
			})
			rewrite(t, s.days[1], 400, s.theKey(t), blank)
		}, "FORKED", 313},
		{"a link changed in the description alone", func(t *testing.T, s *scene) {
			edit(t, s.days[2], "meta", func(b segmenttest.Bucket) error {
				var m record.SegmentMeta
				if err := json.Unmarshal(b.Get([]byte("segment")), &m); err != nil {
					return err
				}
				m.Prev.Size = 5
				out, err := json.Marshal(m)
				if err != nil {
					return err
				}
				return b.Put([]byte("segment"), out)
			})
		}, "FORKED", 307},
		{"a loss declared in the description alone", func(t *testing.T, s *scene) {
			must(t, os.Remove(s.days[0]))
			edit(t, s.days[1], "meta", func(b segmenttest.Bucket) error {
				var m record.SegmentMeta
				if err := json.Unmarshal(b.Get([]byte("segment")), &m); err != nil {
					return err
				}
				m.Prev, m.Lost = nil, &record.Lost{First: 1, Last: 301, Cause: "missing"}
				out, err := json.Marshal(m)
				if err != nil {
					return err
				}
				return b.Put([]byte("segment"), out)
			})
		}, "EDITED", 302},
		{"a day cut short as a file", func(t *testing.T, s *scene) { must(t, os.Truncate(s.days[1], 3*4096)) }, "CORRUPT", 302},
		{"a day emptied", func(t *testing.T, s *scene) { must(t, os.Truncate(s.days[1], 0)) }, "CORRUPT", 302},
		{"a day overwritten with text", func(t *testing.T, s *scene) {
			must(t, os.WriteFile(s.days[1], []byte("sorry"), 0o600))
		}, "GAP", 302},
		{"an anchor with a wrong root", func(t *testing.T, s *scene) {
			s.anchors = append(s.anchors, audit.Anchor{Seq: 57, Root: s.receipts[58].Root})
		}, "FORKED", 57},
	}
	whole := newScene(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := whole.copy(t)
			tt.tamper(t, s)
			v := audittest.Verify(t, s.o, s.anchors...)
			if v.Outcome != tt.want || v.FirstBad != tt.bad {
				t.Errorf("got %s at %d (%s), want %s at %d", v.Outcome, v.FirstBad, v.Detail, tt.want, tt.bad)
			}
			if (v.Outcome == "OK") != (v.FirstBad == 0) && v.Outcome != "KEY" || v.Detail == "" {
				t.Errorf("inconsistent: %+v", v)
			}
		})
	}
}

// blank takes the meaning out of a record.
func blank(_ uint64, leaf []byte) []byte {
	return bytes.Replace(leaf, []byte(`"tool":"Bash"`), []byte(`"tool":"Read"`), 1)
}

func TestVerifySaysWhatItsWordIsWorth(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	v := audittest.Verify(t, s.o)
	if v.Anchored != 0 || !strings.Contains(strings.Join(v.Warnings, "\n"), "unanchored") {
		t.Errorf("without anchors: %+v", v)
	}
	s.anchor(5, 312)
	v = audittest.Verify(t, s.o, s.anchors...)
	if v.Anchored != 312 || len(v.Warnings) != 0 || v.Size != 323 || len(v.Segments) != 3 {
		t.Errorf("with anchors: %+v", v)
	}
	// The whole root in base64 is an anchor as well, and so is more of it in hex.
	root, err := tlog.ParseHash(v.Root)
	must(t, err)
	for _, a := range []string{v.Root, hex.EncodeToString(root[:]), strings.ToUpper(hex.EncodeToString(root[:10]))} {
		if v := audittest.Verify(t, s.o, audit.Anchor{Seq: 323, Root: a}); v.Outcome != "OK" || v.Anchored != 323 {
			t.Errorf("anchor %q: %+v", a, v)
		}
	}
	r, err := audit.OpenReader(s.o.Dir, audit.ReaderOptions{KeyDir: s.o.KeyDir})
	must(t, err)
	for _, bad := range []string{"abc", "not hex and not base64", strings.Repeat("a", 65), strings.Repeat("z", 16)} {
		if v, err := r.Verify(context.Background(), audit.Anchor{Seq: 1, Root: bad}); err == nil {
			t.Errorf("anchor %q: %+v", bad, v)
		}
	}
	// Without a key nothing is known about signatures.
	if r, err = audit.OpenReader(s.o.Dir, audit.ReaderOptions{}); err != nil {
		t.Fatal(err)
	}
	if v, err := r.Verify(context.Background()); err != nil || v.Outcome != "KEY" {
		t.Errorf("without a key: %+v, %v", v, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if v, err := r.Verify(ctx); err == nil {
		t.Errorf("cancelled: %+v", v)
	}
}
