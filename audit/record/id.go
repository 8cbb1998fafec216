// SPDX-License-Identifier: Apache-2.0

package record

import (
	"crypto/rand"
	"encoding/binary"
	"time"
)

// idAlphabet is Crockford's base32 in lower case: no i, l, o, u, so that ids can be read out and typed.
const idAlphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// NewID returns a new id of 26 characters: 48 bits of t in milliseconds, then 80 random bits. Ids of later milliseconds sort
// later.
func NewID(t time.Time) string {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:8], uint64(t.UnixMilli())<<16)
	_, _ = rand.Read(b[6:]) // crypto/rand.Read never fails
	hi, lo := binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
	var s [26]byte
	for i := len(s) - 1; i >= 0; i-- {
		s[i] = idAlphabet[lo&31]
		lo = lo>>5 | hi<<59
		hi >>= 5
	}
	return string(s[:])
}
