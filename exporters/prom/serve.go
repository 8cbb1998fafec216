// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

const (
	maxConns   = 32  // open connections; more wait in the kernel
	maxSockLen = 103 // of a socket path: the smallest sun_path of the systems we run on, less the final NUL
)

// Handler serves /metrics to GET and HEAD and knows no other path. port is the bound TCP port: a request must name
// 127.0.0.1, localhost or [::1] with it as its host, so that a web page cannot read the metrics through a name of its own.
// port 0 takes any host, for Unix sockets.
func (m *Metrics) Handler(port int) http.Handler {
	metrics := promhttp.HandlerFor(m.all, promhttp.HandlerOpts{EnableOpenMetrics: true, MaxRequestsInFlight: 4, Timeout: 10 * time.Second})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Cache-Control", "no-store")
		switch {
		case port != 0 && !localHost(r.Host, port):
			http.Error(w, "this host name is not served here", http.StatusMisdirectedRequest)
		case r.URL.Path != "/metrics":
			http.Error(w, "only /metrics is here", http.StatusNotFound)
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD", http.StatusMethodNotAllowed)
		default:
			metrics.ServeHTTP(w, r)
		}
	})
}

// Own serves Tripline's own metrics, without those of the runtime and the process, in the Prometheus text format whatever the
// request accepts: for a textfile.
func (m *Metrics) Own() http.Handler {
	h := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{DisableCompression: true})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = r.Clone(r.Context())
		r.Header.Del("Accept")
		h.ServeHTTP(w, r)
	})
}

func localHost(host string, port int) bool {
	name, p, err := net.SplitHostPort(host)
	if err != nil || p != strconv.Itoa(port) {
		return false
	}
	return name == "127.0.0.1" || name == "::1" || strings.EqualFold(name, "localhost")
}

// Server is a running endpoint.
type Server struct {
	addr string
	http *http.Server
	done chan struct{}
	once sync.Once
	err  error
}

// Serve starts the endpoint and returns when it listens. listen is HOST:PORT on a loopback address (port 0 = any free
// one), "unix:PATH", or "off" for a Server that does nothing. It ends with ctx or Close. logf, which may be nil, is told
// when serving ends for another reason.
func (m *Metrics) Serve(ctx context.Context, listen string, logf func(format string, args ...any)) (*Server, error) {
	s := &Server{done: make(chan struct{})}
	if listen == "off" {
		close(s.done)
		return s, nil
	}
	l, port, err := bind(ctx, listen)
	if err != nil {
		return nil, err
	}
	s.addr = l.Addr().String()
	if port == 0 {
		s.addr = "unix:" + s.addr
	}
	s.http = &http.Server{
		Handler:           m.Handler(port),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       10 * time.Second,
		WriteTimeout:      20 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    8 << 10,
		ErrorLog:          discard(),
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
	stop := context.AfterFunc(ctx, func() { s.http.Close() })
	go func() {
		defer close(s.done)
		defer stop()
		err := s.http.Serve(&limited{Listener: l, slots: make(chan struct{}, maxConns), closed: make(chan struct{})})
		if !errors.Is(err, http.ErrServerClosed) && logf != nil {
			logf("metrics endpoint ended: %v", err)
		}
	}()
	return s, nil
}

// Addr returns the bound address, HOST:PORT or unix:PATH; "" if the endpoint is off.
func (s *Server) Addr() string { return s.addr }

// Close ends the endpoint and waits for it. It may be called more than once.
func (s *Server) Close() error {
	s.once.Do(func() {
		if s.http != nil {
			s.err = s.http.Close()
		}
	})
	<-s.done
	return s.err
}

// bind listens; port is 0 for a Unix socket.
func bind(ctx context.Context, listen string) (l net.Listener, port int, err error) {
	if path, ok := strings.CutPrefix(listen, "unix:"); ok {
		l, err = bindUnix(ctx, path)
		return l, 0, err
	}
	host, p, err := net.SplitHostPort(listen)
	if err != nil {
		return nil, 0, fmt.Errorf("metrics address %q: want HOST:PORT, unix:PATH or off", listen)
	}
	if strings.EqualFold(host, "localhost") {
		host = "127.0.0.1" // a name could be resolved to somewhere else
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, 0, fmt.Errorf("metrics address %q: only loopback addresses are served, such as 127.0.0.1:%s", listen, p)
	}
	if n, err := strconv.ParseUint(p, 10, 16); err != nil {
		return nil, 0, fmt.Errorf("metrics address %q: %q is no port number", listen, p)
	} else {
		p = strconv.FormatUint(n, 10)
	}
	var lc net.ListenConfig
	if l, err = lc.Listen(ctx, "tcp", net.JoinHostPort(host, p)); err != nil {
		return nil, 0, fmt.Errorf("metrics endpoint: %w", err)
	}
	return l, l.Addr().(*net.TCPAddr).Port, nil
}

// bindUnix listens on a socket that only its owner may use. A socket that nobody answers on is a leftover and is replaced;
// anything else at that path is left alone.
func bindUnix(ctx context.Context, path string) (net.Listener, error) {
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("metrics socket %q: want an absolute path", path)
	}
	if len(path) > maxSockLen {
		return nil, fmt.Errorf("metrics socket %q: path is %d bytes long, at most %d fit", path, len(path), maxSockLen)
	}
	if fi, err := os.Lstat(path); err == nil {
		if fi.Mode().Type() != fs.ModeSocket {
			return nil, fmt.Errorf("metrics socket %q: there is something else", path)
		}
		d := net.Dialer{Timeout: time.Second}
		c, err := d.DialContext(ctx, "unix", path)
		if err == nil {
			c.Close()
			return nil, fmt.Errorf("metrics socket %q: %w", path, syscall.EADDRINUSE)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return nil, fmt.Errorf("metrics socket %q: %w", path, err)
		}
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("metrics socket: %w", err)
		}
	}
	// On Linux a socket's file takes its mode from the descriptor, so there is no moment at which others may connect; the
	// chmod afterwards is for systems that ignore that.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { _ = syscall.Fchmod(int(fd), 0o600) })
	}}
	l, err := lc.Listen(ctx, "unix", path)
	if err != nil {
		return nil, fmt.Errorf("metrics socket: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		l.Close()
		return nil, fmt.Errorf("metrics socket: %w", err)
	}
	return l, nil
}
