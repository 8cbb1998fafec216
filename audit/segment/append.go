// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/internal/durable"
	"github.com/tripline-sh/tripline/audit/record"
)

// fill is how full pages of buckets are made whose keys only grow.
const fill = 0.95

// keepEvery is the distance, in records, of the older checkpoints that are kept.
const keepEvery = 256

// Item is one record to append.
type Item struct {
	Seq    uint64
	Leaf   []byte
	Time   time.Time
	Bodies []record.Body
}

// Op sets a state key; a nil Value deletes it.
type Op struct {
	Key   string
	Value []byte
}

// Signer returns the signed checkpoint for a tree.
type Signer func(name Name, size uint64, root tlog.Hash) ([]byte, error)

// Append writes items, state changes and a new checkpoint in one transaction and returns the root after each item. When it
// returns without error everything is on disk, in a file that still has its name. Any error leaves it open whether it is:
// Close, Open, and look. The caller asks Intact before, since writing into a file that was cut short faults.
func (s *Segment) Append(items []Item, ops []Op, sign Signer) ([]tlog.Hash, error) {
	var w *writer
	err := guard(func() error {
		return s.db.Update(func(tx *bolt.Tx) error {
			w = &writer{tx: tx, name: s.name, head: s.head, edge: s.edge, fresh: make(map[int64]tlog.Hash)}
			return w.write(items, ops, sign)
		})
	})
	if err != nil {
		return nil, err
	}
	s.head, s.edge = w.head, w.edge
	// A file that lost its name while this was written holds nothing that anybody will find.
	if err := s.Intact(); err != nil {
		return nil, err
	}
	return w.roots, nil
}

// Create makes the segment that meta describes, holding state and items, under a temporary name and gives it its own name
// when it is complete and synced. fs.ErrExist: something has that name already.
func Create(dir string, meta *record.SegmentMeta, state map[string][]byte, items []Item, sign Signer, o Options) error {
	name, ok := ParseName(meta.Name)
	if !ok || name.First != meta.First {
		return fmt.Errorf("impossible segment name %q", meta.Name)
	}
	path := filepath.Join(dir, meta.Name)
	if _, err := os.Lstat(path); err == nil {
		return fmt.Errorf("%q: %w", meta.Name, fs.ErrExist)
	}
	tmp := durable.TempName(path)
	if err := os.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	description, err := metaJSON(meta)
	if err != nil {
		return err
	}
	s := &Segment{path: tmp, name: name}
	err = guard(func() error {
		o.Write = true
		if err := s.open(tmp, o); err != nil {
			return err
		}
		return s.db.Update(func(tx *bolt.Tx) error {
			for _, b := range [][]byte{bucketMeta, bucketRecord, bucketBody, bucketHash, bucketCheckpoint, bucketState} {
				if _, err := tx.CreateBucket(b); err != nil {
					return err
				}
			}
			if err := tx.Bucket(bucketMeta).Put(keySegment, description); err != nil {
				return err
			}
			ops := make([]Op, 0, len(state))
			for k, v := range state {
				ops = append(ops, Op{k, v})
			}
			w := &writer{tx: tx, name: name, edge: map[int64]tlog.Hash{}, fresh: map[int64]tlog.Hash{}}
			return w.write(items, ops, sign)
		})
	})
	if s.db != nil {
		err = errors.Join(err, s.Close())
	}
	if err != nil {
		return errors.Join(err, removeIfThere(tmp))
	}
	return durable.Publish(tmp, path)
}

// removeIfThere removes a file that may not have come into being.
func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writer is one append transaction.
type writer struct {
	tx    *bolt.Tx
	name  Name
	head  Head
	edge  map[int64]tlog.Hash // right edge of the tree before
	fresh map[int64]tlog.Hash // hashes of this transaction
	roots []tlog.Hash
}

func (w *writer) write(items []Item, ops []Op, sign Signer) error {
	records, bodies, hashes := w.tx.Bucket(bucketRecord), w.tx.Bucket(bucketBody), w.tx.Bucket(bucketHash)
	records.FillPercent, bodies.FillPercent, hashes.FillPercent = fill, fill, fill
	before := w.head.Size
	for _, it := range items {
		if want := w.name.First + w.head.Size; it.Seq != want {
			return fmt.Errorf("record %d where %d should be", it.Seq, want)
		}
		if err := records.Put(key(it.Seq), it.Leaf); err != nil {
			return err
		}
		for _, b := range it.Bodies {
			if err := bodies.Put(bodyKey(it.Seq, b.Name), append(b.Salt[:len(b.Salt):len(b.Salt)], b.Data...)); err != nil {
				return err
			}
		}
		if err := w.grow(hashes, it); err != nil {
			return err
		}
	}
	for _, op := range ops {
		if err := applyOp(w.tx.Bucket(bucketState), op); err != nil {
			return err
		}
	}
	return w.seal(before, sign)
}

// grow adds the hashes of one leaf.
func (w *writer) grow(hashes *bolt.Bucket, it Item) error {
	n := int64(w.head.Size)
	stored, err := tlog.StoredHashes(n, it.Leaf, w)
	if err != nil {
		return err
	}
	at := tlog.StoredHashIndex(0, n)
	for i, h := range stored {
		w.fresh[at+int64(i)] = h
		if err := hashes.Put(key(uint64(at)+uint64(i)), append([]byte(nil), h[:]...)); err != nil {
			return err
		}
	}
	root, err := tlog.TreeHash(n+1, w)
	if err != nil {
		return err
	}
	w.roots = append(w.roots, root)
	w.head.Size, w.head.Root = w.head.Size+1, root
	if w.head.From.IsZero() || it.Time.Before(w.head.From) {
		w.head.From = it.Time
	}
	if it.Time.After(w.head.To) {
		w.head.To = it.Time
	}
	return nil
}

// seal writes the checkpoint of the grown tree and works out its right edge.
func (w *writer) seal(before uint64, sign Signer) error {
	signed, err := sign(w.name, w.head.Size, w.head.Root)
	if err != nil {
		return fmt.Errorf("checkpoint: %w", err)
	}
	c := w.tx.Bucket(bucketCheckpoint)
	if err := c.Put(keyLatest, signed); err != nil {
		return err
	}
	if before/keepEvery != w.head.Size/keepEvery {
		if err := c.Put(key(w.head.Size), signed); err != nil {
			return err
		}
	}
	if err := c.Put(keyRange, rangeValue(w.head.From, w.head.To)); err != nil {
		return err
	}
	w.head.Checkpoint = signed
	w.head.Used = w.tx.Size()
	w.edge, err = edgeOf(w.head.Size, w)
	return err
}

// ReadHashes makes a writer a tlog.HashReader over what it wrote, the old edge, and the file.
func (w *writer) ReadHashes(indexes []int64) ([]tlog.Hash, error) {
	out := make([]tlog.Hash, len(indexes))
	for i, x := range indexes {
		if h, ok := w.fresh[x]; ok {
			out[i] = h
		} else if h, ok := w.edge[x]; ok {
			out[i] = h
		} else if err := getHash(w.tx.Bucket(bucketHash), x, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// edgeOf returns the hashes from which the root of the tree of size n follows, by index.
func edgeOf(n uint64, r tlog.HashReader) (map[int64]tlog.Hash, error) {
	edge := make(map[int64]tlog.Hash)
	if n == 0 {
		return edge, nil
	}
	_, err := tlog.TreeHash(int64(n), tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		hashes, err := r.ReadHashes(indexes)
		for i, h := range hashes {
			edge[indexes[i]] = h
		}
		return hashes, err
	}))
	return edge, err
}

func applyOp(b *bolt.Bucket, op Op) error {
	if op.Value == nil {
		return b.Delete([]byte(op.Key))
	}
	return b.Put([]byte(op.Key), op.Value)
}

func key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func bodyKey(seq uint64, name string) []byte { return append(key(seq), name...) }

func rangeValue(from, to time.Time) []byte {
	return binary.BigEndian.AppendUint64(key(uint64(from.UnixNano())), uint64(to.UnixNano()))
}
