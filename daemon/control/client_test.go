// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tripline-sh/tripline/audit/record"
)

func TestCallsQueryRoundTrip(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 24, 13, 14, 15, 16, time.FixedZone("", 3600))
	for _, f := range []record.Filter{
		{},
		{From: at, To: at.Add(time.Hour), Session: "s", Agent: "claude", Tool: "Bash", Verdict: "deny", Rule: "delete.", Project: "/p q", Grep: "a&b=c", Limit: 100},
		{Denied: true, Asked: true, Failed: true, Canary: true, ID: "x"},
	} {
		q, err := url.ParseQuery(CallsQuery(f).Encode())
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseCallsQuery(q)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(f, got); d != "" {
			t.Error(d)
		}
	}
}

func TestParseCallsQueryRefusesWhatItDoesNotUnderstand(t *testing.T) {
	t.Parallel()
	for _, q := range []string{"form=1", "from=yesterday", "limit=-1", "limit=x", "denied=yes", "tool=a&tool=b"} {
		v, err := url.ParseQuery(q)
		if err != nil {
			t.Fatal(err)
		}
		if f, err := ParseCallsQuery(v); err == nil {
			t.Errorf("%s was taken for %+v", q, f)
		}
	}
}

func TestNoDaemonIsATypedErrorWithARemedy(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{filepath.Join(dir, "none.sock"), file, filepath.Join(dir, strings.Repeat("x", 200))} {
		_, err := (&Client{Socket: path}).Status(t.Context())
		var un *UnreachableError
		if !errors.Is(err, ErrUnreachable) || !errors.As(err, &un) || un.Hint() == "" || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// served makes a client of a handler.
func served(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return &Client{Dial: func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "tcp", s.Listener.Addr().String())
	}}
}

func TestAnswersThatAreNone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		h    http.HandlerFunc
		err  string
	}{
		{"no JSON", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("hello")) }, "cannot be read"},
		{"an error with a text", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			_, _ = w.Write([]byte(`{"error":"no such call","hint":"h"}`))
		}, "no such call"},
		{"an error without one", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }, "500"},
		{"an answer that is cut off", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"version":`))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, "cut off"},
		{"an answer without end", func(w http.ResponseWriter, _ *http.Request) {
			for range maxAnswer/(1<<20) + 2 {
				if _, err := w.Write(make([]byte, 1<<20)); err != nil {
					return
				}
			}
		}, "larger than"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := served(t, tt.h).Status(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want %q in it", err, tt.err)
			}
		})
	}
}

func TestLinesTellAWholeAnswerFromACutOne(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		h    http.HandlerFunc
		n    int
		err  string
	}{
		{"two lines", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("{\"id\":\"a\"}\n{\"id\":\"b\"}\n"))
		}, 2, ""},
		{"no line", func(http.ResponseWriter, *http.Request) {}, 0, ""},
		{"an error after a line", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", ErrorTrailer)
			_, _ = w.Write([]byte("{\"id\":\"a\"}\n"))
			w.Header().Set(ErrorTrailer, "part of the log cannot be read")
		}, 1, "part of the log"},
		{"a cut after a line", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte("{\"id\":\"a\"}\n"))
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}, 1, "cut off"},
		{"a line that is none", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{\n")) }, 0, "cannot be read"},
		{"a long line", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"id":"` + strings.Repeat("x", 1<<20) + "\"}\n"))
		}, 1, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := 0
			err := served(t, tt.h).Calls(t.Context(), record.Filter{}, func(record.Call) error { n++; return nil })
			if n != tt.n || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%d lines, %v", n, err)
			}
		})
	}
	stop := errors.New("enough")
	err := served(t, tests[0].h).Calls(t.Context(), record.Filter{}, func(record.Call) error { return stop })
	if !errors.Is(err, stop) {
		t.Errorf("the caller's error is lost: %v", err)
	}
}

func TestAnUnreachableDaemonIsNamedOnce(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "control.sock")
	_, err := (&Client{Socket: socket}).Status(t.Context())
	if !errors.Is(err, ErrUnreachable) || err.Error() != fmt.Sprintf("no daemon answers on %q", socket) {
		t.Error(err)
	}
	long := "/" + strings.Repeat("x", 200)
	_, err = (&Client{Socket: long}).Status(t.Context())
	if !errors.Is(err, ErrUnreachable) || strings.Count(err.Error(), long) != 1 || !strings.Contains(err.Error(), "invalid") {
		t.Error(err)
	}
}
