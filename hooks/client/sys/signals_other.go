// SPDX-License-Identifier: Apache-2.0

//go:build !linux || (!amd64 && !arm64)

package sys

import (
	"os"
	"os/signal"
	"syscall"
)

// CatchSignals makes SIGTERM, SIGINT, SIGHUP and SIGQUIT readable: each makes the returned descriptor ready instead of ending
// the process. A signal that was ignored at start stays ignored. To be called once; its goroutine lives as long as the process.
func CatchSignals() (int, error) {
	r, w, err := wakePipe()
	if err != nil {
		return -1, err
	}
	c := make(chan os.Signal, 1)
	for _, sig := range [...]os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT} {
		if !signal.Ignored(sig) {
			signal.Notify(c, sig)
		}
	}
	go func() {
		for range c {
			Write(w, []byte{1}) //nolint:errcheck // a full pipe has already woken its reader
		}
	}()
	return r, nil
}

// defaultSignals does nothing: a signal that was ignored at start is ignored in what this process starts too.
func defaultSignals() error { return nil }
