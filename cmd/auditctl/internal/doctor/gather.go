// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
	"github.com/tripline-sh/tripline/tripwires"
)

// Inputs is where Gather looks. All are required unless they say otherwise.
type Inputs struct {
	Self    string // how this program is called in a command that people can paste
	Exe     string // its path, links not resolved
	Version string
	UID     int
	Now     time.Time
	Getenv  func(string) string
	Cwd     string // "" if unknown
	Places  config.Places
	Root    string          // put before the paths of the system; "" = this machine
	Hook    install.Options // what install would write; Token and AllowOnDown are filled in
	Client  *control.Client // of the daemon
	// AgentVars are the variables that show that a coding agent runs this.
	AgentVars []string
}

// limits of what is read; most of it others wrote
const (
	maxSmall    = 64 << 10
	maxSettings = 1 << 20
	maxEntries  = 100_000 // names of one directory
)

// Gather looks at the machine. It waits for nothing but the daemon's answer, and writes nothing.
func Gather(ctx context.Context, in Inputs) *Facts {
	f := &Facts{Inputs: in}
	f.gatherPolicy()
	f.gatherDaemon(ctx)
	f.gatherToken()
	f.gatherPrograms()
	f.gatherSettings()
	f.gatherAgents()
	f.gatherFiles()
	f.gatherClosed()
	f.gatherLog()
	f.gatherUnits()
	for _, name := range in.AgentVars {
		if in.Getenv(name) != "" {
			f.UnderAgent = name
			break
		}
	}
	return f
}

func (f *Facts) gatherPolicy() {
	var err error
	if f.Config, err = config.Load(f.Places.ConfigFile); err != nil {
		f.Config, f.ConfigErr = config.Default(), err
	}
	f.Hook.AllowOnDown = f.Config.OnDown == "allow"
	files, err := tripwires.ReadRulesDir(f.Places.RulesDir, tripwires.LayerUser)
	if err == nil {
		_, err = tripwires.Load(files)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		f.RulesErr = err
	}
}

func (f *Facts) gatherDaemon(ctx context.Context) {
	st, err := f.settledStatus(ctx)
	if err != nil {
		f.StatusErr = err
	} else {
		f.Status = &st
		if st.Pending > 0 {
			f.Waiting, _ = f.Client.Approvals(ctx, false) // the count stands in the status
		}
	}
	_, err = os.Lstat(f.Places.StoppedFile)
	f.Stopped = err == nil
	f.LockPID = lockHolder(f.Places.LockFile)
	if dir := "/run/user/" + strconv.Itoa(f.UID); isDir(dir) {
		f.RuntimeDir = dir
	}
	pid := f.LockPID
	if f.Status != nil {
		pid = f.Status.PID
	}
	if pid > 0 {
		f.DaemonExe, _ = os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe") // not every system tells
	}
	f.Listen = f.Config.MetricsListen
	if v := f.Getenv("TRIPLINE_METRICS_LISTEN"); v != "" {
		f.Listen = v
	}
	if addr, ok := tcpAddr(f.Listen); ok && f.Status != nil && f.Status.MetricsAddr == "" {
		if conn, err := net.DialTimeout("tcp", addr, 300*time.Millisecond); err == nil {
			conn.Close()
			f.PortTaken = true
		}
	}
}

// The daemon looks at what changed in files within watchTime, and no sooner than they are quiet.
const (
	watchTime  = 1500 * time.Millisecond
	watchPause = 50 * time.Millisecond
)

// settledStatus asks the daemon. Doctor is often asked right after a start, an install or an upgrade that ends an alarm about files:
// such an alarm counts only if it does not go as soon as the daemon has looked.
func (f *Facts) settledStatus(ctx context.Context) (control.Status, error) {
	st, err := f.Client.Status(ctx)
	for until := time.Now().Add(watchTime); err == nil && slices.ContainsFunc(st.Alarms, aboutFiles) && time.Now().Before(until); {
		select {
		case <-ctx.Done():
			return st, nil
		case <-time.After(watchPause):
		}
		var again control.Status
		if again, err = f.Client.Status(ctx); err == nil {
			st = again
		}
	}
	return st, err
}

func aboutFiles(alarm string) bool {
	return strings.HasPrefix(alarm, string(record.TamperHooksRemoved)+" ") || strings.HasPrefix(alarm, string(record.TamperBinary)+" ")
}

// tcpAddr is the fixed TCP address in a value of metrics.listen.
func tcpAddr(listen string) (string, bool) {
	_, port, err := net.SplitHostPort(listen)
	return listen, err == nil && port != "0" && !strings.HasPrefix(listen, "unix:")
}

// lockHolder returns the live process that a lock file names. It does not touch the lock, which a daemon could be about to
// take.
func lockHolder(path string) int {
	b, err := readRegular(path, 32)
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil || pid <= 1 || errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return 0
	}
	switch exe, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/exe"); {
	case err == nil && filepath.Base(strings.TrimSuffix(exe, " (deleted)")) != "triplined":
		return 0 // a number that was given out again
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Readlink("/proc/self/exe"); err == nil {
			return 0 // it is dead, and nobody has asked how it ended, as in a container whose first process does not
		}
	}
	return pid
}

func (f *Facts) gatherToken() {
	b, err := readRegular(f.Places.TokenFile, maxSmall)
	switch {
	case err == nil:
		f.Token = strings.TrimSpace(string(b))
	case !errors.Is(err, fs.ErrNotExist):
		f.TokenErr = err
	}
	f.Hook.Token = f.Token
}

// FindAgent looks for the agent that this version wires: its program along path (a PATH) and where it installs itself below home, and
// what its files tell of its release. It runs nothing.
func FindAgent(configDir, home, path string) AgentFacts {
	a := AgentFacts{ConfigDir: configDir}
	if a.Program = lookPath("claude", filepath.SplitList(path)); a.Program == "" && home != "" {
		for _, usual := range []string{".local/bin/claude", ".claude/local/claude"} {
			if p := filepath.Join(home, usual); executable(p) {
				a.Program = p
				break
			}
		}
	}
	if a.Program != "" {
		a.Installed, _ = claude.InstalledVersion(a.Program)
	}
	if v, at, ok := claude.TranscriptVersion(a.ConfigDir); ok {
		a.Transcript, a.At = v, at
	}
	a.Found = a.Program != "" || isDir(a.ConfigDir)
	return a
}

func (f *Facts) gatherAgents() {
	f.Agent = FindAgent(filepath.Dir(f.Hook.Path), f.Places.Home, f.Getenv("PATH"))
	if f.Places.Home == "" {
		return
	}
	for _, o := range []OtherAgent{{"codex", ".codex"}, {"copilot", ".copilot"}, {"cursor", ".cursor"}, {"gemini", ".gemini"}, {"opencode", ".config/opencode"}, {"qwen", ".qwen"}} {
		if o.Dir = filepath.Join(f.Places.Home, o.Dir); isDir(o.Dir) {
			f.Absent = append(f.Absent, o)
		}
	}
}

// lookPath finds a program in absolute directories.
func lookPath(name string, dirs []string) string {
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && executable(path) {
			return path
		}
	}
	return ""
}

func executable(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0
}

func isDir(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.IsDir()
}

// readRegular reads a regular file up to limit and never waits for what else could stand at its path.
func readRegular(path string, limit int64) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	fi, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !fi.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file")}
	}
	b, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = &fs.PathError{Op: "read", Path: path, Err: errors.New("too large")}
	}
	if b == nil {
		b = []byte{}
	}
	return b, err
}
