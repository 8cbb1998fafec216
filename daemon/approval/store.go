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
	maxTombs      = 1 << 16
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

// room returns the operations that make room for one more card, and a function that carries them out in memory. ok is
// false if every card is live.
func (g *Gate) room() (ops []StateOp, apply func(), ok bool) {
	if len(g.cards) < g.o.MaxCards {
		return nil, func() {}, true
	}
	var oldest *entry
	for _, e := range g.cards {
		if e.State.final() && e.waiters == 0 && (oldest == nil || older(e, oldest)) {
			oldest = e
		}
	}
	if oldest == nil {
		return nil, nil, false
	}
	t := tomb{ID: oldest.ID, Token: oldest.Token, State: oldest.State, Seq: oldest.Seq, At: oldest.EndedAt, Until: oldest.Until}
	b, err := json.Marshal(t)
	if err != nil {
		return nil, nil, false
	}
	ops = []StateOp{{Key: keyCard + t.ID}, {Key: keyTomb + t.ID, Value: b}}
	var drop *tomb
	if len(g.tombs) >= maxTombs {
		d := slices.MinFunc(g.tombList(), func(a, b tomb) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID)) })
		drop = &d
		ops = append(ops, StateOp{Key: keyTomb + d.ID})
	}
	return ops, func() {
		if drop != nil {
			delete(g.tombs, drop.ID)
			if g.tombByToken[drop.Token] == drop.ID {
				delete(g.tombByToken, drop.Token)
			}
		}
		delete(g.cards, t.ID)
		if g.byToken[t.Token] == oldest {
			delete(g.byToken, t.Token)
		}
		g.tombs[t.ID] = t
		g.tombByToken[t.Token] = t.ID
	}, true
}

func older(a, b *entry) bool {
	if c := a.EndedAt.Compare(b.EndedAt); c != 0 {
		return c < 0
	}
	return a.ID < b.ID
}

func (g *Gate) tombList() []tomb {
	list := make([]tomb, 0, len(g.tombs))
	for _, t := range g.tombs {
		list = append(list, t)
	}
	return list
}
