#!/bin/sh
# up.sh [AGENT]: build, install into ~/.local/bin, start a daemon that outlives this shell, and let doctor prove it with two calls
# through the real hook. In a terminal, the agents that are found are then offered, each with its change and a question; elsewhere
# settings are touched only if AGENT is named.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${HOME:?HOME must be set}"
bin=$HOME/.local/bin
ctl=$bin/auditctl
say() { printf '%s\n' "$*"; }
fail() { printf 'up: %s\n' "$*" >&2; exit 1; }

command -v go >/dev/null 2>&1 || fail "go is not in PATH; install Go 1.26 or later from your distribution"
for name in auditctl tripline; do
	[ ! -e "$bin/$name" ] || "$bin/$name" --version 2>/dev/null | grep -q Tripline || fail "$bin/$name is another program; move it away"
done

say "building and installing into $bin"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"$here/build.sh" "$stage"
cp "$stage/auditctl" "$stage/tripline"
mkdir -p "$bin"
for program in triplined auditctl tripline; do
	# a running program cannot be written to, but its name can be given to another file
	cp "$stage/$program" "$bin/.$program.new"
	mv -f "$bin/.$program.new" "$bin/$program"
done
# The daemon of an earlier build, if there is one, gives way. It watches the hook, so it is told before that is replaced.
"$ctl" restart --hook "$stage/tripline-hook"

"$here/extras.sh" add "$ctl"

say "what doctor says:"
if [ $# -eq 0 ]; then
	"$ctl" doctor
	"$ctl" install
else
	well=yes
	"$ctl" doctor || well=
	"$ctl" install "$1" --yes # mends entries of an earlier build
	[ -n "$well" ] || { say "what doctor says now:" && "$ctl" doctor; }
fi
case ":$PATH:" in
*":$bin:"*) ;;
*) say "next: export PATH=\"\$HOME/.local/bin:\$PATH\"" ;;
esac
