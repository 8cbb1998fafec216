// SPDX-License-Identifier: Apache-2.0

// Package spool is where tripline-hook leaves what the daemon was not there to record: one file an event in a directory of the
// daemon's state, until package ingest reads it. The hook links this package, so it imports next to nothing.
//
// A file is written under a name ending in .tmp, synced, and renamed to TIME-PID-RANDOM-SIZE.evt, where TIME is Unix nanoseconds
// in 19 digits, so that names sort by time, and SIZE is the file's length, so that the directory's can be added up without
// looking at its files. What the bounds keep out is counted: each event not spooled is one byte in the file named dropped.
//
// An entry (integers big-endian) is
//
//	0   4  magic "TRPS"
//	4   1  version (1)
//	5   1  flags
//	6   1  answer: what the hook told the agent
//	7   1  fault: why the daemon's answer was not to be had
//	8   8  how many bytes of payload the hook had read
//	16  -  a request header of package wire, whose length counts the payload below
//	    -  the first MaxPayload bytes of the payload
//
// Nothing in a spool is authenticated: any process of the same user can write there.
package spool

import (
	"errors"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// Bounds of a spool. The hook keeps them without a lock, so that several hooks at once may overshoot by an entry each.
const (
	MaxEntries = 4096
	MaxBytes   = 64 << 20
	MaxPayload = 1 << 20 // of one entry; the rest is cut off and FlagCut is set
	MaxDropped = 1 << 20 // the count of dropped events stops here

	// MaxEntry is the size of the largest entry.
	MaxEntry = PreambleLen + wire.HeaderMax + MaxPayload

	// PreambleLen is the size of what stands before the request header.
	PreambleLen = 16

	// DroppedName is the file whose length is the number of events that were dropped.
	DroppedName = "dropped"
)

// Flags of an entry.
const (
	FlagCut  = 1 // the payload was longer than what is kept
	FlagOpen = 2 // the hook had not met the end of its input
	FlagSent = 4 // the daemon was sent the whole event and may have a record of its own

	flagsKnown = FlagCut | FlagOpen | FlagSent
)

// Answer is what the hook told its agent.
type Answer uint8

// The answers.
const (
	Denied Answer = 1 // refused with a canned text
	Passed Answer = 2 // let through without a verdict, since on_down is allow
	Silent Answer = 3 // an event that waits for no verdict: exit 0, no output
)

// String names the answer.
func (a Answer) String() string {
	switch a {
	case Denied:
		return "denied"
	case Passed:
		return "passed"
	case Silent:
		return "silent"
	}
	return "unknown"
}

// Fault is why the hook had no answer of the daemon. The zero value is no fault.
type Fault uint8

// The faults.
const (
	Absent      Fault = 1 // there is no socket, or nobody listens on it
	Unreachable Fault = 2 // the socket cannot be used
	Impostor    Fault = 3 // another user listens on the socket
	Timeout     Fault = 4 // no answer in time
	Garbled     Fault = 5 // an answer that is none
	Input       Fault = 6 // the event itself could not be read from stdin
	Interrupted Fault = 7 // a signal ended the hook
	Internal    Fault = 8 // the hook itself failed
	Output      Fault = 9 // the agent could not be given the daemon's answer

	lastFault = Output
)

// Rule returns the stable id under which a fault is shown and counted.
func (f Fault) Rule() string {
	switch f {
	case Absent, Unreachable:
		return "daemon.unreachable"
	case Impostor:
		return "daemon.impostor"
	case Timeout:
		return "daemon.timeout"
	case Garbled:
		return "daemon.garbled"
	case Input:
		return "hook.input"
	case Interrupted:
		return "hook.interrupted"
	case Output:
		return "hook.output"
	}
	return "hook.internal"
}

// Meta is what an entry says about its event beside the request header.
type Meta struct {
	Flags  uint8
	Answer Answer
	Fault  Fault
	Read   uint64 // bytes of payload that the hook had read; with FlagOpen there were more
}

// ErrPreamble means that bytes do not begin like an entry.
var ErrPreamble = errors.New("not a spool entry")

// AppendPreamble appends the encoded m to dst.
func AppendPreamble(dst []byte, m Meta) []byte {
	dst = append(dst, 'T', 'R', 'P', 'S', 1, m.Flags, byte(m.Answer), byte(m.Fault))
	for shift := 56; shift >= 0; shift -= 8 {
		dst = append(dst, byte(m.Read>>shift))
	}
	return dst
}

// ParsePreamble decodes the first PreambleLen bytes of b.
func ParsePreamble(b []byte) (Meta, error) {
	if len(b) < PreambleLen || string(b[:5]) != "TRPS\x01" {
		return Meta{}, ErrPreamble
	}
	m := Meta{Flags: b[5], Answer: Answer(b[6]), Fault: Fault(b[7])}
	if m.Flags&^flagsKnown != 0 || m.Answer < Denied || m.Answer > Silent || m.Fault < Absent || m.Fault > lastFault {
		return Meta{}, ErrPreamble
	}
	for _, c := range b[8:PreambleLen] {
		m.Read = m.Read<<8 | uint64(c)
	}
	return m, nil
}
