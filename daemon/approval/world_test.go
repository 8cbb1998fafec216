// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/tripwires/view"
)

var errDisk = errors.New("no space left on device")

// disk is a Recorder that knows what is durable. It can be slow, fail, and lose the answer of a write that it made.
type disk struct {
	mu     sync.Mutex
	state  map[string][]byte
	events []Event
	delay  time.Duration
	fail   func(Event) (fails, writes bool)
	sizes  int // of the largest value
}

func (d *disk) Record(ctx context.Context, e Event) (uint64, error) {
	d.mu.Lock()
	delay, fail := d.delay, d.fail
	d.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	fails, writes := false, true
	if fail != nil {
		fails, writes = fail(e)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if writes || !fails {
		d.events = append(d.events, e)
		for _, op := range e.State {
			if op.Value == nil {
				delete(d.state, op.Key)
				continue
			}
			d.state[op.Key] = slices.Clone(op.Value)
			d.sizes = max(d.sizes, len(op.Value))
		}
	}
	if fails {
		return 0, errDisk
	}
	return uint64(len(d.events)), nil
}

func (d *disk) kinds() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var k []string
	for _, e := range d.events {
		k = append(k, strings.TrimPrefix(string(e.Kind), "approval."))
	}
	return strings.Join(k, " ")
}

func (d *disk) last() Event {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.events[len(d.events)-1]
}

func (d *disk) setFail(f func(Event) (fails, writes bool)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = f
}

// world is a machine: its disk, its clocks, its files.
type world struct {
	*disk
	mu         sync.Mutex
	start      time.Time
	wall, boot time.Duration // how far the clocks are off
	bootID     string
	changed    []string
	pending    int // as OnChange last said
	options    func(*Options)
}

func newWorld() *world {
	return &world{disk: &disk{state: map[string][]byte{}}, start: time.Now(), bootID: "boot-1"}
}

// gate starts the daemon's gate from what is on disk.
func (w *world) gate(t *testing.T) *Gate {
	t.Helper()
	w.disk.mu.Lock()
	load := maps.Clone(w.state)
	w.disk.mu.Unlock()
	o := Options{
		Recorder: w, Load: load, BootID: w.bootID,
		Now: func() time.Time {
			w.mu.Lock()
			defer w.mu.Unlock()
			return time.Now().Add(w.wall)
		},
		Boot: func() time.Duration {
			w.mu.Lock()
			defer w.mu.Unlock()
			return time.Since(w.start) + w.boot
		},
		Recheck: func(context.Context, []view.Entry) []string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.changed
		},
		OnChange: func(n int) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.pending = n
		},
	}
	if w.options != nil {
		w.options(&o)
	}
	g, err := New(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func (w *world) jump(wall, boot time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wall += wall
	w.boot += boot
}

func (w *world) reboot() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bootID += "+"
	w.boot = -time.Since(w.start)
}

func (w *world) setChanged(paths ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changed = paths
}

// call is a call that must be asked about; command makes it another one.
func call(command string) Call {
	input, err := json.Marshal(map[string]string{"command": command})
	if err != nil {
		panic(err)
	}
	return Call{
		ID: "call-1", Tool: "Bash", Canonical: input, Input: input, Cwd: "/home/dev/shop", Project: "/home/dev/shop", UID: 1000,
		Agent: "claude", Session: "s1", ToolUseID: "toolu_1", Rule: "delete.recursive", RuleHash: "abc",
		Reason: "deletes a directory", ReadSet: []view.Entry{{Path: "/home/dev/shop/clean.sh", Dev: 1, Ino: 2, Size: 3, Hash: "ff", Code: true}},
	}
}

func enter(t *testing.T, g *Gate, c Call, want State, code string) Ticket {
	t.Helper()
	tk, err := g.Enter(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	if tk.State != want || tk.Code != code {
		t.Fatalf("entered: %s %q, want %s %q", tk.State, tk.Code, want, code)
	}
	if (want == Refused) != (tk.Text != "") {
		t.Errorf("text %q of a ticket that is %s", tk.Text, want)
	}
	return tk
}

func decide(t *testing.T, g *Gate, id string, approve bool) Card {
	t.Helper()
	c, err := g.Decide(t.Context(), id, approve, Decision{By: "uid 1000", Reason: "because", Proof: "L0", Surface: "control"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func consume(t *testing.T, g *Gate, id string, c Call, want State, code string, wantErr ...error) {
	t.Helper()
	tk, err := g.Consume(t.Context(), id, c)
	if len(wantErr) == 0 && err != nil || len(wantErr) > 0 && !errors.Is(err, wantErr[0]) {
		t.Fatalf("consume: error %v, want %v", err, wantErr)
	}
	if tk.State != want || tk.Code != code {
		t.Fatalf("consumed: %s %q, want %s %q", tk.State, tk.Code, want, code)
	}
}

func tick(t *testing.T, g *Gate, want int) {
	t.Helper()
	n, err := g.Tick(t.Context())
	if err != nil || n != want {
		t.Fatalf("tick: %d, %v; want %d", n, err, want)
	}
}

func state(t *testing.T, g *Gate, id string, want State) Card {
	t.Helper()
	c, err := g.Show(id)
	if err != nil {
		t.Fatal(err)
	}
	if c.State != want {
		t.Fatalf("card is %s, want %s", c.State, want)
	}
	return c
}

func (w *world) recorded(t *testing.T, want string) {
	t.Helper()
	if got := w.kinds(); got != want {
		t.Errorf("on record: %s\nwant:      %s", got, want)
	}
}

// waitFor starts a wait and returns where its outcome comes.
func waitFor(ctx context.Context, g *Gate, id string) <-chan Outcome {
	ch := make(chan Outcome, 1)
	go func() {
		o, _ := g.Wait(ctx, id)
		ch <- o
	}()
	return ch
}

var _ Recorder = (*disk)(nil)
