// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// State keys. A card is kept whole until its place is needed; then its tombstone remains.
const (
	keyCard = Prefix + "card/"
	keyTomb = Prefix + "tomb/"
	keyKey  = Prefix + "key"
)

const (
	defaultHold     = 120 * time.Second
	defaultDecideBy = 8 * time.Hour
	defaultUseBy    = 15 * time.Minute
	deniedFor       = 15 * time.Minute // the same call stays refused so long after a denial, within its decide-by

	maxInput      = 64 << 10 // of a card's input while it can be decided
	maxFinalInput = 4 << 10  // and after that
	maxTombs      = 1 << 14
	maxStored     = 1 << 20 // of one value read back
)

// stored is a card as it is kept: with its token and its deadlines on both clocks.
type stored struct {
	Card
	Token string   `json:"token"`
	Ends  deadline `json:"ends"`           // decide-by while pending, use-by when approved
	Until deadline `json:"until,omitzero"` // how long the same call stays refused after a denial or a use
}

// tomb is what remains of a card: enough to know its id, and to refuse a replay.
type tomb struct {
	ID    string    `json:"-"`
	Token string    `json:"token"`
	State State     `json:"state"`
	Seq   uint64    `json:"seq"`
	At    time.Time `json:"at"`
	Until deadline  `json:"until,omitzero"`
}

func (s State) final() bool { return s != Pending && s != Approved }

// valid reports whether s is a state that a stored card may have.
func (s State) valid() bool {
	switch s {
	case Pending, Approved, Denied, Expired, Cancelled, Consumed, Lapsed, Revoked:
		return true
	}
	return false
}

func (s *stored) op() (StateOp, error) {
	b, err := json.Marshal(s)
	return StateOp{Key: keyCard + s.ID, Value: b}, err
}

// load fills the gate from state and returns the keys that could not be understood.
func (g *Gate) load(state map[string][]byte) (bad []string) {
	for key, value := range state {
		switch {
		case key == keyKey:
			if validKey(value) {
				g.key, g.keyStored = slices.Clone(value), true
			}
		case strings.HasPrefix(key, keyCard):
			var s stored
			if len(value) > maxStored || json.Unmarshal(value, &s) != nil || keyCard+s.ID != key || !s.State.valid() || s.Token == "" {
				bad = append(bad, key)
				continue
			}
			g.cards[s.ID] = &entry{stored: s, changed: make(chan struct{})}
		case strings.HasPrefix(key, keyTomb):
			var t tomb
			if len(value) > maxStored || json.Unmarshal(value, &t) != nil || !t.State.final() || !t.State.valid() {
				bad = append(bad, key)
				continue
			}
			t.ID = strings.TrimPrefix(key, keyTomb)
			g.tombs[t.ID] = t
		case strings.HasPrefix(key, Prefix):
			bad = append(bad, key)
		}
	}
	for _, e := range g.cards {
		if cur := g.byToken[e.Token]; cur == nil || newer(&e.stored, &cur.stored) {
			g.byToken[e.Token] = e
		}
	}
	for _, t := range g.tombs {
		if cur, ok := g.tombByToken[t.Token]; !ok || g.tombs[cur].At.Before(t.At) {
			g.tombByToken[t.Token] = t.ID
		}
	}
	slices.Sort(bad)
	return bad
}

// newer reports whether a is the card of its token that counts: a live one before a final one, then the later one.
func newer(a, b *stored) bool {
	if a.State.final() != b.State.final() {
		return !a.State.final()
	}
	return a.Requested.After(b.Requested)
}

// room returns the operations that make room for one more card, and a function that carries them out in memory: the
// oldest final cards become tombstones. ok is false if there are not enough final ones. There are too many cards to begin
// with when a request was made durable and its answer was lost.
func (g *Gate) room() (ops []StateOp, apply func(), ok bool) {
	excess := len(g.cards) - g.o.MaxCards + 1
	if excess <= 0 {
		return nil, func() {}, true
	}
	var final []*entry
	for _, e := range g.cards {
		if e.State.final() && e.waiters == 0 {
			final = append(final, e)
		}
	}
	if len(final) < excess {
		return nil, nil, false
	}
	slices.SortFunc(final, older)
	final = final[:excess]
	fresh := make([]tomb, 0, excess)
	for _, e := range final {
		t := tomb{ID: e.ID, Token: e.Token, State: e.State, Seq: e.Seq, At: e.EndedAt, Until: e.Until}
		b, err := json.Marshal(t)
		if err != nil {
			return nil, nil, false
		}
		fresh = append(fresh, t)
		ops = append(ops, StateOp{Key: keyCard + t.ID}, StateOp{Key: keyTomb + t.ID, Value: b})
	}
	dropped := g.oldTombs(excess)
	for _, t := range dropped {
		ops = append(ops, StateOp{Key: keyTomb + t.ID})
	}
	return ops, func() {
		for _, t := range dropped {
			delete(g.tombs, t.ID)
			if g.tombByToken[t.Token] == t.ID {
				delete(g.tombByToken, t.Token)
			}
		}
		for i, t := range fresh {
			delete(g.cards, t.ID)
			if g.byToken[t.Token] == final[i] {
				delete(g.byToken, t.Token)
			}
			g.tombs[t.ID] = t
			g.tombByToken[t.Token] = t.ID
		}
	}, true
}

// oldTombs returns the tombstones that must go so that n more fit.
func (g *Gate) oldTombs(n int) []tomb {
	n += len(g.tombs) - g.o.maxTombs
	if n <= 0 {
		return nil
	}
	list := make([]tomb, 0, len(g.tombs))
	for _, t := range g.tombs {
		list = append(list, t)
	}
	slices.SortFunc(list, func(a, b tomb) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
	return list[:min(n, len(list))]
}

func older(a, b *entry) int { return cmp.Or(a.EndedAt.Compare(b.EndedAt), cmp.Compare(a.ID, b.ID)) }
