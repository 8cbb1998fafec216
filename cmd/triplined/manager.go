// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	sd "github.com/coreos/go-systemd/v22/daemon"

	"github.com/tripline-sh/tripline/daemon"
)

// notifyTimeout bounds a word to the service manager, which may have stopped to listen.
const notifyTimeout = time.Second

// serviceManager returns what systemd said in the environment, and takes it out of there. nil if it did not start this process.
func serviceManager() (*daemon.Manager, error) {
	files := activation.Files(true)
	every, err := sd.SdWatchdogEnabled(true)
	socket := os.Getenv("NOTIFY_SOCKET")
	if e := os.Unsetenv("NOTIFY_SOCKET"); err == nil {
		err = e
	}
	if err != nil {
		return nil, fmt.Errorf("the service manager's environment: %w", err)
	}
	if len(files) == 0 && socket == "" {
		return nil, nil
	}
	m := &daemon.Manager{Sockets: files, Watchdog: every}
	if socket != "" {
		m.Notify = notifier(socket)
	}
	return m, nil
}

// notifier returns a function that tells the socket of NOTIFY_SOCKET a state: one datagram, as sd_notify sends it.
func notifier(socket string) func(string) error {
	return func(state string) error {
		c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
		if err != nil {
			return err
		}
		defer c.Close()
		if err := c.SetWriteDeadline(time.Now().Add(notifyTimeout)); err != nil {
			return err
		}
		_, err = c.Write([]byte(state))
		return err
	}
}
