// SPDX-License-Identifier: Apache-2.0

// Package wire is the framing between tripline-hook and triplined. It imports next to nothing, since the hook links it:
// no fmt, no net, no encoding, no reflect.
//
// Request, sent once by the hook (integers big-endian):
//
//	offset size
//	0      4    magic "TRPL"
//	4      1    version (1)
//	5      1    flags (FlagStream)
//	6      1    length of agent
//	7      1    length of event
//	8      1    length of token
//	9      1    zero
//	10     8    deadline, Unix nanoseconds: when the hook gives up
//	18     8    started, Unix nanoseconds: start of the hook's main
//	26     8    sent, Unix nanoseconds: when this header was built
//	34     4    parent process id of the hook (a claim; the kernel tells who connected)
//	38     4    length of payload
//	42     -    agent, event, token, payload
//
// With FlagStream the payload is larger than MaxPayload: its length field holds 0 and the bytes follow until the hook shuts
// its writing side down.
//
// Reply, sent by the daemon: any number of HOLD frames, then one final frame.
//
//	0      4    magic "TRPR"
//	4      1    version (1)
//	5      1    kind: 1 final, 2 hold
//	6      1    exit code
//	7      1    zero
//	8      4    length of stdout
//	12     4    length of stderr
//	16     -    stdout, stderr
package wire

import (
	"errors"
	"io"
)

// Limits and constants of the protocol.
const (
	Version    = 1
	MaxPayload = 32 << 20 // largest payload of a gate event
	MaxName    = 64       // agent, event
	MaxToken   = 64
	MaxOutput  = 256 << 10 // stdout and stderr of a reply, together

	// FlagStream marks a payload beyond MaxPayload: it follows until end of stream.
	FlagStream = 1

	headerLen = 42
	replyLen  = 16

	KindFinal = 1
	KindHold  = 2
)

// Errors of the decoders. They never hold input.
var (
	ErrMagic   = errors.New("not a tripline frame")
	ErrVersion = errors.New("unknown protocol version")
	ErrFrame   = errors.New("malformed frame")
	ErrTooBig  = errors.New("frame is larger than the limit")
)

// Header is a request without its payload.
type Header struct {
	Flags      uint8
	Agent      string
	Event      string
	Token      string
	Deadline   int64 // Unix ns
	Started    int64 // Unix ns
	Sent       int64 // Unix ns
	ParentPID  int32
	PayloadLen uint32 // 0 with FlagStream
}

// Stream reports whether the payload follows until end of stream.
func (h *Header) Stream() bool { return h.Flags&FlagStream != 0 }

// HeaderMax is the size of the largest encoded header.
const HeaderMax = headerLen + 2*MaxName + MaxToken

// AppendHeader appends the encoded header to dst. It fails with ErrTooBig for names or a payload beyond the limits, and with
// ErrFrame for what ReadHeader would refuse: unknown flags, a length beside FlagStream. A failure leaves dst as it was.
func AppendHeader(dst []byte, h *Header) ([]byte, error) {
	if len(h.Agent) > MaxName || len(h.Event) > MaxName || len(h.Token) > MaxToken || h.PayloadLen > MaxPayload {
		return dst, ErrTooBig
	}
	if h.Flags&^FlagStream != 0 || h.Stream() && h.PayloadLen != 0 {
		return dst, ErrFrame
	}
	dst = append(dst, 'T', 'R', 'P', 'L', Version, h.Flags, byte(len(h.Agent)), byte(len(h.Event)), byte(len(h.Token)), 0)
	dst = put64(dst, uint64(h.Deadline))
	dst = put64(dst, uint64(h.Started))
	dst = put64(dst, uint64(h.Sent))
	dst = put32(dst, uint32(h.ParentPID))
	dst = put32(dst, h.PayloadLen)
	dst = append(dst, h.Agent...)
	dst = append(dst, h.Event...)
	return append(dst, h.Token...), nil
}

// ReadHeader reads one request header from r and leaves r at the first payload byte. Lengths are checked before anything
// is allocated for them. Errors are those of this package or of r; io.EOF means that r ended before the first byte, and an
// end anywhere later is io.ErrUnexpectedEOF.
func ReadHeader(r io.Reader) (*Header, error) {
	var b [headerLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	if string(b[:4]) != "TRPL" {
		return nil, ErrMagic
	}
	if b[4] != Version {
		return nil, ErrVersion
	}
	na, ne, nt := int(b[6]), int(b[7]), int(b[8])
	if b[5]&^FlagStream != 0 || b[9] != 0 || na > MaxName || ne > MaxName || nt > MaxToken {
		return nil, ErrFrame
	}
	h := &Header{
		Flags:      b[5],
		Deadline:   int64(get64(b[10:])),
		Started:    int64(get64(b[18:])),
		Sent:       int64(get64(b[26:])),
		ParentPID:  int32(get32(b[34:])),
		PayloadLen: get32(b[38:]),
	}
	if h.PayloadLen > MaxPayload {
		return nil, ErrTooBig
	}
	if h.Stream() && h.PayloadLen != 0 {
		return nil, ErrFrame
	}
	var s [2*MaxName + MaxToken]byte
	if err := readRest(r, s[:na+ne+nt]); err != nil {
		return nil, err
	}
	h.Agent, h.Event, h.Token = string(s[:na]), string(s[na:na+ne]), string(s[na+ne:na+ne+nt])
	return h, nil
}

// Reply is one reply frame.
type Reply struct {
	Kind   uint8
	Exit   uint8
	Stdout []byte
	Stderr []byte
}

// AppendReply appends an encoded reply frame to dst. It fails with ErrTooBig if the outputs are larger than MaxOutput, and
// with ErrFrame for what ReadReply would refuse: an unknown kind, a hold that says something. A failure leaves dst as it was.
func AppendReply(dst []byte, r *Reply) ([]byte, error) {
	if len(r.Stdout)+len(r.Stderr) > MaxOutput {
		return dst, ErrTooBig
	}
	if r.Kind != KindFinal && (r.Kind != KindHold || r.Exit != 0 || len(r.Stdout)+len(r.Stderr) != 0) {
		return dst, ErrFrame
	}
	dst = append(dst, 'T', 'R', 'P', 'R', Version, r.Kind, r.Exit, 0)
	dst = put32(dst, uint32(len(r.Stdout)))
	dst = put32(dst, uint32(len(r.Stderr)))
	dst = append(dst, r.Stdout...)
	return append(dst, r.Stderr...), nil
}

// ReadReply reads one reply frame. Lengths are checked before anything is allocated for them. Which exit codes make sense is
// the hook's business, not the codec's. Errors are as for ReadHeader.
func ReadReply(r io.Reader) (*Reply, error) {
	var b [replyLen]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return nil, err
	}
	if string(b[:4]) != "TRPR" {
		return nil, ErrMagic
	}
	if b[4] != Version {
		return nil, ErrVersion
	}
	no, ne := get32(b[8:]), get32(b[12:])
	if b[7] != 0 || b[5] != KindFinal && b[5] != KindHold {
		return nil, ErrFrame
	}
	if no > MaxOutput || ne > MaxOutput || no+ne > MaxOutput {
		return nil, ErrTooBig
	}
	if b[5] == KindHold && (no != 0 || ne != 0 || b[6] != 0) {
		return nil, ErrFrame
	}
	out := make([]byte, no+ne)
	if err := readRest(r, out); err != nil {
		return nil, err
	}
	return &Reply{Kind: b[5], Exit: b[6], Stdout: out[:no:no], Stderr: out[no:]}, nil
}

// readRest fills b with bytes that the frame has promised: an end of stream before the first of them is no clean end.
func readRest(r io.Reader, b []byte) error {
	_, err := io.ReadFull(r, b)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

func put32(dst []byte, v uint32) []byte {
	return append(dst, byte(v>>24), byte(v>>16), byte(v>>8), byte(v))
}

func put64(dst []byte, v uint64) []byte { return put32(put32(dst, uint32(v>>32)), uint32(v)) }

func get32(b []byte) uint32 {
	return uint32(b[3]) | uint32(b[2])<<8 | uint32(b[1])<<16 | uint32(b[0])<<24
}

func get64(b []byte) uint64 { return uint64(get32(b))<<32 | uint64(get32(b[4:])) }
