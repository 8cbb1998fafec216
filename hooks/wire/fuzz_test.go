// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"bytes"
	"testing"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// What ReadHeader accepts is exactly what AppendHeader writes: one encoding for one header, and nothing else is a header.
func FuzzReadHeader(f *testing.F) {
	for _, h := range headers {
		b, err := wire.AppendHeader(nil, &h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(b, "{}\n"...))
	}
	f.Add([]byte("GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\n\r\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r := bytes.NewReader(in)
		h, err := wire.ReadHeader(r)
		if err != nil {
			return
		}
		used := in[:len(in)-r.Len()]
		b, err := wire.AppendHeader(nil, h)
		if err != nil || !bytes.Equal(b, used) {
			t.Fatalf("read %x as %+v, which encodes to %x, %v", used, h, b, err)
		}
	})
}

func FuzzReadReply(f *testing.F) {
	for _, r := range replies {
		b, err := wire.AppendReply(nil, &r)
		if err != nil {
			f.Fatal(err)
		}
		b = b[:min(len(b), 4096)]
		f.Add(b)
		f.Add(b[:len(b)/2])
		f.Add(append(b, 0))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		rd := bytes.NewReader(in)
		r, err := wire.ReadReply(rd)
		if err != nil {
			return
		}
		used := in[:len(in)-rd.Len()]
		b, err := wire.AppendReply(nil, r)
		if err != nil || !bytes.Equal(b, used) {
			t.Fatalf("read %x as %+v, which encodes to %x, %v", used, r, b, err)
		}
	})
}
