// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// Bar is a progress bar on one line of a terminal. It is safe for concurrent use; the zero value shows nothing.
type Bar struct {
	w     io.Writer
	now   func() time.Time
	width int // columns of the terminal

	mu    sync.Mutex
	last  time.Time
	shown string
	ended bool
}

// redraw is how often the line may change: often enough to move, too seldom to flicker.
const redraw = 100 * time.Millisecond

// NewBar makes a bar on a terminal of that many columns.
func NewBar(w io.Writer, width int, now func() time.Time) *Bar {
	return &Bar{w: w, now: now, width: width, last: now()} // a quick run ends before anything is drawn
}

// Set shows how much is done.
func (b *Bar) Set(done, total int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w == nil || b.ended || total <= 0 {
		return
	}
	at := b.now()
	if at.Sub(b.last) < redraw {
		return
	}
	b.last = at
	done = min(done, total)
	label := fmt.Sprintf(" %3d %%  %s of %s", done*100/total, Size(done), Size(total))
	cells := min(30, b.width-len(label)-3)
	text := strings.TrimLeft(label, " ")
	if cells >= 5 {
		full := int(int64(cells) * done / total)
		text = "[" + strings.Repeat("=", full) + strings.Repeat(" ", cells-full) + "]" + label
	}
	if text != b.shown {
		b.shown = text
		_, _ = io.WriteString(b.w, "\r"+text+"\x1b[K")
	}
}

// Clear takes the bar away for good.
func (b *Bar) Clear() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.w != nil && b.shown != "" {
		_, _ = io.WriteString(b.w, "\r\x1b[K")
	}
	b.shown, b.ended = "", true
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%d kB", n/1000)
	case n < 1000*1000*1000:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
	return fmt.Sprintf("%.1f GB", float64(n)/1e9)
}
