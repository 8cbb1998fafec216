// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"io/fs"
	"time"

	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

// Facts is what Gather found. Checks read nothing else, so that each can be tried on any machine.
type Facts struct {
	Inputs

	// Status is what the daemon says, nil if it says nothing; StatusErr tells why.
	Status    *control.Status
	StatusErr error
	// RuntimeDir is the directory that the system keeps for this user's sockets, "" if there is none.
	RuntimeDir string
	LockPID    int    // the live triplined that the lock names, 0 if none
	DaemonExe  string // its program, "" if the system does not tell; " (deleted)" at the end if the file was replaced
	Stopped    bool   // auditctl stop left its marker
	Waiting    []control.Approval

	Config    config.Config // Default() if ConfigErr is set
	ConfigErr error
	RulesErr  error // why the rules on disk do not load

	Programs []Program // tripline-hook, triplined, auditctl beside this program, in this order
	Entry    Entry     // how the hook starts
	Hits     []Hit     // the first program of each of our names that PATH finds
	OnPath   bool      // this program's directory is in PATH

	User     UserSettings // of the agent, as it reads them from this shell
	Home     *Settings    // ~/.claude/settings.json where CLAUDE_CONFIG_DIR names another directory
	Others   []Settings   // of the project and of the administrator, those that exist
	TokenErr error        // why the install token cannot be read
	Token    string       // "" if there is none

	Agent  AgentFacts
	Absent []OtherAgent // agents that are on the machine and not covered

	Files      []File   // our files and directories that exist
	Closed     []Closed // directories where our files go and this user cannot write
	Disk       Disk
	Log        LogFacts
	Spooled    int    // events in the spool
	Listen     string // where the metrics should be, as this environment and the configuration say
	PortTaken  bool   // something else answers there
	Units      []Unit
	UnderAgent string // the variable that shows that an agent runs this program, "" if none
}

// Program is one of our three programs.
type Program struct {
	Name     string
	Path     string
	Err      error // why it cannot be read
	Perm     fs.FileMode
	Ours     bool   // built from the package of that name
	Revision string // of its source, "" if unknown
	Go       string // toolchain
	SHA256   string // of the hook only
	Loose    string // the path, it or a directory above, that others may write to; "" if none
}

// Entry says where a program begins.
type Entry string

// The entries that a hook can have.
const (
	EntryOwn     Entry = "own"     // clears the environment first
	EntryPlain   Entry = "plain"   // the Go runtime's
	EntryNone    Entry = "none"    // there is no own one for this system
	EntryUnknown Entry = "unknown" // the file could not be read
)

// Hit is a program that PATH finds.
type Hit struct {
	Name string // auditctl or tripline
	Path string // "" if PATH finds none
	Ours bool   // this program, or its copy beside it
	Copy bool   // one of ours, from another install
}

// Settings is one settings file of an agent.
type Settings struct {
	Scope string // user, project, local or managed
	Path  string
	Bytes []byte // nil = absent
	Err   error  // why it cannot be read or understood
	install.Settings
}

// UserSettings is the file that install writes.
type UserSettings struct {
	Settings
	Installed []install.Entry // entries of ours
	Wanted    []install.Entry // what install would write
	Current   bool            // the file is as install would leave it
	PlanErr   error           // why install would not touch it
}

// Wired reports whether the file holds an entry of ours.
func (u *UserSettings) Wired() bool { return len(u.Installed) > 0 }

// AgentFacts is what can be told of Claude Code without running it.
type AgentFacts struct {
	Program    string         // "" if PATH and the usual places have none
	Installed  claude.Version // zero if unknown
	Transcript claude.Version // of the newest transcript, zero if unknown
	At         time.Time      // of that transcript
	ConfigDir  string
	Found      bool // there is a program or a configuration directory
}

// Version is the release that has to be reckoned with: the older one of what is installed and what last wrote a transcript.
func (a AgentFacts) Version() (v claude.Version, known bool) {
	var none claude.Version
	v = a.Installed
	if v == none || a.Transcript != none && a.Transcript.Compare(v) < 0 {
		v = a.Transcript
	}
	return v, v != none
}

// OtherAgent is an agent that this version does not speak to.
type OtherAgent struct{ Name, Dir string }

// File is a file or directory of ours.
type File struct {
	Path   string
	Kind   string // directory, key, socket, config, data
	Perm   fs.FileMode
	UID    int
	Linked bool // the name is a symbolic link
}

// Closed is a directory in which this user cannot make files.
type Closed struct {
	Dir  string
	Err  error
	UID  int      // its owner, -1 if unknown
	For  []string // what goes there: configuration, log and keys, sockets
	Ours bool     // it is a directory of ours, not one above
}

// Disk is the file system that the log is, or would be, on.
type Disk struct {
	Path        string // that was asked about
	Kind        string // ext4, tmpfs, nfs ...; "" if unknown
	Free, Total int64  // bytes; Total 0 = unknown
}

// LogFacts is what the names of the log's files tell.
type LogFacts struct {
	Segments int
	Bytes    int64
	Last     time.Time // when the newest one was written to
	Day      string    // UTC, in the newest name
}

// Unit is a file of a service manager that starts a daemon.
type Unit struct {
	Path    string
	Program string // "" if it names none
	Exists  bool   // the program
	Listens string // of a socket unit
	Wants   string // on what it should listen; "" if it is no socket unit
}
