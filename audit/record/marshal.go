// SPDX-License-Identifier: Apache-2.0

package record

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
)

// MaxLeaf is the largest leaf that Unmarshal takes, in bytes.
const MaxLeaf = 1 << 20

// SaltSize is the length of a body's salt in bytes.
const SaltSize = 32

// Marshal returns the leaf bytes of r: JSON in field order on one line, without a trailing newline, times in UTC, and with
// <, > and & as themselves. Invalid UTF-8 becomes U+FFFD.
func Marshal(r *Record) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Unmarshal reads leaf bytes. Fields that it does not know are ignored, since a later Version may add some; a version of 0
// or above Version is an error.
func Unmarshal(leaf []byte) (*Record, error) {
	if len(leaf) > MaxLeaf {
		return nil, fmt.Errorf("record of %d bytes is larger than %d", len(leaf), MaxLeaf)
	}
	r := new(Record)
	if err := json.Unmarshal(leaf, r); err != nil {
		return nil, fmt.Errorf("undecodable record: %w", err)
	}
	if r.V < 1 || r.V > Version {
		return nil, fmt.Errorf("record has version %d, this program knows 1 to %d", r.V, Version)
	}
	return r, nil
}

// MAC returns the commitment to a body:
//
//	base64url-without-padding( HMAC-SHA256( key = salt, message = name ‖ 0x00 ‖ data ) )
//
// A name holds no zero byte (see ValidName), so a message has one reading.
func MAC(salt []byte, name string, data []byte) string {
	h := hmac.New(sha256.New, salt)
	h.Write([]byte(name))
	h.Write([]byte{0})
	h.Write(data)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// Matches says whether b is the body that c commits to.
func (c Commitment) Matches(b Body) bool {
	return c.Name == b.Name && c.Len == len(b.Data) && len(b.Salt) == SaltSize &&
		hmac.Equal([]byte(c.MAC), []byte(MAC(b.Salt, b.Name, b.Data)))
}

// ValidName says whether s may name a body: 1 to 32 of a-z, 0-9, "_", "-", ".".
func ValidName(s string) bool {
	if len(s) < 1 || len(s) > 32 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '-', c == '.':
		default:
			return false
		}
	}
	return true
}
