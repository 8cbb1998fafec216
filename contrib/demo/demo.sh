#!/bin/sh
# demo.sh: play an agent's session through the real hook, daemon and log, in a home that is thrown away; then ask what happened.
# Nothing of this user's settings, log or daemon is touched or left behind.
set -eu
cd "$(dirname "$0")/../.."
command -v go >/dev/null 2>&1 || { echo "demo: go is not in PATH" >&2; exit 1; }
command -v git >/dev/null 2>&1 || { echo "demo: git is not in PATH" >&2; exit 1; }
# short, since the sockets lie below it
home=$(mktemp -d /tmp/tripline-demo.XXXXXX)

# cleanup runs on every way out. The player ends its daemon itself; this is for the case that it could not.
cleanup() {
	lock=$home/.local/state/tripline/run/triplined.lock
	pid=$(cat "$lock" 2>/dev/null || true)
	case $pid in
	'' | *[!0-9]*) ;;
	*)
		exe=$(readlink "/proc/$pid/exe" 2>/dev/null || ps -o comm= -p "$pid" 2>/dev/null || true)
		case $exe in "$home"/*) kill -KILL "$pid" 2>/dev/null || true ;; esac
		;;
	esac
	rm -rf "$home"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

echo "building into a home that is thrown away ($home)"
contrib/dev/build.sh "$home/.local/bin"
go build -o "$home/play" ./contrib/demo
# in the background, so that a signal to this script alone is heard at once
env -i HOME="$home" PATH="$home/.local/bin:$(dirname "$(command -v git)"):/usr/bin:/bin" LANG=C.UTF-8 "$home/play" "$PWD" &
player=$!
trap 'kill -TERM "$player" 2>/dev/null; wait "$player" || true; exit 130' INT
trap 'kill -TERM "$player" 2>/dev/null; wait "$player" || true; exit 143' TERM HUP
wait "$player"
