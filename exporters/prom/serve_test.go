// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestOnlyMetricsAreServedAndOnlyToLocalNames(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, method, path, host string
		port, want               int
	}{
		{"a scrape by address", "GET", "/metrics", "127.0.0.1:9717", 9717, 200},
		{"a scrape by name", "GET", "/metrics", "LOCALHOST:9717", 9717, 200},
		{"a scrape by IPv6 address", "GET", "/metrics", "[::1]:9717", 9717, 200},
		{"HEAD", "HEAD", "/metrics", "127.0.0.1:9717", 9717, 200},
		{"a rebound name", "GET", "/metrics", "evil.example:9717", 9717, 421},
		{"a rebound name that looks local", "GET", "/metrics", "localhost.evil.example:9717", 9717, 421},
		{"another port", "GET", "/metrics", "127.0.0.1:80", 9717, 421},
		{"no port", "GET", "/metrics", "127.0.0.1", 9717, 421},
		{"no host", "GET", "/metrics", "", 9717, 421},
		{"another loopback address", "GET", "/metrics", "127.0.0.2:9717", 9717, 421},
		{"any host on a Unix socket", "GET", "/metrics", "whatever", 0, 200},
		{"POST", "POST", "/metrics", "127.0.0.1:9717", 9717, 405},
		{"OPTIONS", "OPTIONS", "/metrics", "127.0.0.1:9717", 9717, 405},
		{"the root", "GET", "/", "127.0.0.1:9717", 9717, 404},
		{"a profile", "GET", "/debug/pprof/", "127.0.0.1:9717", 9717, 404},
		{"an approval", "POST", "/v1/approvals/x/decide", "127.0.0.1:9717", 9717, 404},
		{"a path below", "GET", "/metrics/x", "127.0.0.1:9717", 9717, 404},
	}
	m := New("1")
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := httptest.NewRequest(tc.method, tc.path, nil)
			r.Host = tc.host
			w := httptest.NewRecorder()
			m.Handler(tc.port).ServeHTTP(w, r)
			if w.Code != tc.want {
				t.Errorf("status %d, want %d", w.Code, tc.want)
			}
			if w.Header().Get("Access-Control-Allow-Origin") != "" {
				t.Error("open to other origins")
			}
			if tc.want == 421 && strings.Contains(w.Body.String(), "tripline_") {
				t.Error("metrics in a refusal")
			}
		})
	}
}

func get(t *testing.T, s *Server) string {
	t.Helper()
	c := &http.Client{Timeout: 10 * time.Second}
	url := "http://" + s.Addr() + "/metrics"
	if path, ok := strings.CutPrefix(s.Addr(), "unix:"); ok {
		url = "http://unix/metrics"
		c.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		}}
	}
	defer c.CloseIdleConnections()
	resp, err := c.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func serve(t *testing.T, listen string) *Server {
	t.Helper()
	s, err := New("1").Serve(t.Context(), listen, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestServeOnAFreePort(t *testing.T) {
	t.Parallel()
	for _, listen := range []string{"127.0.0.1:0", "localhost:0"} {
		s := serve(t, listen)
		if !strings.HasPrefix(s.Addr(), "127.0.0.1:") || strings.HasSuffix(s.Addr(), ":0") {
			t.Errorf("%s: address %q", listen, s.Addr())
		}
		if !strings.Contains(get(t, s), "tripline_approvals_pending 0\n") {
			t.Error("no metrics")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("second close: %v", err)
		}
	}
}

func TestServeOff(t *testing.T) {
	t.Parallel()
	if s := serve(t, "off"); s.Addr() != "" || s.Close() != nil {
		t.Errorf("address %q", s.Addr())
	}
}

func TestServeEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := New("1").Serve(ctx, "127.0.0.1:0", t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		t.Fatal("still serving")
	}
	if _, err := net.Dial("tcp", s.Addr()); err == nil {
		t.Error("still listening")
	}
}

func TestAPortInUseIsAnErrorThatNamesIt(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	_, err := New("1").Serve(t.Context(), s.Addr(), nil)
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), s.Addr()) {
		t.Errorf("error %v", err)
	}
}

func TestOtherAddressesAreRefused(t *testing.T) {
	t.Parallel()
	long := "/" + strings.Repeat("x", 120)
	for listen, part := range map[string]string{
		"0.0.0.0:0": "loopback", ":9717": "loopback", "[::]:0": "loopback", "192.0.2.1:9717": "loopback", "example.com:80": "loopback",
		"127.0.0.1": "HOST:PORT", "": "HOST:PORT", "127.0.0.1:http": "port", "127.0.0.1:70000": "port", "127.0.0.1:-1": "port",
		"unix:": "absolute", "unix:rel.sock": "absolute", "unix:" + long: "at most",
	} {
		s, err := New("1").Serve(t.Context(), listen, nil)
		if err == nil {
			s.Close()
			t.Errorf("%q is served at %s", listen, s.Addr())
			continue
		}
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q: error %q does not say %q", listen, err, part)
		}
	}
}

func TestServeOnAUnixSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "m.sock")
	s := serve(t, "unix:"+path)
	if s.Addr() != "unix:"+path {
		t.Errorf("address %q", s.Addr())
	}
	fi, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", fi.Mode())
	}
	if !strings.Contains(get(t, s), "tripline_approvals_pending 0\n") {
		t.Error("no metrics")
	}
	if _, err := New("1").Serve(t.Context(), "unix:"+path, nil); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("second server: error %v", err)
	}
}

func TestAStaleSocketIsReplacedAndAnythingElseIsNot(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stale := filepath.Join(dir, "stale.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: stale, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	if !strings.Contains(get(t, serve(t, "unix:"+stale)), "tripline_") {
		t.Error("no metrics")
	}

	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, link} {
		if _, err := New("1").Serve(t.Context(), "unix:"+path, nil); err == nil {
			t.Errorf("%s was replaced", path)
		}
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "mine" {
		t.Errorf("file is %q, %v", b, err)
	}
}

func TestIdleConnectionsDoNotLockOutAScrapeForEver(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	var idle []net.Conn
	for range maxConns + 8 {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, c)
	}
	done := make(chan string, 1)
	go func() {
		resp, err := http.Get("http://" + s.Addr() + "/metrics")
		if err != nil {
			done <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		done <- string(b)
	}()
	for _, c := range idle {
		c.Close()
	}
	select {
	case body := <-done:
		if !strings.Contains(body, "tripline_") {
			t.Error(body)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no answer")
	}
}

func TestCloseEndsAFullServer(t *testing.T) {
	t.Parallel()
	s := serve(t, "127.0.0.1:0")
	for range maxConns + 8 {
		c, err := net.Dial("tcp", s.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
