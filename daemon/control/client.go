// SPDX-License-Identifier: Apache-2.0

package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
)

// ErrUnreachable says that no daemon answers on the socket. Errors that wrap it are *UnreachableError.
var ErrUnreachable = errors.New("daemon unreachable")

// UnreachableError names the socket and what to do about it.
type UnreachableError struct {
	Socket string
	Err    error
}

func (e *UnreachableError) Error() string {
	var op *net.OpError
	switch {
	case errors.Is(e.Err, fs.ErrNotExist), errors.Is(e.Err, syscall.ECONNREFUSED): // the plain case: none runs
		return fmt.Sprintf("no daemon answers on %q", e.Socket)
	case errors.As(e.Err, &op): // the address stands there already
		return fmt.Sprintf("no daemon answers on %q: %v", e.Socket, op.Err)
	}
	return fmt.Sprintf("no daemon answers on %q: %v", e.Socket, e.Err)
}

// Hint says what to do.
func (e *UnreachableError) Hint() string {
	return "start the daemon (triplined), or set TRIPLINE_HOME to the directory that it uses"
}

// Is makes errors.Is(err, ErrUnreachable) true.
func (e *UnreachableError) Is(target error) bool { return target == ErrUnreachable }

func (e *UnreachableError) Unwrap() error { return e.Err }

// ResponseError is an answer of the daemon that is not a success.
type ResponseError struct {
	Status  int // HTTP status: 404 = nothing found, 409 = stale
	Message string
	Hint    string
}

func (e *ResponseError) Error() string { return e.Message }

// ErrorTrailer is the HTTP trailer of an answer in lines that says what went wrong after the first line.
const ErrorTrailer = "Tripline-Error"

// Limits of what the client reads.
const (
	maxAnswer = 16 << 20
	maxLine   = 64 << 20
)

// Client talks to the daemon's control socket. Its zero value is ready once Socket is set. It is safe for concurrent use.
type Client struct {
	Socket string
	// Dial overrides how the socket is reached; nil dials Socket.
	Dial func(ctx context.Context) (net.Conn, error)
	// Timeout bounds connecting; zero = 2 s. Answers may take as long as ctx allows.
	Timeout time.Duration
}

// Status returns the daemon's state.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var s Status
	return s, c.call(ctx, http.MethodGet, "/v1/status", nil, nil, &s)
}

// Calls calls fn for each call that f selects, oldest first. An error of fn ends it and is returned.
func (c *Client) Calls(ctx context.Context, f record.Filter, fn func(record.Call) error) error {
	return lines(ctx, c, "/v1/calls", CallsQuery(f), fn)
}

// Sessions calls fn for each session with a record in [from, to). Zero times do not restrict.
func (c *Client) Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error {
	return lines(ctx, c, "/v1/sessions", CallsQuery(record.Filter{From: from, To: to}), fn)
}

// Records calls fn for each record of the one call whose id begins with idPrefix, bodies included.
func (c *Client) Records(ctx context.Context, idPrefix string, fn func(RecordView) error) error {
	return lines(ctx, c, "/v1/records", url.Values{"call": {idPrefix}}, fn)
}

// Verify has the daemon check its log.
func (c *Client) Verify(ctx context.Context, req VerifyRequest) (record.Verification, error) {
	var v record.Verification
	return v, c.call(ctx, http.MethodPost, "/v1/verify", nil, req, &v)
}

// Approvals returns the pending cards, or all that are kept.
func (c *Client) Approvals(ctx context.Context, all bool) ([]Approval, error) {
	q := url.Values{}
	if all {
		q.Set("all", "1")
	}
	var a []Approval
	return a, c.call(ctx, http.MethodGet, "/v1/approvals", q, nil, &a)
}

// Approval returns the card whose id begins with idPrefix.
func (c *Client) Approval(ctx context.Context, idPrefix string) (Approval, error) {
	var a Approval
	return a, c.call(ctx, http.MethodGet, "/v1/approvals/"+url.PathEscape(idPrefix), nil, nil, &a)
}

// Decide approves or denies the card whose id begins with idPrefix and returns it as it is then.
func (c *Client) Decide(ctx context.Context, idPrefix string, req DecideRequest) (Approval, error) {
	var a Approval
	return a, c.call(ctx, http.MethodPost, "/v1/approvals/"+url.PathEscape(idPrefix)+"/decide", nil, req, &a)
}

// Reload puts the rules and configuration on disk in force.
func (c *Client) Reload(ctx context.Context, req ReloadRequest) (ReloadResponse, error) {
	var r ReloadResponse
	return r, c.call(ctx, http.MethodPost, "/v1/rules/reload", nil, req, &r)
}

// Announce tells the daemon that a person is about to write a settings file.
func (c *Client) Announce(ctx context.Context, req AnnounceRequest) (AnnounceResponse, error) {
	var r AnnounceResponse
	return r, c.call(ctx, http.MethodPost, "/v1/settings/announce", nil, req, &r)
}

// Canary returns a session whose first events are taken for a test of the hooks, and for no call of an agent.
func (c *Client) Canary(ctx context.Context, req CanaryRequest) (CanaryResponse, error) {
	var r CanaryResponse
	return r, c.call(ctx, http.MethodPost, "/v1/canary", nil, req, &r)
}

// Metrics returns Tripline's own metrics in the Prometheus text format.
func (c *Client) Metrics(ctx context.Context) ([]byte, error) {
	return c.text(ctx, http.MethodGet, "/v1/metrics", nil, nil)
}

// call makes one request and decodes its answer into out.
func (c *Client) call(ctx context.Context, method, path string, q url.Values, in, out any) error {
	b, err := c.text(ctx, method, path, q, in)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, out); err != nil {
		return fmt.Errorf("the daemon's answer cannot be read: %w", err)
	}
	return nil
}

// text makes one request and returns its whole answer.
func (c *Client) text(ctx context.Context, method, path string, q url.Values, in any) ([]byte, error) {
	res, done, err := c.do(ctx, method, path, q, in)
	if err != nil {
		return nil, err
	}
	defer done()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("the daemon's answer was cut off: %w", err)
	}
	if len(b) > maxAnswer {
		return nil, fmt.Errorf("the daemon's answer is larger than %d bytes", maxAnswer)
	}
	return b, nil
}

// lines makes one request and hands each line of its answer to fn.
func lines[T any](ctx context.Context, c *Client, path string, q url.Values, fn func(T) error) error {
	res, done, err := c.do(ctx, http.MethodGet, path, q, nil)
	if err != nil {
		return err
	}
	defer done()
	r := bufio.NewReaderSize(res.Body, 64<<10)
	for {
		line, err := readLine(r)
		if len(line) > 0 {
			var v T
			if err := json.Unmarshal(line, &v); err != nil {
				return fmt.Errorf("the daemon's answer cannot be read: %w", err)
			}
			if err := fn(v); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			if text := res.Trailer.Get(ErrorTrailer); text != "" {
				return &ResponseError{Status: http.StatusInternalServerError, Message: text}
			}
			return nil
		}
		if err != nil { // an answer that was cut off must not pass for a whole one
			return fmt.Errorf("the daemon's answer was cut off: %w", err)
		}
	}
}

func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		if len(line) > maxLine {
			return nil, fmt.Errorf("line is larger than %d bytes", maxLine)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return bytes.TrimRight(line, "\n"), err
		}
	}
}

// do makes one request over a connection of its own. done must be called after a success.
func (c *Client) do(ctx context.Context, method, path string, q url.Values, in any) (res *http.Response, done func(), err error) {
	var body io.Reader
	if in != nil {
		b, err := json.Marshal(in)
		if err != nil {
			return nil, nil, err
		}
		body = bytes.NewReader(b)
	}
	u := url.URL{Scheme: "http", Host: "tripline", Opaque: "//tripline" + path, RawQuery: q.Encode()}
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, nil, err
	}
	if in != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	tr := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		conn, err := c.dial(ctx)
		if err != nil {
			return nil, &UnreachableError{Socket: c.Socket, Err: err}
		}
		return conn, nil
	}}
	res, err = (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		var un *UnreachableError
		if errors.As(err, &un) {
			return nil, nil, un
		}
		return nil, nil, fmt.Errorf("asking the daemon: %w", errors.Unwrap(err))
	}
	if res.StatusCode/100 != 2 {
		defer tr.CloseIdleConnections()
		defer res.Body.Close()
		return nil, nil, responseError(res)
	}
	answer := res.Body
	return res, func() {
		answer.Close()
		tr.CloseIdleConnections()
	}, nil
}

func (c *Client) dial(ctx context.Context) (net.Conn, error) {
	timeout := c.Timeout
	if timeout <= 0 {
		timeout = 2 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if c.Dial != nil {
		return c.Dial(ctx)
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", c.Socket)
}

func responseError(res *http.Response) error {
	e := &ResponseError{Status: res.StatusCode, Message: "the daemon answered " + res.Status}
	b, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	var body ErrorBody
	if err == nil && json.Unmarshal(b, &body) == nil && body.Error != "" {
		e.Message, e.Hint = body.Error, body.Hint
	}
	return e
}
