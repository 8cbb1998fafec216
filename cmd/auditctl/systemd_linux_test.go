// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// inNamespace makes a machine of its own, in which systemd's user manager believes that systemd runs it, and runs a script there.
// Every line that begins with "FAILED" is a failure.
const inNamespace = `
set -u
mount -t tmpfs tmpfs /run || exit 77
mkdir -p /run/systemd/system "$XDG_RUNTIME_DIR" && chmod 0700 "$XDG_RUNTIME_DIR" || exit 77
# a control group of our own, where there is one for systemd to be had
for top in /sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup; do
	group=$top/tripline-test-$OUTER
	if [ -e "$top/cgroup.procs" ] && mkdir "$group" 2>/dev/null; then
		echo $$ >"$group/cgroup.procs" && break
	fi
done
systemd --user >"$HOME/systemd.log" 2>&1 &
manager=$!
tries=0
until [ "$(systemctl --user is-system-running 2>/dev/null)" = running ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 100 ] && kill -0 "$manager" 2>/dev/null || { echo "systemd --user does not come up"; tail -n 5 "$HOME/systemd.log"; exit 77; }
	sleep 0.1
done
run=$XDG_RUNTIME_DIR/tripline
units="tripline.service tripline-hook.socket tripline-control.socket"
want() { # text, command...
	text=$1
	shift
	out=$("$@" 2>&1)
	case $out in *"$text"*) ;; *) echo "FAILED: '$*' does not say '$text' but: $out" ;; esac
}
active() { # word, unit...
	word=$1
	shift
	for unit; do
		got=$(systemctl --user is-active "$unit")
		[ "$got" = "$word" ] || echo "FAILED: $unit is $got, not $word"
	done
}
call() { # wanted exit code, command
	printf '{"session_id":"s","transcript_path":"","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"},"tool_use_id":"x"}' "$2" |
		tripline-hook -s "$run/hook.sock" claude PreToolUse >"$HOME/reply" 2>&1
	code=$?
	[ "$code" = "$1" ] || echo "FAILED: the hook ended with $code, not $1: $(cat "$HOME/reply")"
}

want 'kept by systemd' auditctl start
active active $units
call 2 'rm -rf /'
call 0 'ls'
want 'started by systemd' auditctl status
want 'enable-linger' auditctl restart
case $(auditctl install claude --dry-run 2>&1) in *on-demand*) echo "FAILED: the hook would start the daemon, which systemd does" ;; esac

# the daemon dies: its sockets stay, and the next call starts it
kill -KILL "$(cat "$run/triplined.lock")"
call 2 'rm -rf /'
active active $units

# the daemon hangs, so that the watchdog aborts it, or panics: both end with the exit code that is also that of bad usage
restarts() { systemctl --user show --property=NRestarts --value tripline.service; }
before=$(restarts)
kill -ABRT "$(cat "$run/triplined.lock")"
tries=0
until [ "$(restarts)" -gt "$before" ]; do
	tries=$((tries + 1))
	[ "$tries" -lt 200 ] || { echo "FAILED: it is not begun anew after an abort"; break; }
	sleep 0.05
done
call 0 'ls'
active active $units

# the daemon is stopped alone: the same
systemctl --user stop tripline.service 2>/dev/null
call 0 'ls'
active active $units

# a person stops it: nothing listens any more
want 'has stopped' auditctl stop
active inactive $units
[ ! -e "$run/hook.sock" ] || echo "FAILED: the socket is still there"
call 2 'ls'
active inactive $units
want 'kept by systemd' auditctl restart
active active $units
call 0 'ls'

# a configuration that cannot be used: the start fails, and works again when it is mended
auditctl stop >/dev/null 2>&1
mkdir -p "$HOME/.config/tripline"
echo 'mode: chaos' >"$HOME/.config/tripline/tripline.yaml"
for n in 1 2 3 4 5 6 7; do auditctl restart >/dev/null 2>&1; done # more often than systemd likes
rm "$HOME/.config/tripline/tripline.yaml"
want 'triplined runs' auditctl start
active active $units

# a daemon that a person began is handed over
auditctl stop >/dev/null 2>&1
triplined --metrics-listen=off >"$HOME/own.log" 2>&1 &
own=$!
tries=0
until auditctl approvals list >/dev/null 2>&1; do tries=$((tries + 1)); [ "$tries" -lt 200 ] || break; sleep 0.05; done
want 'to hand it over: auditctl restart' auditctl start
want 'kept by systemd' auditctl restart
wait "$own"
active active $units

# and taken out
want 'removed' auditctl stop --disable
left=$(find "$HOME/.config/systemd" -name 'tripline*')
[ -z "$left" ] || echo "FAILED: left: $left"
want 'deleted' auditctl purge --yes
left=$(find "$HOME/.config/tripline" "$HOME/.local/state/tripline" "$run" 2>/dev/null)
[ -z "$left" ] || echo "FAILED: left: $left"
kill -TERM "$manager"
wait "$manager"
echo finished
`

// The whole of starting and stopping under a real systemd, in a namespace of its own.
func TestARealSystemdKeepsTheDaemon(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"unshare", "systemd", "systemctl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: %s is not here: starting under systemd was tried with recorded calls only", tool)
		}
	}
	bin := build(t)
	home, err := os.MkdirTemp("", "tl sd") // with a blank, as homes may have
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	args := []string{"--mount", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--map-root-user")
	}
	outer := filepath.Base(home)[len("tl sd"):]
	t.Cleanup(func() { removeGroups(t, outer) })
	cmd := exec.Command("unshare", append(args, "/bin/sh", "-c", inNamespace)...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "XDG_RUNTIME_DIR=/run/user/0", "OUTER=" + outer, "TRIPLINE_METRICS_LISTEN=off"}
	begun := time.Now()
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil && cmd.ProcessState.ExitCode() == 77 || err != nil && strings.HasPrefix(string(out), "unshare:") {
		t.Skipf("SKIPPED: no systemd of its own can be run here: %v\n%s", err, out)
	}
	if err != nil || strings.Contains(string(out), "FAILED") || !strings.HasSuffix(string(out), "finished\n") {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("took %v", time.Since(begun).Round(time.Millisecond))
}

// removeGroups removes the control groups that a test made; they are empty when its namespace has ended.
func removeGroups(t *testing.T, outer string) {
	t.Helper()
	for _, top := range []string{"/sys/fs/cgroup/systemd", "/sys/fs/cgroup/unified", "/sys/fs/cgroup"} {
		group := filepath.Join(top, "tripline-test-"+outer)
		var dirs []string
		_ = filepath.WalkDir(group, func(path string, d os.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				dirs = append(dirs, path)
			}
			return nil
		})
		for deadline := time.Now().Add(10 * time.Second); len(dirs) > 0 && time.Now().Before(deadline); {
			if os.Remove(dirs[len(dirs)-1]) == nil {
				dirs = dirs[:len(dirs)-1]
			}
		}
		if len(dirs) > 0 {
			t.Errorf("control groups are left: %q", dirs)
		}
	}
}
