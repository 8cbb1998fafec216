// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"net"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFullQueueOfConnectionsIsATimeout(t *testing.T) {
	t.Parallel()
	path := filepath.Join(shortDir(t), "hook.sock")
	ln, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	raw, err := ln.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := shrinkQueue(raw); err != nil {
		t.Fatal(err)
	}
	for range 4 { // nobody accepts: fill the queue
		c := dialNonblocking(t, path)
		defer closeFD(c)
	}
	denied(t, run(t, "{}", "-s", path, "-t", "1000", "-o", "allow", "claude", "PreToolUse"), "PreToolUse", "daemon.timeout")
}

// shrinkQueue makes a listening socket queue one connection.
func shrinkQueue(raw syscall.RawConn) (err error) {
	if e := raw.Control(func(fd uintptr) { err = syscall.Listen(int(fd), 0) }); e != nil {
		return e
	}
	return err
}

// dialNonblocking connects if there is room in the queue, and returns the socket either way.
func dialNonblocking(t *testing.T, path string) int {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrUnix{Name: path}); err != nil && err != syscall.EAGAIN {
		t.Fatal(err)
	}
	return fd
}

func closeFD(fd int) { syscall.Close(fd) }
