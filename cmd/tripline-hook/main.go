// SPDX-License-Identifier: Apache-2.0

// Command tripline-hook is what a coding agent runs for every event: it takes the event from stdin to the Tripline daemon and the
// answer back to the agent. If that fails, it denies what waits for a verdict and says nothing to the rest.
//
//	tripline-hook -s SOCKET [-u UID] [-q SPOOLDIR] [-t MS] [-o allow] [-n TOKEN] [-x N] AGENT EVENT [-- DAEMON ARG...]
//
//	-s  the daemon's socket
//	-u  the user that must be listening there (default: the hook's own)
//	-q  where to leave events that the daemon could not take
//	-t  milliseconds after which the hook answers itself
//	-o  allow: let calls pass while there is no daemon; nothing else lets them pass
//	-n  the token of this installation, passed on to the daemon
//	-x  a number to add to the exit code, by which a shell in front tells an answer from a file that is no program
//	--  what starts the daemon, by its absolute path, where no service manager does: the hook runs it once if nobody listens, in a
//	    session of its own and with an empty environment, and gives it a second
//
// The exit code is 0 or 2, plus N. No environment variable is used, neither by this code nor by the Go runtime below it, which would read its
// own (GOMEMLIMIT, GOMAXPROCS, GODEBUG and others) before main, and with bad ones end the process or fill the memory: contrib/dev/build.sh
// links the program, for Linux on amd64 and arm64, with -E tripline_entry, and that entry empties the environment before the runtime
// starts. A program built in another way, or for another platform, has no such entry: there the agent's entry for the hook must count
// every other exit code as a refusal, or clear the variables.
package main

import (
	"os"
	"time"

	"github.com/tripline-sh/tripline/hooks/client"
	"github.com/tripline-sh/tripline/hooks/client/sys"
)

func main() {
	started := time.Now()
	signals, err := sys.CatchSignals()
	if err != nil {
		signals = -1
	}
	name := ""
	if len(os.Args) > 0 {
		name = os.Args[0]
	}
	os.Exit(client.Run(client.Process{
		Name:    name,
		Args:    os.Args[min(1, len(os.Args)):],
		Started: started,
		In:      0,
		Out:     1,
		Err:     2,
		Signals: signals,
	}))
}
