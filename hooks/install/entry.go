// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/tailscale/hujson"

	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

const binaryName = "tripline-hook"

// Entry is one hook entry of ours.
type Entry struct {
	Under       string // the event that it is registered for
	Event       string // the event that its arguments name; differs from Under only if somebody moved it
	Command     string // the hook binary
	Socket      string
	UID         string
	Spool       string
	DeadlineMS  string
	Token       string
	AllowOnDown bool
	Timeout     int  // seconds, 0 if absent
	Block       bool // onFailure is "block"

	// Daemon is the command line behind --, by which the hook starts the daemon; nil if there is none.
	Daemon []string
}

// daemonMark stands before the command line that starts the daemon.
const daemonMark = "--"

// Installed returns our entries in the bytes of a settings file, in the order of the file. An entry is ours if it runs a
// program called tripline-hook with arguments of the form that Plan writes; whose install it is, its token tells.
func Installed(b []byte) ([]Entry, error) {
	doc, err := parse(b)
	if err != nil {
		return nil, err
	}
	found, err := doc.ours()
	if err != nil {
		return nil, err
	}
	entries := make([]Entry, len(found))
	for i, f := range found {
		entries[i] = f.entry
	}
	return entries, nil
}

// tokenOf returns the token that all our entries in b share, "" if there is none.
func tokenOf(b []byte) string {
	entries, err := Installed(b)
	if err != nil || len(entries) == 0 || !validToken(entries[0].Token) {
		return ""
	}
	for _, e := range entries {
		if e.Token != entries[0].Token {
			return ""
		}
	}
	return entries[0].Token
}

// entry is what o installs for one event.
func (o *Options) entry(r agents.Registration, token string) Entry {
	e := Entry{
		Under: r.Event, Event: r.Event, Command: o.Binary, Socket: o.Socket, UID: strconv.Itoa(o.ServerUID), Spool: o.Spool,
		DeadlineMS: strconv.FormatInt(r.Deadline.Milliseconds(), 10), Token: token, AllowOnDown: o.AllowOnDown,
		Timeout: int(r.Timeout / time.Second), Block: r.Kind.Gates(),
	}
	if startsDaemon(r) {
		e.Daemon = o.Daemon
	}
	return e
}

// startsDaemon reports whether the hook of an event may start the daemon: what waits for a verdict needs it, and after the start of
// a session and a prompt, calls are about to come. What comes after a call is kept in the spool.
func startsDaemon(r agents.Registration) bool {
	return r.Kind.Gates() || r.Event == "SessionStart" || r.Event == "UserPromptSubmit"
}

// args are the arguments of tripline-hook.
func (e *Entry) args() []string {
	args := []string{"-s", e.Socket, "-u", e.UID}
	if e.Spool != "" {
		args = append(args, "-q", e.Spool)
	}
	args = append(args, "-t", e.DeadlineMS, "-n", e.Token)
	if e.AllowOnDown {
		args = append(args, "-o", "allow")
	}
	args = append(args, claude.Name, e.Event)
	if e.Daemon != nil {
		args = append(append(args, daemonMark), e.Daemon...)
	}
	return args
}

// readEntry reads a handler of a hook group; ok is false if it is not ours.
func readEntry(under string, handler *hujson.Value) (e Entry, ok bool) {
	obj, isObject := handler.Value.(*hujson.Object)
	if !isObject || stringOf(field(obj, "type")) != "command" {
		return Entry{}, false
	}
	e = Entry{Under: under, Command: stringOf(field(obj, "command"))}
	if filepath.Base(e.Command) != binaryName {
		return Entry{}, false
	}
	list := field(obj, "args")
	if list == nil {
		return Entry{}, false
	}
	array, isArray := list.Value.(*hujson.Array)
	if !isArray {
		return Entry{}, false
	}
	args := make([]string, len(array.Elements))
	for i := range array.Elements {
		if array.Elements[i].Value.Kind() != '"' {
			return Entry{}, false
		}
		args[i] = stringOf(&array.Elements[i])
	}
	if !e.readArgs(args) {
		return Entry{}, false
	}
	if v := field(obj, "timeout"); v != nil && v.Value.Kind() == '0' {
		e.Timeout, _ = strconv.Atoi(string(v.Value.(hujson.Literal)))
	}
	e.Block = stringOf(field(obj, "onFailure")) == "block"
	return e, true
}

// readArgs is the inverse of args; it fails for anything that tripline-hook would not take.
func (e *Entry) readArgs(args []string) bool {
	if n := slices.Index(args, daemonMark); n >= 0 {
		if e.Daemon = args[n+1:]; len(e.Daemon) == 0 || !filepath.IsAbs(e.Daemon[0]) {
			return false
		}
		args = args[:n]
	}
	if len(args) < 4 || len(args)%2 != 0 || args[len(args)-2] != claude.Name {
		return false
	}
	e.Event = args[len(args)-1]
	for i := 0; i < len(args)-2; i += 2 {
		value := args[i+1]
		switch args[i] {
		case "-s":
			e.Socket = value
		case "-u":
			e.UID = value
		case "-q":
			e.Spool = value
		case "-t":
			e.DeadlineMS = value
		case "-n":
			e.Token = value
		case "-o":
			e.AllowOnDown = value == "allow"
		default:
			return false
		}
	}
	return e.Socket != ""
}

// field returns the member of that name which counts for a reader: the last one. nil if there is none.
func field(obj *hujson.Object, name string) *hujson.Value {
	for i := len(obj.Members) - 1; i >= 0; i-- {
		if stringOf(&obj.Members[i].Name) == name {
			return &obj.Members[i].Value
		}
	}
	return nil
}

// stringOf returns the text of a JSON string, "" for anything else.
func stringOf(v *hujson.Value) string {
	if v == nil || v.Value.Kind() != '"' {
		return ""
	}
	lit := v.Value.(hujson.Literal)
	if bytes.IndexByte(lit, '\\') < 0 {
		return string(lit[1 : len(lit)-1])
	}
	return lit.String()
}
