// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"github.com/tripline-sh/tripline/tripwires/view"
)

// token returns the identity of a call: an HMAC over its fields, one a line, each with its name and length in front, so
// that no value can pose as another field. The key is this log's own, so that a token tells nothing about the input.
func (g *Gate) token(c *Call) string {
	h := hmac.New(sha256.New, g.key)
	line := func(name, value string) {
		h.Write(strconv.AppendInt([]byte(name+" "), int64(len(value)), 10))
		h.Write([]byte{' '})
		h.Write([]byte(value))
		h.Write([]byte{'\n'})
	}
	line("tool", c.Tool)
	line("input", string(c.Canonical))
	line("cwd", c.Cwd)
	line("project", c.Project)
	line("uid", strconv.FormatUint(uint64(c.UID), 10))
	line("agent", c.Agent)
	line("rule", c.RuleHash)
	line("effects", strconv.Itoa(len(c.Effects)))
	for _, e := range c.Effects { // what the approver was shown
		line("effect", e)
	}
	set := slices.SortedFunc(slices.Values(view.Binding(c.ReadSet)), compareEntries)
	line("reads", strconv.Itoa(len(set)))
	for _, e := range set {
		line("path", e.Path)
		line("dev", strconv.FormatUint(e.Dev, 10))
		line("ino", strconv.FormatUint(e.Ino, 10))
		line("size", strconv.FormatInt(e.Size, 10))
		line("hash", e.Hash)
	}
	if c.BindSession {
		line("session", c.Session)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func compareEntries(a, b view.Entry) int {
	return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Hash, b.Hash), cmp.Compare(a.Dev, b.Dev),
		cmp.Compare(a.Ino, b.Ino), cmp.Compare(a.Size, b.Size))
}

// alphabet has 32 letters that are hard to take for one another.
const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"

// idLen letters are 50 random bits: nobody guesses one, and a person can type one.
const idLen = 10

func newID() string {
	b := make([]byte, idLen)
	rand.Read(b) // never fails
	for i := range b {
		b[i] = alphabet[b[i]&31]
	}
	return string(b)
}

func newKey() []byte {
	key := make([]byte, sha256.Size)
	rand.Read(key) // never fails
	return key
}

func sameToken(a, b string) bool { return hmac.Equal([]byte(a), []byte(b)) }

func validKey(key []byte) bool {
	return len(key) == sha256.Size && !bytes.Equal(key, make([]byte, sha256.Size))
}
