// SPDX-License-Identifier: Apache-2.0

// Package segmenttest changes segment files behind the log's back, as somebody with write access would.
package segmenttest

import (
	"encoding/binary"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"
)

// Bucket is what Edit gives to its function.
type Bucket interface {
	Get(key []byte) []byte
	Put(key, value []byte) error
	Delete(key []byte) error
	ForEach(fn func(k, v []byte) error) error
}

// Edit opens the segment at path for writing and hands one of its buckets to fn: meta, record, body, hash, checkpoint or
// state. Nothing else may have the segment open.
func Edit(t testing.TB, path, bucket string, fn func(Bucket) error) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second, FreelistType: bolt.FreelistMapType})
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error { return fn(tx.Bucket([]byte(bucket))) })
	if err != nil {
		t.Fatalf("edit %s: %v", path, err)
	}
	if err := db.Close(); err != nil {
		t.Fatalf("close %s: %v", path, err)
	}
}

// NewDatabase makes a bbolt file that is no segment.
func NewDatabase(t testing.TB, path string) {
	t.Helper()
	db, err := bolt.Open(path, 0o600, &bolt.Options{Timeout: time.Second})
	if err != nil {
		t.Fatalf("create %s: %v", path, err)
	}
	err = db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("theirs"))
		if err != nil {
			return err
		}
		return b.Put([]byte("k"), []byte("v"))
	})
	if err != nil {
		t.Fatalf("fill %s: %v", path, err)
	}
	if err := db.Close(); err != nil {
		t.Fatalf("close %s: %v", path, err)
	}
}

// Key returns the key of a sequence number, hash index or tree size.
func Key(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }
