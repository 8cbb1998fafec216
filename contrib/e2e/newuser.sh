#!/usr/bin/env bash
# newuser.sh: what a new user does, several times over, each from a fresh clone and a fresh home: the commands of README, on
# a machine that lacks something. Needs git; variants that need root to become somebody else are skipped loudly without it.
set -euo pipefail
cd "$(dirname "$0")/../.."
source_tree=$PWD
work=$(mktemp -d)
chmod 0755 "$work"
pids=()
cleanup() {
	for dir in "$work"/*/home; do
		[ -d "$dir" ] || continue
		for pidfile in "$dir"/.local/state/tripline/run/triplined.lock "$dir"/*/state/tripline/run/triplined.lock; do
			[ -s "$pidfile" ] || continue
			pid=$(cat "$pidfile")
			case $(readlink "/proc/$pid/exe" 2>/dev/null || true) in "$work"/*) kill -TERM "$pid" 2>/dev/null || true ;; esac
		done
	done
	for pid in "${pids[@]:-}"; do [ -z "$pid" ] || kill "$pid" 2>/dev/null || true; done
	rm -rf "$work"
}
trap cleanup EXIT
say() { printf '\n-- %s\n' "$*"; }
fail() { printf 'newuser: %s: %s\n' "$variant" "$*" >&2; exit 1; }

# tools NAME...: a directory with links to the programs that README asks for (Go, git) and the system's basic ones, less those named.
tools() {
	local dir=$work/$variant/tools name path
	mkdir -p "$dir"
	for path in /usr/bin/* /bin/* "$(command -v go)" "$(command -v git)"; do
		name=$(basename "$path")
		[ -e "$dir/$name" ] || ln -s "$path" "$dir/$name" 2>/dev/null || true
	done
	for name; do rm -f "$dir/$name"; done
	echo "$dir"
}

# variant NAME: a clone and a home of that name. Sets home, clone and run, the way to run a command there.
begin() {
	variant=$1
	say "$variant"
	home=$work/$variant/${2:-home}
	clone=$work/$variant/tripline
	mkdir -p "$home"
	git clone -q --no-hardlinks "$source_tree" "$clone"
	env=("HOME=$home" "PATH=$home/.local/bin:$PATH" "TERM=dumb" "GOMODCACHE=$(go env GOMODCACHE)" "GOCACHE=$(go env GOCACHE)"
		"GOPROXY=$(go env GOPROXY)" "GOFLAGS=$(go env GOFLAGS)" "GOTOOLCHAIN=$(go env GOTOOLCHAIN)")
	as=()
}
run() { (cd "$clone" && "${as[@]}" env -i "${env[@]}" "$@"); }
ctl() { run "$home/.local/bin/auditctl" "$@"; }

up_and_down() { # the way up
	run "$@" </dev/null >"$work/$variant/up" 2>&1 || { cat "$work/$variant/up"; fail "up failed"; }
	tail -n 4 "$work/$variant/up"
	[ ! -e "$home/.claude/settings.json" ] || [ -e "$work/$variant/had-settings" ] || fail "up without a terminal touched settings"
	ctl status || [ $? = 1 ] || fail "status"
	local code=0
	ctl explain -- rm -rf / >/dev/null || code=$?
	[ $code = 4 ] || fail "explain said $code"
	ctl verify >/dev/null || fail "verify"
	run contrib/dev/down.sh </dev/null >"$work/$variant/down" 2>&1 || { cat "$work/$variant/down"; fail "down failed"; }
	for program in auditctl tripline triplined tripline-hook; do
		[ ! -e "$home/.local/bin/$program" ] || fail "down left $program"
	done
	ls "$home"/.local/state/tripline/log/*.db >/dev/null || fail "down took the log"
}

begin root
up_and_down make up

begin plain-scripts-no-make
env+=("PATH=$home/.local/bin:$(tools make gmake)")
up_and_down contrib/dev/up.sh

begin no-c-compiler
env+=("PATH=$home/.local/bin:$(tools gcc cc clang g++ x86_64-linux-gnu-gcc x86_64-linux-gnu-gcc-12 c99 c89)")
up_and_down make up

begin not-in-path
env+=("PATH=$PATH")
up_and_down make up
grep -q 'export PATH' "$work/$variant/up" || fail "up does not say how to find the programs"

begin home-with-spaces "a home"
up_and_down make up

begin port-in-use
if command -v python3 >/dev/null 2>&1; then
	python3 -c 'import socket,sys,time
s=socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.bind(("127.0.0.1",9717)); s.listen(); print("listening", flush=True); time.sleep(600)' >"$work/port" 2>&1 &
	pids+=($!)
	for _ in $(seq 100); do [ ! -s "$work/port" ] || break; sleep 0.05; done
	up_and_down make up
	kill "${pids[0]}" 2>/dev/null || true
else
	echo "newuser: SKIPPED port-in-use: no python3 to take the port"
	[ "${TRIPLINE_E2E:-}" != 1 ] || exit 1
fi

begin foreign-hooks
mkdir -p "$home/.claude"
touch "$work/$variant/had-settings"
printf '\xef\xbb\xbf{\r\n\t"mine" :1,  "hooks": {"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "true"}]}]},\r\n\t"mine" :2}' >"$home/.claude/settings.json"
cp "$home/.claude/settings.json" "$work/$variant/before"
run make up HOOK=claude </dev/null >"$work/$variant/up" 2>&1 || { cat "$work/$variant/up"; fail "up failed"; }
grep -q tripline-hook "$home/.claude/settings.json" || fail "not wired"
ctl doctor || fail "doctor finds a problem"
run make down </dev/null >"$work/$variant/down" 2>&1 || { cat "$work/$variant/down"; fail "down failed"; }
cmp "$home/.claude/settings.json" "$work/$variant/before" || fail "the settings are not what they were"

begin settings-with-comments # the client skips such a file as a whole, so that wiring it would guard nothing
mkdir -p "$home/.claude"
printf '{\n\t// mine\n\t"model": "x",\n}\n' >"$home/.claude/settings.json"
cp "$home/.claude/settings.json" "$work/$variant/before"
! run make up HOOK=claude </dev/null >"$work/$variant/up" 2>&1 || fail "up says that it wired a file that the client skips"
grep -q 'line 2 holds a comment' "$work/$variant/up" || { cat "$work/$variant/up"; fail "up does not say what is wrong"; }
cmp "$home/.claude/settings.json" "$work/$variant/before" || fail "the settings are not what they were"
run make down </dev/null >/dev/null 2>&1 || fail "down failed"

begin ordinary-user
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null 2>&1; then
	mkdir -p "$work/$variant/cache" "$work/$variant/mod"
	# the module cache of somebody else may be unreadable: give this user a copy of what the build needs
	cp -r "$(go env GOMODCACHE)/cache" "$work/$variant/mod/cache"
	chown -R 65534:65534 "$work/$variant"
	env+=("GOCACHE=$work/$variant/cache" "GOMODCACHE=$work/$variant/mod" "GOPROXY=file://$work/$variant/mod/cache/download" "GOFLAGS=-modcacherw" "GOSUMDB=off")
	as=(setpriv --reuid=65534 --regid=65534 --clear-groups)
	up_and_down make up
else
	echo "newuser: SKIPPED ordinary-user: this is no root shell, or setpriv is missing"
	[ "$(id -u)" != 0 ] || [ "${TRIPLINE_E2E:-}" != 1 ] || exit 1
fi

say "all variants passed"
