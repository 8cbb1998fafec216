// SPDX-License-Identifier: Apache-2.0

package prom

import (
	"io"
	"log"
	"net"
	"sync"
)

// limited is a listener with a bounded number of open connections. A full one leaves the others in the kernel's queue, so
// that a flood costs neither memory nor descriptors.
type limited struct {
	net.Listener
	slots  chan struct{}
	closed chan struct{}
	once   sync.Once
}

func (l *limited) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &slotConn{Conn: c, free: sync.OnceFunc(func() { <-l.slots })}, nil
}

func (l *limited) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type slotConn struct {
	net.Conn
	free func()
}

func (c *slotConn) Close() error {
	err := c.Conn.Close()
	c.free()
	return err
}

// discard returns a logger for net/http's complaints about single connections, which are the client's business.
func discard() *log.Logger { return log.New(io.Discard, "", 0) }
