// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net"
	"time"

	"github.com/tripline-sh/tripline/daemon/internal/sock"
	"github.com/tripline-sh/tripline/hooks/wire"
)

// maxDeadline bounds a hook's own deadline, which is a claim.
const maxDeadline = 10 * time.Minute

// request is one frame on its way through the pipeline.
type request struct {
	h        *wire.Header
	conn     *net.UnixConn // for HOLD frames and to see the hook go; nil for a spooled event
	peer     *sock.Peer    // nil for a spooled event
	received time.Time
	deadline time.Time // when the hook gives up: its claim, bounded
	readBy   time.Time // when the payload must be there
	decideBy time.Time // when a first answer must be on its way

	payload []byte
	// Of a payload beyond the protocol's limit only these are kept.
	oversize   bool
	streamLen  int64
	streamHash string // hex SHA-256
}

func newRequest(h *wire.Header, c *net.UnixConn, peer *sock.Peer, received time.Time, l limits) *request {
	deadline := time.Unix(0, h.Deadline)
	if latest := received.Add(maxDeadline); deadline.After(latest) || h.Deadline <= 0 {
		deadline = latest
	}
	// The reply must reach the hook before it gives up.
	margin := min(250*time.Millisecond, max(0, deadline.Sub(received)/4))
	last := deadline.Add(-margin)
	return &request{
		h:        h,
		conn:     c,
		peer:     peer,
		received: received,
		deadline: deadline,
		readBy:   earliest(last, received.Add(l.frame)),
		decideBy: last,
	}
}

// readPayload reads the payload into memory. Each piece must come within progress, the whole by readBy.
func (r *request) readPayload(progress time.Duration) error {
	r.payload = make([]byte, r.h.PayloadLen)
	for n := 0; n < len(r.payload); {
		if err := r.await(progress); err != nil {
			return err
		}
		m, err := r.conn.Read(r.payload[n:min(len(r.payload), n+(256<<10))])
		n += m
		if err != nil && n < len(r.payload) {
			return eof(err)
		}
	}
	return nil
}

// readStream reads a payload of any size to its end and keeps its length and hash.
func (r *request) readStream(progress time.Duration) error {
	r.oversize = true
	sum := sha256.New()
	buf := make([]byte, 64<<10)
	for {
		if err := r.await(progress); err != nil {
			return err
		}
		n, err := r.conn.Read(buf)
		sum.Write(buf[:n])
		r.streamLen += int64(n)
		if errors.Is(err, io.EOF) {
			r.streamHash = hex.EncodeToString(sum.Sum(nil))
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// await sets the deadline of the next read.
func (r *request) await(progress time.Duration) error {
	return r.conn.SetReadDeadline(earliest(time.Now().Add(progress), r.readBy))
}

func eof(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
