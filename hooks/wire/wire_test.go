// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/hooks/wire"
)

var headers = map[string]wire.Header{
	"an ordinary gate event": {
		Agent: "claude", Event: "PreToolUse", Token: "0123456789abcdef", Deadline: 1796058720123456789,
		Started: 1796058580123456789, Sent: 1796058580124456789, ParentPID: 4242, PayloadLen: 6 << 20,
	},
	"no token and no payload": {Agent: "claude", Event: "Stop"},
	"a payload of exactly the limit": {
		Agent: "claude", Event: "PreToolUse", PayloadLen: wire.MaxPayload,
	},
	"a streamed payload":           {Flags: wire.FlagStream, Agent: "claude", Event: "PostToolUse"},
	"names of exactly the limit":   {Agent: strings.Repeat("a", wire.MaxName), Event: strings.Repeat("e", wire.MaxName), Token: strings.Repeat("t", wire.MaxToken)},
	"negative times and parent":    {Agent: "claude", Event: "Stop", Deadline: -1, Started: -2, Sent: -3, ParentPID: -4},
	"names that are not printable": {Agent: "\x00\xff", Event: "\n", Token: "\x1b"},
}

func TestHeaderRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range headers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := wire.AppendHeader([]byte("before"), &want)
			if err != nil {
				t.Fatal(err)
			}
			if len(b)-len("before") > wire.HeaderMax {
				t.Errorf("encoded header has %d bytes, HeaderMax is %d", len(b)-len("before"), wire.HeaderMax)
			}
			r := iotest.OneByteReader(bytes.NewReader(append(b[len("before"):], "payload"...)))
			got, err := wire.ReadHeader(r)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, *got); d != "" {
				t.Errorf("header changed on the way (-want +got):\n%s", d)
			}
			if rest, _ := io.ReadAll(r); string(rest) != "payload" {
				t.Errorf("the reader stands at %q, want the first payload byte", rest)
			}
		})
	}
}

func TestAppendHeaderRefusesWhatReadHeaderWould(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 65)
	for name, tc := range map[string]struct {
		h    wire.Header
		want error
	}{
		"an agent that is too long":     {wire.Header{Agent: long}, wire.ErrTooBig},
		"an event that is too long":     {wire.Header{Event: long}, wire.ErrTooBig},
		"a token that is too long":      {wire.Header{Token: long}, wire.ErrTooBig},
		"a payload beyond the limit":    {wire.Header{PayloadLen: wire.MaxPayload + 1}, wire.ErrTooBig},
		"an unknown flag":               {wire.Header{Flags: 2}, wire.ErrFrame},
		"a length beside a stream flag": {wire.Header{Flags: wire.FlagStream, PayloadLen: 1}, wire.ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := wire.AppendHeader([]byte("x"), &tc.h)
			if !errors.Is(err, tc.want) || string(b) != "x" {
				t.Errorf("AppendHeader = %q, %v; want %q, %v", b, err, "x", tc.want)
			}
		})
	}
}

// edit returns a valid encoding with one byte replaced.
func edit(b []byte, at int, v byte) []byte {
	c := bytes.Clone(b)
	c[at] = v
	return c
}

func TestReadHeaderRefuses(t *testing.T) {
	t.Parallel()
	good, err := wire.AppendHeader(nil, &wire.Header{Agent: "claude", Event: "Stop", Token: "t", PayloadLen: 9})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing at all":                {nil, io.EOF},
		"half a fixed part":             {good[:20], io.ErrUnexpectedEOF},
		"a fixed part without names":    {good[:42], io.ErrUnexpectedEOF},
		"names that end early":          {good[:len(good)-1], io.ErrUnexpectedEOF},
		"an HTTP request":               {[]byte("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"), wire.ErrMagic},
		"a reply instead of a request":  {edit(good, 3, 'R'), wire.ErrMagic},
		"version 0":                     {edit(good, 4, 0), wire.ErrVersion},
		"version 2":                     {edit(good, 4, 2), wire.ErrVersion},
		"an unknown flag":               {edit(good, 5, 0x80), wire.ErrFrame},
		"a stream with a length":        {edit(good, 5, wire.FlagStream), wire.ErrFrame},
		"an agent that is too long":     {edit(good, 6, 65), wire.ErrFrame},
		"an event that is too long":     {edit(good, 7, 255), wire.ErrFrame},
		"a token that is too long":      {edit(good, 8, 65), wire.ErrFrame},
		"a reserved byte that is set":   {edit(good, 9, 1), wire.ErrFrame},
		"a payload of almost 4 GiB":     {edit(good, 38, 0xff), wire.ErrTooBig},
		"a payload just over the limit": {edit(edit(good, 38, 2), 41, 1), wire.ErrTooBig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if h, err := wire.ReadHeader(bytes.NewReader(tc.in)); !errors.Is(err, tc.want) || h != nil {
				t.Errorf("ReadHeader = %v, %v; want nil, %v", h, err, tc.want)
			}
		})
	}
}

var replies = map[string]wire.Reply{
	"a pass":                   {Kind: wire.KindFinal},
	"a deny":                   {Kind: wire.KindFinal, Exit: 2, Stdout: []byte(`{"decision":"block"}`), Stderr: []byte("tripline: denied (x)\n")},
	"only stderr":              {Kind: wire.KindFinal, Exit: 2, Stderr: []byte("e")},
	"a hold":                   {Kind: wire.KindHold},
	"outputs of just the size": {Kind: wire.KindFinal, Stdout: make([]byte, wire.MaxOutput-1), Stderr: make([]byte, 1)},
}

func TestReplyRoundTrip(t *testing.T) {
	t.Parallel()
	for name, want := range replies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := wire.AppendReply(nil, &want)
			if err != nil {
				t.Fatal(err)
			}
			got, err := wire.ReadReply(iotest.HalfReader(bytes.NewReader(b)))
			if err != nil {
				t.Fatal(err)
			}
			if got.Kind != want.Kind || got.Exit != want.Exit || !bytes.Equal(got.Stdout, want.Stdout) || !bytes.Equal(got.Stderr, want.Stderr) {
				t.Errorf("reply changed on the way: sent %+v, got %+v", want, got)
			}
			if grown := append(got.Stdout, 'X'); len(got.Stderr) > 0 && got.Stderr[0] == 'X' {
				t.Errorf("appending to Stdout overwrote Stderr (%d bytes)", len(grown))
			}
		})
	}
}

func TestAppendReplyRefusesWhatReadReplyWould(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		r    wire.Reply
		want error
	}{
		"one byte too much":        {wire.Reply{Kind: wire.KindFinal, Stdout: make([]byte, wire.MaxOutput), Stderr: make([]byte, 1)}, wire.ErrTooBig},
		"no kind":                  {wire.Reply{}, wire.ErrFrame},
		"an unknown kind":          {wire.Reply{Kind: 3}, wire.ErrFrame},
		"a hold with a text":       {wire.Reply{Kind: wire.KindHold, Stderr: []byte("x")}, wire.ErrFrame},
		"a hold with an exit code": {wire.Reply{Kind: wire.KindHold, Exit: 2}, wire.ErrFrame},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := wire.AppendReply([]byte("x"), &tc.r)
			if !errors.Is(err, tc.want) || string(b) != "x" {
				t.Errorf("AppendReply = %q, %v; want %q, %v", b, err, "x", tc.want)
			}
		})
	}
}

func TestReadReplyRefuses(t *testing.T) {
	t.Parallel()
	good, err := wire.AppendReply(nil, &wire.Reply{Kind: wire.KindFinal, Exit: 2, Stdout: []byte("out"), Stderr: []byte("err")})
	if err != nil {
		t.Fatal(err)
	}
	hold, err := wire.AppendReply(nil, &wire.Reply{Kind: wire.KindHold})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		in   []byte
		want error
	}{
		"nothing at all":               {nil, io.EOF},
		"half a fixed part":            {good[:9], io.ErrUnexpectedEOF},
		"a fixed part without outputs": {good[:16], io.ErrUnexpectedEOF},
		"outputs that end early":       {good[:len(good)-1], io.ErrUnexpectedEOF},
		"text":                         {[]byte("500 internal error\n"), wire.ErrMagic},
		"another version":              {edit(good, 4, 9), wire.ErrVersion},
		"kind 0":                       {edit(good, 5, 0), wire.ErrFrame},
		"kind 3":                       {edit(good, 5, 3), wire.ErrFrame},
		"a reserved byte that is set":  {edit(good, 7, 1), wire.ErrFrame},
		"a hold that has an exit code": {edit(hold, 6, 2), wire.ErrFrame},
		"a hold that has an output":    {edit(hold, 11, 1), wire.ErrFrame},
		"a stdout of almost 4 GiB":     {edit(good, 8, 0xff), wire.ErrTooBig},
		"a stderr of almost 4 GiB":     {edit(good, 12, 0xff), wire.ErrTooBig},
		"lengths whose sum overflows":  {edit(edit(good, 8, 0x80), 12, 0x80), wire.ErrTooBig},
		"outputs over the limit by 3":  {edit(edit(good, 9, 4), 11, 0), wire.ErrTooBig},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if r, err := wire.ReadReply(bytes.NewReader(tc.in)); !errors.Is(err, tc.want) || r != nil {
				t.Errorf("ReadReply = %v, %v; want nil, %v", r, err, tc.want)
			}
		})
	}
}
