// SPDX-License-Identifier: Apache-2.0

package checkpoint

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// MaxLen is the longest checkpoint that Parse takes, in bytes.
const MaxLen = 4 << 10

// Errors of Open.
var (
	ErrForm      = errors.New("not a checkpoint")
	ErrKey       = errors.New("checkpoint is not signed by the known key")
	ErrSignature = errors.New("checkpoint has a wrong signature")
)

// Checkpoint says that the tree of Segment has Size leaves and this Root.
type Checkpoint struct {
	LogID   string
	Segment string // file name without ".db"
	Size    uint64
	Root    tlog.Hash
}

// Sign returns the signed text for a segment of k's log. c.LogID is ignored.
func (k *Key) Sign(c Checkpoint) ([]byte, error) {
	text := fmt.Sprintf("%s/%s\n%d\n%s\n", k.signer.Name(), c.Segment, c.Size, c.Root)
	if _, err := Parse(text); err != nil {
		return nil, fmt.Errorf("segment name %q: %w", c.Segment, err)
	}
	return note.Sign(&note.Note{Text: text}, k.signer)
}

// Open checks the signature of msg by k and returns what it says.
func (k *Key) Open(msg []byte) (Checkpoint, error) { return Open(msg, k.verifier) }

// Open checks the signature of msg by v and returns what it says.
func Open(msg []byte, v note.Verifier) (Checkpoint, error) {
	if len(msg) > MaxLen {
		return Checkpoint{}, ErrForm
	}
	n, err := note.Open(msg, note.VerifierList(v))
	var unverified *note.UnverifiedNoteError
	var invalid *note.InvalidSignatureError
	switch {
	case errors.As(err, &unverified):
		return Checkpoint{}, ErrKey
	case errors.As(err, &invalid):
		return Checkpoint{}, ErrSignature
	case err != nil:
		return Checkpoint{}, ErrForm
	}
	return Parse(n.Text)
}

// Parse reads the text of a checkpoint, without its signature.
func Parse(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(text) > MaxLen || len(lines) != 4 || lines[3] != "" {
		return Checkpoint{}, ErrForm
	}
	rest, ok := strings.CutPrefix(lines[0], prefix)
	if !ok {
		return Checkpoint{}, ErrForm
	}
	id, segment, ok := strings.Cut(rest, "/")
	if !ok || !plain(id) || !plain(segment) {
		return Checkpoint{}, ErrForm
	}
	size, err := strconv.ParseUint(lines[1], 10, 63)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] {
		return Checkpoint{}, ErrForm
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil || root.String() != lines[2] {
		return Checkpoint{}, ErrForm
	}
	return Checkpoint{LogID: id, Segment: segment, Size: size, Root: root}, nil
}

// plain says whether s is a path element of printable ASCII.
func plain(s string) bool {
	for _, c := range []byte(s) {
		if c <= ' ' || c > '~' || c == '/' {
			return false
		}
	}
	return s != ""
}
