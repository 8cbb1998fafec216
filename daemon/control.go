// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/approval"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/daemon/internal/sock"
)

const (
	maxControlBody  = 64 << 10
	maxControlConns = 32
)

// controlServer serves control.sock. It knows the paths of package control and no other.
type controlServer struct {
	http *http.Server
	done chan struct{}
}

type peerKey struct{}

// newControlServer starts serving on ln.
func newControlServer(d *Daemon, ln *net.UnixListener) *controlServer {
	mux := http.NewServeMux()
	for pattern, h := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /v1/status":                 d.getStatus,
		"GET /v1/calls":                  d.getCalls,
		"GET /v1/records":                d.getRecords,
		"GET /v1/sessions":               d.getSessions,
		"GET /v1/events":                 d.getEvents,
		"POST /v1/verify":                d.postVerify,
		"GET /v1/approvals":              d.getApprovals,
		"GET /v1/approvals/{id}":         d.getApproval,
		"POST /v1/approvals/{id}/decide": d.postDecide,
		"GET /v1/rules":                  d.getRules,
		"POST /v1/rules/reload":          d.postReload,
		"POST /v1/settings/announce":     d.postAnnounce,
		"POST /v1/canary":                d.postCanary,
		"GET /v1/metrics":                d.getMetrics,
	} {
		mux.HandleFunc(pattern, d.endpoint(h))
	}
	mux.HandleFunc("/", d.endpoint(func(http.ResponseWriter, *http.Request) error {
		return &control.ResponseError{Status: http.StatusNotFound, Message: "there is nothing here", Hint: "this socket is for auditctl"}
	}))
	s := &controlServer{done: make(chan struct{}), http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       15 * time.Second,
		WriteTimeout:      10 * time.Minute, // a verification of a large log
		IdleTimeout:       30 * time.Second,
		MaxHeaderBytes:    16 << 10,
		ErrorLog:          log.New(io.Discard, "", 0),
		BaseContext:       func(net.Listener) context.Context { return d.workCtx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			if pc, ok := c.(*peerConn); ok {
				return context.WithValue(ctx, peerKey{}, pc.peer)
			}
			return ctx
		},
	}}
	go func() { // ends when close shuts the server
		defer close(s.done)
		if err := s.http.Serve(&peerListener{UnixListener: ln, d: d, slots: make(chan struct{}, maxControlConns), closed: make(chan struct{})}); !errors.Is(err, http.ErrServerClosed) {
			d.logger.Error().Err(err).Msg("the control socket ended")
		}
	}()
	return s
}

// close lets requests under way end, as long as ctx allows.
func (s *controlServer) close(ctx context.Context) error {
	err := s.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, s.http.Close())
	}
	<-s.done
	return err
}

// peerListener accepts connections of this user only, and a bounded number of them.
type peerListener struct {
	*net.UnixListener
	d      *Daemon
	slots  chan struct{}
	closed chan struct{}
}

// peerConn is a connection and who made it.
type peerConn struct {
	*net.UnixConn
	peer sock.Peer
	free func()
}

func (c *peerConn) Close() error {
	c.free()
	return c.UnixConn.Close()
}

func (l *peerListener) Accept() (net.Conn, error) {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
		c, err := l.AcceptUnix()
		if err != nil {
			<-l.slots
			return nil, err
		}
		peer, err := sock.PeerOf(c)
		if err == nil && l.d.trustedUID(peer.UID) {
			return &peerConn{UnixConn: c, peer: peer, free: sync.OnceFunc(func() {
				peer.Close()
				<-l.slots
			})}, nil
		}
		peer.Close()
		c.Close()
		<-l.slots
		l.d.logger.Warn().Uint32("uid", peer.UID).Msg("a process of another user was refused on the control socket")
	}
}

func (l *peerListener) Close() error {
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
	return l.UnixListener.Close()
}

// endpoint turns errors into answers, and a panic into an error.
func (d *Daemon) endpoint(h func(http.ResponseWriter, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		defer func() {
			if v := recover(); v != nil {
				if v == http.ErrAbortHandler {
					panic(v)
				}
				d.logger.Error().Str("path", r.Pattern).Msg("panic")
				writeError(w, errors.New("the daemon failed on this request"))
			}
		}()
		r.Body = http.MaxBytesReader(w, r.Body, maxControlBody)
		if err := h(w, r); err != nil {
			writeError(w, err)
		}
	}
}

// writeError answers with the status that fits an error.
func writeError(w http.ResponseWriter, err error) {
	re := &control.ResponseError{Status: http.StatusInternalServerError, Message: err.Error()}
	var stale *approval.StaleError
	var given *control.ResponseError
	switch {
	case errors.As(err, &given):
		re = given
	case errors.As(err, &stale):
		re.Status, re.Hint = http.StatusConflict, "auditctl approvals show "+stale.ID
	case errors.Is(err, approval.ErrNotFound), errors.Is(err, audit.ErrNotFound):
		re.Status = http.StatusNotFound
	case errors.Is(err, approval.ErrAmbiguous), errors.Is(err, audit.ErrAmbiguous):
		re.Status, re.Hint = http.StatusBadRequest, "give more characters of the id"
	case errors.Is(err, audit.ErrUnavailable), errors.Is(err, audit.ErrClosed), errors.Is(err, approval.ErrClosed):
		re.Status, re.Hint = http.StatusServiceUnavailable, "is the disk full? the daemon's own log on stderr says more"
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(re.Status)
	_ = json.NewEncoder(w).Encode(control.ErrorBody{Error: re.Message, Hint: re.Hint})
}

func badRequest(err error, hint string) error {
	return &control.ResponseError{Status: http.StatusBadRequest, Message: err.Error(), Hint: hint}
}

func writeJSON(w http.ResponseWriter, v any) error {
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(v)
}

// readJSON decodes a request's body strictly.
func readJSON(r *http.Request, v any) error {
	dec := json.NewDecoder(r.Body)
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return badRequest(errors.New("the request cannot be read"), "use an auditctl of the same version as the daemon")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return badRequest(errors.New("the request holds more than one value"), "")
	}
	return nil
}

// checkProof accepts the only proof that this version knows.
func checkProof(p control.Proof) error {
	if p.Level != "L0" {
		return badRequest(errors.New("this version knows the proof level L0 only"), "use an auditctl of the same version as the daemon")
	}
	return nil
}

// caller names who made a request, as far as the kernel tells.
func caller(r *http.Request) string {
	p, ok := r.Context().Value(peerKey{}).(sock.Peer)
	if !ok {
		return "unknown"
	}
	id := strconv.FormatUint(uint64(p.UID), 10)
	name := "uid " + id
	if u, err := user.LookupId(id); err == nil {
		name = u.Username + " (uid " + id + ")"
	}
	if self, err := proc.Lookup(p.PID); err == nil && self.Exe != "" && !p.Gone() {
		name += " with " + filepath.Base(self.Exe)
	}
	return name
}

// stream writes JSON lines. Once a line is out, an error goes into the trailer, where the client looks for it.
type stream struct {
	w       http.ResponseWriter
	enc     *json.Encoder
	started bool
}

func newStream(w http.ResponseWriter) *stream { return &stream{w: w, enc: json.NewEncoder(w)} }

func (s *stream) line(v any) error {
	if !s.started {
		s.started = true
		s.w.Header().Set("Content-Type", "application/jsonl")
		s.w.Header().Set("Trailer", control.ErrorTrailer)
	}
	return s.enc.Encode(v)
}

func (s *stream) end(err error) error {
	if err == nil || !s.started {
		return err
	}
	s.w.Header().Set(control.ErrorTrailer, strings.ReplaceAll(show.Line(err.Error(), 500), "\n", " "))
	return nil
}

// writeAddr leaves a file that names a bound address.
func writeAddr(path, addr string) error {
	return os.WriteFile(path, []byte(addr+"\n"), 0o600)
}
