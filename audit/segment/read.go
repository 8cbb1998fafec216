// SPDX-License-Identifier: Apache-2.0

package segment

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	bolt "go.etcd.io/bbolt"
	"golang.org/x/mod/sumdb/tlog"

	"github.com/tripline-sh/tripline/audit/record"
)

// maxRecords of a segment: far more than fit a file, far less than what makes tree arithmetic overflow.
const maxRecords = 1 << 40

// Bounds of one Page, so that no read transaction lives long.
const (
	pageRows  = 1024
	pageBytes = 4 << 20
)

// Row is one stored record.
type Row struct {
	Seq  uint64
	Leaf []byte
}

// Head reads the head as of now. Its Root is zero: see RootAt.
func (s *Segment) Head() (h Head, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		h, err = readHead(tx, s.name.First)
		return err
	})
	return h, err
}

// RootAt returns the root that the tree had when it had size leaves, from the stored hashes.
func (s *Segment) RootAt(size uint64) (root tlog.Hash, err error) {
	err = guard(func() error {
		root, err = tlog.TreeHash(int64(size), s)
		return err
	})
	return root, err
}

// Page returns copies of the records from sequence number from on, as many as fit a short transaction. An empty page is the
// end.
func (s *Segment) Page(from uint64) (rows []Row, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketRecord).Cursor()
		size := 0
		for k, v := c.Seek(key(from)); k != nil && len(rows) < pageRows && size < pageBytes; k, v = c.Next() {
			if len(k) != 8 {
				return fmt.Errorf("%w: a record has a key of %d bytes", ErrDamaged, len(k))
			}
			rows = append(rows, Row{binary.BigEndian.Uint64(k), append([]byte(nil), v...)})
			size += len(v)
		}
		return nil
	})
	return rows, err
}

// Bodies returns copies of the bodies of the given records, in one transaction.
func (s *Segment) Bodies(seqs ...uint64) (out map[uint64][]record.Body, err error) {
	out = make(map[uint64][]record.Body, len(seqs))
	err = s.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketBody).Cursor()
		for _, seq := range seqs {
			prefix := key(seq)
			for k, v := c.Seek(prefix); len(k) >= 8 && string(k[:8]) == string(prefix); k, v = c.Next() {
				n := min(record.SaltSize, len(v))
				out[seq] = append(out[seq], record.Body{
					Name: string(k[8:]),
					Salt: append([]byte(nil), v[:n]...),
					Data: append([]byte(nil), v[n:]...),
				})
			}
		}
		return nil
	})
	return out, err
}

// ReadHashes makes s a tlog.HashReader over its stored hashes.
func (s *Segment) ReadHashes(indexes []int64) (out []tlog.Hash, err error) {
	out = make([]tlog.Hash, len(indexes))
	err = s.view(func(tx *bolt.Tx) error {
		b := tx.Bucket(bucketHash)
		for i, x := range indexes {
			if err := getHash(b, x, &out[i]); err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// Checkpoints returns the older signed checkpoints that were kept, smallest first.
func (s *Segment) Checkpoints() (out [][]byte, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		c := tx.Bucket(bucketCheckpoint).Cursor()
		for k, v := c.First(); k != nil; k, v = c.Next() {
			if len(k) == 8 {
				out = append(out, append([]byte(nil), v...))
			}
		}
		return nil
	})
	return out, err
}

// State returns a copy of the state.
func (s *Segment) State() (out map[string][]byte, err error) {
	out = make(map[string][]byte)
	err = s.view(func(tx *bolt.Tx) error {
		return tx.Bucket(bucketState).ForEach(func(k, v []byte) error {
			if v != nil {
				out[string(k)] = append([]byte{}, v...)
			}
			return nil
		})
	})
	return out, err
}

// view runs fn in a read transaction, panics and faults included. A missing bucket is damage.
func (s *Segment) view(fn func(*bolt.Tx) error) error {
	return guard(func() error {
		return s.db.View(func(tx *bolt.Tx) error { return fn(tx) })
	})
}

// readHead reads size, checkpoint and range as they stand there. It compares nothing.
func readHead(tx *bolt.Tx, first uint64) (Head, error) {
	for _, b := range [][]byte{bucketRecord, bucketBody, bucketHash, bucketCheckpoint, bucketState} {
		if tx.Bucket(b) == nil {
			return Head{}, fmt.Errorf("%w: it has no bucket %q", ErrDamaged, b)
		}
	}
	c := tx.Bucket(bucketCheckpoint)
	h := Head{Checkpoint: append([]byte(nil), c.Get(keyLatest)...), Used: tx.Size()}
	if r := c.Get(keyRange); len(r) == 16 {
		h.From = time.Unix(0, int64(binary.BigEndian.Uint64(r))).UTC()
		h.To = time.Unix(0, int64(binary.BigEndian.Uint64(r[8:]))).UTC()
	}
	k, _ := tx.Bucket(bucketRecord).Cursor().Last()
	if k == nil {
		return h, nil
	}
	if len(k) != 8 || binary.BigEndian.Uint64(k) < first || binary.BigEndian.Uint64(k)-first > maxRecords {
		return Head{}, fmt.Errorf("%w: impossible record number", ErrDamaged)
	}
	h.Size = binary.BigEndian.Uint64(k) - first + 1
	return h, nil
}

func getHash(b *bolt.Bucket, index int64, h *tlog.Hash) error {
	v := b.Get(key(uint64(index)))
	if len(v) != tlog.HashSize {
		return fmt.Errorf("%w: hash %d is missing", ErrDamaged, index)
	}
	copy(h[:], v)
	return nil
}

func metaJSON(m *record.SegmentMeta) ([]byte, error) { return json.Marshal(m) }
