// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/hooks/install"
)

// What goes into directories of ours; the keys are with the log.
const (
	forConfig  = "configuration"
	forState   = "log"
	forSockets = "sockets"
)

// needed reports whether a daemon needs to write there.
func (c *Closed) needed() bool { return !slices.Equal(c.For, []string{forConfig}) }

func checkDirs(_ context.Context, f *Facts) []Finding {
	var out []Finding
	for _, c := range f.Closed {
		p := Finding{ID: "dirs.closed", Severity: Problem, Command: elsewhere, Evidence: fmt.Sprintf("%s: %v, owner %d", c.Dir, c.Err, c.UID),
			Text: fmt.Sprintf("this user cannot write in %s, where %s belong: %v", c.Dir, and(c.For), c.Err)}
		switch {
		case errors.Is(c.Err, syscall.ENOTDIR):
			p.Command = "ls -ld " + words.Shell(c.Dir)
		case !errors.Is(c.Err, fs.ErrPermission): // a read-only file system, for one: no mode helps
		case c.UID == f.UID:
			p.Command = "chmod u+rwx " + words.Shell(c.Dir)
		case c.Ours:
			p.Command = f.chown(c.Dir)
		}
		if !c.needed() {
			p.Severity, p.Text = Note, fmt.Sprintf("the configuration cannot be changed from here: %s: %v", c.Dir, c.Err) // it may be kept elsewhere
		}
		out = append(out, p)
	}
	return out
}

// elsewhere is the command that puts everything into a directory that can be written.
const elsewhere = "export TRIPLINE_HOME=/a/short/directory # yours, in every shell that asks"

func (f *Facts) chown(path string) string {
	return fmt.Sprintf("sudo chown -R %d %s", f.UID, words.Shell(path))
}

func and(names []string) string {
	if n := len(names) - 1; n > 0 {
		return strings.Join(names[:n], ", ") + " and " + names[n]
	}
	return strings.Join(names, "")
}

func checkFiles(_ context.Context, f *Facts) []Finding {
	var out []Finding
	add := func(p Finding) {
		if len(out) < maxListed {
			out = append(out, p)
		}
	}
	for _, file := range f.Files {
		evidence := fmt.Sprintf("%s: mode %04o, uid %d", file.Path, file.Perm, file.UID)
		mode := "600"
		if file.Kind == "directory" {
			mode = "700"
		}
		mend := "chmod " + mode + " " + words.Shell(file.Path)
		switch {
		case file.UID >= 0 && file.UID != f.UID && slices.ContainsFunc(f.Closed, func(c Closed) bool { return c.Dir == file.Path && c.needed() }): // checkDirs says it
		case file.UID >= 0 && file.UID != f.UID:
			add(Finding{ID: "files.owner", Severity: Problem, Text: "another user owns " + file.Path, Evidence: evidence,
				Command: f.chown(file.Path)})
		case file.Kind == "key" && file.Linked:
			add(Finding{ID: "files.link", Severity: Problem, Text: "a key is a symbolic link, which another program may redirect: " + file.Path, Evidence: evidence,
				Command: "ls -l " + words.Shell(file.Path)})
		case file.Perm&0o022 != 0:
			add(Finding{ID: "files.writable", Severity: Problem, Text: "others may write to " + file.Path, Evidence: evidence, Command: mend})
		case file.Kind == "key" && filepath.Ext(file.Path) != ".pub" && file.Perm&0o077 != 0:
			add(Finding{ID: "files.readable", Severity: Problem, Text: "others may read a key: " + file.Path, Evidence: evidence, Command: mend})
		case file.Kind == "directory" && file.Perm&0o077 != 0 && !f.closed(filepath.Dir(file.Path)):
			add(Finding{ID: "files.open", Severity: Warning, Text: "others may look into " + file.Path, Evidence: evidence, Command: mend})
		}
	}
	return out
}

// closed reports whether a directory of ours lets nobody else in, so that what is below it does not matter.
func (f *Facts) closed(dir string) bool {
	return slices.ContainsFunc(f.Files, func(file File) bool {
		return file.Path == dir && file.Kind == "directory" && file.Perm&0o077 == 0
	})
}

// A socket's path has this many bytes, the end included.
const (
	sunPathLinux  = 108
	sunPathDarwin = 104
)

// shorter is the command that puts the sockets into a directory with a shorter path.
func (f *Facts) shorter() string {
	if f.RuntimeDir != "" {
		return "export XDG_RUNTIME_DIR=" + f.RuntimeDir
	}
	return elsewhere
}

// MaxSocketPath is how many bytes the path of a socket may have on this system.
func MaxSocketPath() int {
	if runtime.GOOS == "darwin" {
		return sunPathDarwin - 1
	}
	return sunPathLinux - 1
}

func checkSockets(_ context.Context, f *Facts) []Finding {
	most := MaxSocketPath()
	var out []Finding
	for _, path := range []string{f.Places.HookSocket, f.Places.ControlSocket} {
		if len(path) > most {
			out = append(out, Finding{ID: "sockets.long", Severity: Problem, Evidence: path, Command: f.shorter(),
				Text: fmt.Sprintf("the path of a socket has %d bytes, and the system takes %d: no daemon can listen there", len(path), most)})
			break
		}
	}
	return out
}

func checkService(_ context.Context, f *Facts) []Finding {
	var out []Finding
	own := filepath.Join(filepath.Dir(f.Exe), "triplined")
	for _, u := range f.Units {
		p := Finding{ID: "service.unit", Severity: Warning, Command: f.Self + " restart", Evidence: u.Path}
		switch {
		case u.Wants != "" && u.Listens != u.Wants:
			p.Text = "the service manager listens on another socket than the one of this install: " + u.Listens
		case u.Wants != "":
			continue
		case !u.Exists:
			p.Severity = Problem
			p.Text = "the service manager would start a program that is not there: " + u.Program
		case !sameFile(u.Program, own):
			p.Text = "the service manager starts another program than the triplined beside this one: " + u.Program
		default:
			continue
		}
		out = append(out, p)
	}
	starts := func(e install.Entry) bool { return e.Daemon != nil }
	if len(f.Units) == 0 && f.User.Wired() && !slices.ContainsFunc(f.User.Installed, starts) {
		out = append(out, Finding{ID: "service.none", Severity: Note, Command: f.Self + " restart && " + f.Self + " install claude",
			Text: "neither a service manager nor the hooks start the daemon again after a reboot"})
	}
	return out
}

func checkShell(_ context.Context, f *Facts) []Finding {
	if f.UnderAgent == "" {
		return nil
	}
	return []Finding{{ID: "shell.agent", Severity: Note, Evidence: f.UnderAgent + " is set",
		Text: "this runs under a coding agent: what changes anything is refused to it; a person's own shell sees what really is in force"}}
}
