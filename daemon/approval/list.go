// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"maps"
	"slices"
	"strings"
)

// Pending returns how many cards wait for a decision.
func (g *Gate) Pending() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pendingLocked()
}

func (g *Gate) pendingLocked() (n int) {
	for _, e := range g.cards {
		if e.State == Pending {
			n++
		}
	}
	return n
}

// List returns the pending cards, or all that are kept, in the order in which they were requested.
func (g *Gate) List(all bool) []Card {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := []Card{}
	for _, e := range g.cards {
		if all || e.State == Pending {
			list = append(list, e.snapshot())
		}
	}
	slices.SortFunc(list, func(a, b Card) int {
		if c := a.Requested.Compare(b.Requested); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return list
}

// Show returns the card whose id begins with idPrefix.
func (g *Gate) Show(idPrefix string) (Card, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e, err := g.find(idPrefix)
	if err != nil {
		return Card{}, err
	}
	return e.snapshot(), nil
}

// snapshot returns a copy that shares no memory that changes.
func (e *entry) snapshot() Card {
	c := e.Card
	c.Waiting = e.waiters > 0
	return c
}

// find returns the one card whose id begins with prefix; the caller holds mu. A card of which only the tombstone is left
// counts too, so that a prefix never slides from an old card to a new one.
func (g *Gate) find(prefix string) (*entry, error) {
	prefix = strings.ToLower(prefix)
	if prefix == "" || len(prefix) > idLen {
		return nil, ErrNotFound
	}
	if e := g.cards[prefix]; e != nil {
		return e, nil
	}
	var ids []string
	for _, all := range []func(func(string) bool){maps.Keys(g.cards), maps.Keys(g.tombs)} {
		for id := range all {
			if strings.HasPrefix(id, prefix) {
				ids = append(ids, id)
			}
		}
	}
	switch {
	case len(ids) == 0:
		return nil, ErrNotFound
	case len(ids) > 1:
		return nil, ErrAmbiguous
	}
	if e := g.cards[ids[0]]; e != nil {
		return e, nil
	}
	return nil, &StaleError{ID: ids[0], State: g.tombs[ids[0]].State}
}
