// SPDX-License-Identifier: Apache-2.0

// Package client is all of tripline-hook: it moves one event from its agent to the daemon and the answer back, and answers itself
// when that fails. It decides nothing else. It is one thread of raw system calls: no goroutine, no timer, no environment variable,
// no JSON. Every wait is one poll for the thing waited for, a signal, and the deadline.
package client

import (
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/hooks/client/sys"
	"github.com/tripline-sh/tripline/hooks/spool"
	"github.com/tripline-sh/tripline/hooks/wire"
)

const (
	// firstAnswer is how long the daemon may take for a first frame, and how long it may take no byte of a request.
	firstAnswer = 10 * time.Second

	// speakTime is how long an agent may take no byte of our answer. It runs beyond the deadline.
	speakTime = 2 * time.Second

	// retryConnect is the pause between attempts to connect to a socket whose queue is full.
	retryConnect = 5 * time.Millisecond

	// startTime is how long a daemon that we started may take until it listens, startPause the pause between looks.
	startTime  = time.Second
	startPause = 10 * time.Millisecond

	exitOK   = 0
	exitDeny = 2
)

// Process is what Run needs of the process around it.
type Process struct {
	Name    string    // argv[0]: the hook's own path where the agent gave one; it is shown and never run
	Args    []string  // the command line without the program's name
	Started time.Time // start of main: the deadline counts from here
	In      int       // descriptors of stdin, stdout and stderr
	Out     int
	Err     int
	Signals int // becomes readable when the process is asked to end; -1 if nothing can
}

// hook is the state of one run.
type hook struct {
	p        Process
	a        args
	class    class
	deadline time.Time

	buf   []byte // room for a header, then the payload
	n     int    // payload bytes in buf
	read  uint64 // payload bytes read; more than n when they are streamed
	flags uint8  // for the spool
	spoke bool   // stdout may hold something already: it is written once
}

// Run does the whole work of one tripline-hook and returns its exit code: 0 or 2, plus what -x says. It never panics.
func Run(p Process) int {
	a, wrong := parseArgs(p.Args, uint32(syscall.Geteuid()))
	if wrong != "" {
		return a.shift + refuseArgs(p, wrong)
	}
	h := &hook{p: p, a: a}
	h.class, _ = classify(a.agent, a.event)
	if h.a.patience == 0 {
		h.a.patience = h.class.patience()
	}
	h.deadline = p.Started.Add(h.a.patience)
	return a.shift + h.answer(h.exchange)
}

// answer gives the agent what exchange brought, or an answer of our own if it brought none or panicked.
func (h *hook) answer(exchange func() (*wire.Reply, spool.Fault)) (exit int) {
	defer func() {
		if recover() != nil {
			exit = h.lastResort()
		}
	}()
	reply, fault := exchange()
	if fault != 0 {
		return h.fail(fault)
	}
	code, heard := h.say(reply.Stdout, reply.Stderr, int(reply.Exit))
	if !heard && h.class.gates() && code == exitOK {
		return h.fail(spool.Output)
	}
	return code
}

// exchange takes the event to the daemon and returns its final answer, or why there is none.
func (h *hook) exchange() (*wire.Reply, spool.Fault) {
	var err error
	if h.buf, err = sys.Reserve(wire.HeaderMax + wire.MaxPayload + 1); err != nil {
		return nil, spool.Internal
	}
	if fault := h.readInput(); fault != 0 {
		return nil, fault
	}
	fd, fault := h.connect()
	if fault != 0 {
		return nil, fault
	}
	if fault := h.send(fd); fault != 0 {
		return nil, fault
	}
	return h.receive(fd)
}

// fail answers in the daemon's place: what the event's class says, on record in the spool.
func (h *hook) fail(f spool.Fault) int {
	m := spool.Meta{Flags: h.flags, Answer: spool.Silent, Fault: f, Read: h.read}
	exit := exitOK
	switch {
	case !h.class.gates():
	case h.a.downAllow && f == spool.Absent:
		m.Answer = spool.Passed
	default:
		m.Answer = spool.Denied
		stdout, stderr := canned(h.class, h.a.event, f, startCommand(h.p.Name))
		exit, _ = h.say([]byte(stdout), []byte(stderr), exitDeny)
	}
	if h.a.spool != "" && h.buf != nil {
		// The answer is out, and whoever would hear of a failure is the one that is away.
		_ = spool.Write(h.a.spool, m, h.header(), h.payload()[:h.n])
	}
	return exit
}

// lastResort is what is left after a panic: the same deny, from nothing but constants.
func (h *hook) lastResort() (exit int) {
	if !h.class.gates() {
		return exitOK
	}
	defer func() {
		if recover() != nil {
			exit = exitDeny
		}
	}()
	stdout, stderr := canned(h.class, h.a.event, spool.Internal, "")
	exit, _ = h.say([]byte(stdout), []byte(stderr), exitDeny)
	return exit
}

func (h *hook) header() wire.Header {
	return wire.Header{
		Agent:     h.a.agent,
		Event:     h.a.event,
		Token:     h.a.token,
		Deadline:  h.deadline.UnixNano(),
		Started:   h.p.Started.UnixNano(),
		Sent:      time.Now().UnixNano(),
		ParentPID: int32(syscall.Getppid()),
	}
}

// refuseArgs answers a command line that makes no sense. It may come before anything that could fail.
func refuseArgs(p Process, wrong string) int {
	if harmless(eventOf(p.Args)) {
		return exitOK
	}
	h := &hook{p: p}
	exit, _ := h.say(nil, []byte("tripline-hook: "+wrong+"\n"+usage), exitDeny)
	return exit
}
