// SPDX-License-Identifier: Apache-2.0

package client

import (
	"strconv"
	"time"

	"github.com/tripline-sh/tripline/hooks/wire"
)

const usage = "usage: tripline-hook -s SOCKET [-u UID] [-q SPOOLDIR] [-t MS] [-o allow] [-n TOKEN] [-x N] AGENT EVENT [-- DAEMON ARG...]\n"

// args is a command line.
type args struct {
	socket    string
	uid       uint32        // the only user whose answers count
	spool     string        // "" = do not spool
	patience  time.Duration // from the start of main to the moment when we answer ourselves; 0 = the event's default
	downAllow bool          // let gate events pass while there is no daemon
	token     string
	shift     int // added to the exit code, see maxShift
	agent     string
	event     string
	daemon    []string // the command line that starts the daemon; nil = nothing does
}

// startMark stands between the event and the command line that starts the daemon.
const startMark = "--"

// maxPatience keeps a mistyped -t from overflowing anything.
const maxPatience = 24 * time.Hour

// A shell in front of the hook runs a file that is no program as a script, and so takes an exit code of 0 from a file of blanks. Codes
// that are shifted come from the hook alone. Neither of them may be one that means something already: 0 to 2, 126 and more.
const (
	minShift = 3
	maxShift = 123
)

// parseArgs reads a command line, without the program's name. ownUID stands in for -u. Every option takes one value, stands
// once, and stands before AGENT. On failure a holds the options before the broken one, and wrong says what is wrong without repeating
// what was given: it goes to the model, and the arguments hold a token.
func parseArgs(in []string, ownUID uint32) (a args, wrong string) {
	a.uid = ownUID
	var seen [256]bool
	for len(in) > 0 && len(in[0]) > 0 && in[0][0] == '-' {
		if len(in[0]) != 2 {
			return a, "unknown option"
		}
		opt := in[0][1]
		if len(in) < 2 {
			return a, "an option without its value"
		}
		if seen[opt] {
			return a, "an option given twice"
		}
		seen[opt] = true
		if wrong := a.set(opt, in[1]); wrong != "" {
			return a, wrong
		}
		in = in[2:]
	}
	if len(in) < 2 || len(in) > 2 && in[2] != startMark {
		return a, "want AGENT and EVENT after the options"
	}
	a.agent, a.event = in[0], in[1]
	if len(in) > 2 {
		a.daemon = in[3:]
	}
	switch {
	case a.socket == "":
		return a, "no -s SOCKET"
	case !knownAgent(a.agent):
		return a, "unknown agent"
	case a.event == "" || len(a.event) > wire.MaxName:
		return a, "EVENT is empty or too long"
	case len(in) > 2 && (len(a.daemon) == 0 || a.daemon[0] == "" || a.daemon[0][0] != '/'):
		// A name would be looked up in the agent's directory or in its PATH.
		return a, "want the absolute path of a program after --"
	}
	return a, ""
}

// eventOf is the EVENT of a command line that may be broken, "" if it has none.
func eventOf(in []string) string {
	for i, s := range in {
		if s == startMark {
			in = in[:i]
			break
		}
	}
	if len(in) == 0 {
		return ""
	}
	return in[len(in)-1]
}

func (a *args) set(opt byte, v string) (wrong string) {
	switch opt {
	case 's', 'q':
		// A relative path would mean what the agent's directory makes of it.
		if v == "" || v[0] != '/' {
			return "a path that is not absolute"
		}
		if opt == 's' {
			a.socket = v
		} else {
			a.spool = v
		}
	case 'u':
		n, err := strconv.ParseUint(v, 10, 32)
		if err != nil {
			return "-u is not a user's number"
		}
		a.uid = uint32(n)
	case 't':
		n, err := strconv.ParseUint(v, 10, 32)
		if a.patience = time.Duration(n) * time.Millisecond; err != nil || n == 0 || a.patience > maxPatience {
			return "-t is not a number of milliseconds up to a day"
		}
	case 'o':
		if v != "allow" {
			return "-o knows only allow"
		}
		a.downAllow = true
	case 'n':
		if len(v) > wire.MaxToken {
			return "-n is too long"
		}
		a.token = v
	case 'x':
		n, err := strconv.ParseUint(v, 10, 8)
		if err != nil || n < minShift || n > maxShift {
			return "-x is not a number from 3 to 123"
		}
		a.shift = int(n)
	default:
		return "unknown option"
	}
	return ""
}
