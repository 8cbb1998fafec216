// SPDX-License-Identifier: Apache-2.0

// Package checkpoint holds the log's key and the signed statements about a segment's tree that it makes: C2SP tlog
// checkpoints, which are signed notes of three lines.
//
//	tripline.log/<log id>/<segment>     the segment is its file's name without ".db"
//	<size>                              number of records in the segment
//	<root>                              base64
//
//	— tripline.log/<log id> <signature>
package checkpoint

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"strings"

	"golang.org/x/mod/sumdb/note"
)

// prefix begins the name of every key and the origin of every checkpoint.
const prefix = "tripline.log/"

// Key signs checkpoints of one log.
type Key struct {
	signer   note.Signer
	verifier note.Verifier
	vkey     string
}

var errKey = errors.New("not a signing key of a tripline log")

// GenerateKey returns a new signing key as text. The log id in its name is random.
func GenerateKey() (string, error) {
	var id [8]byte
	_, _ = rand.Read(id[:]) // crypto/rand.Read never fails
	skey, _, err := note.GenerateKey(rand.Reader, prefix+hex.EncodeToString(id[:]))
	return skey, err
}

// ParseKey reads what GenerateKey returned. Errors do not quote it.
func ParseKey(text string) (*Key, error) {
	text = strings.TrimSpace(text)
	signer, err := note.NewSigner(text)
	if err != nil {
		return nil, errKey
	}
	// PRIVATE+KEY+<name>+<hash>+<base64 of algorithm byte and seed>; base64 may hold "+", a name may not.
	parts := strings.SplitN(text, "+", 5)
	if len(parts) != 5 {
		return nil, errKey
	}
	raw, err := base64.StdEncoding.DecodeString(parts[4])
	if err != nil || len(raw) != 1+ed25519.SeedSize {
		return nil, errKey
	}
	public, ok := ed25519.NewKeyFromSeed(raw[1:]).Public().(ed25519.PublicKey)
	if !ok {
		return nil, errKey
	}
	vkey, err := note.NewEd25519VerifierKey(signer.Name(), public)
	if err != nil {
		return nil, errKey
	}
	v, _, err := ParseVerifier(vkey)
	if err != nil {
		return nil, errKey
	}
	return &Key{signer: signer, verifier: v, vkey: vkey}, nil
}

// Verifier returns the public half as text: a note verifier key.
func (k *Key) Verifier() string { return k.vkey }

// LogID returns the id of the log that k signs for.
func (k *Key) LogID() string { return strings.TrimPrefix(k.signer.Name(), prefix) }

// ParseVerifier reads a note verifier key of a log and returns it with the log's id.
func ParseVerifier(vkey string) (note.Verifier, string, error) {
	v, err := note.NewVerifier(strings.TrimSpace(vkey))
	if err != nil {
		return nil, "", errors.New("not a verifier key")
	}
	id, ok := strings.CutPrefix(v.Name(), prefix)
	if !ok || id == "" {
		return nil, "", errors.New("not a verifier key of a tripline log")
	}
	return v, id, nil
}
