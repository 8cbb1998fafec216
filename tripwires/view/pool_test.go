// SPDX-License-Identifier: Apache-2.0

package view

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// stuckTree is a Memory in which looking at names that hold "hang" blocks until it is released.
type stuckTree struct {
	*memTree
	release chan struct{}
}

func (s stuckTree) stat(parent handle, name string) (Info, error) {
	if strings.Contains(name, "hang") {
		<-s.release
	}
	return s.memTree.stat(parent, name)
}

func stuckPool(slots int) (*Pool, stuckTree) {
	m := NewMemory()
	for _, f := range []string{"/ok", "/mnt/hang1/f", "/mnt/hang2/f", "/mnt/hang3/f", "/mnt/fine"} {
		m.AddFile(f, nil)
	}
	t := stuckTree{m.nodes, make(chan struct{})}
	return newPool(slots, t), t
}

func TestAReadThatHangsKeepsItsSlotButNotItsCaller(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, tree := stuckPool(2)
		start := time.Now()
		r := p.Reader(t.Context())
		if _, err := r.Lstat("/mnt/hang1/f"); !errors.Is(err, ErrBusy) {
			t.Fatalf("a read that hangs: %v; want %v", err, ErrBusy)
		}
		if d := time.Since(start); d != readPatience {
			t.Errorf("the caller waited %v; want %v", d, readPatience)
		}
		start = time.Now()
		if _, err := r.Lstat("/ok"); !errors.Is(err, ErrBusy) || time.Since(start) != 0 {
			t.Errorf("the same decision waited again: %v after %v", err, time.Since(start))
		}
		if _, err := p.Reader(t.Context()).Lstat("/ok"); err != nil {
			t.Errorf("another decision: %v", err)
		}
		other := p.Reader(t.Context())
		if _, err := other.Lstat("/mnt/hang1/g"); !errors.Is(err, ErrBusy) || time.Since(start) != 0 {
			t.Errorf("the same mount took another slot: %v after %v", err, time.Since(start))
		}
		if _, err := other.Lstat("/mnt/fine"); err != nil {
			t.Errorf("what stands beside the mount: %v", err)
		}
		if _, err := p.Reader(t.Context()).Lstat("/mnt/hang2/f"); !errors.Is(err, ErrBusy) {
			t.Errorf("another mount: %v", err)
		}
		start = time.Now()
		if _, err := p.Reader(t.Context()).Lstat("/ok"); !errors.Is(err, ErrBusy) {
			t.Errorf("no slot is left: %v; want %v", err, ErrBusy)
		}
		if d := time.Since(start); d != slotPatience {
			t.Errorf("waited %v for a slot; want %v", d, slotPatience)
		}
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		if err := p.Close(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close while reads hang: %v", err)
		}
		cancel()
		close(tree.release)
		synctest.Wait()
		if len(p.hung) != 0 {
			t.Errorf("still said to hang: %v", p.hung)
		}
	})
}

func TestAReadEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p, tree := stuckPool(1)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		start := time.Now()
		_, err := p.Reader(ctx).ReadFile("/mnt/hang1/f", 9)
		if !errors.Is(err, ErrBusy) || !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 10*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, err := p.Reader(ctx).Lstat("/ok"); !errors.Is(err, ErrBusy) {
			t.Errorf("after the end: %v", err)
		}
		close(tree.release)
		synctest.Wait()
		if err := p.Close(t.Context()); err != nil {
			t.Errorf("Close: %v", err)
		}
		if _, err := p.Reader(t.Context()).Lstat("/ok"); !errors.Is(err, ErrBusy) {
			t.Errorf("after Close: %v", err)
		}
	})
}

func TestADecisionSeesOneStateOfTheMachine(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	m.AddFile("/p/f", []byte("x"))
	p := newPool(1, m.nodes)
	r := p.Reader(t.Context())
	before, err := r.Lstat("/p/f")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Lstat("/p/none"); err == nil {
		t.Fatal("it is not there yet")
	}
	m.AddFile("/p/f", []byte("longer"))
	m.AddFile("/p/none", nil)
	if after, err := r.Lstat("/p/f"); after != before || err != nil {
		t.Errorf("the file changed within the decision: %+v, %v", after, err)
	}
	if _, err := r.Lstat("/p/none"); err == nil {
		t.Error("a file appeared within the decision")
	}
	infos, err := r.StatBelow("/p", []string{"f", "none", "none/x"})
	if err != nil || infos[0] != before || infos[1] != (Info{}) || infos[2] != (Info{}) {
		t.Errorf("StatBelow: %+v, %v", infos, err)
	}
	if next, _ := p.Reader(t.Context()).Lstat("/p/f"); next == before {
		t.Error("the next decision sees the old state")
	}
}
