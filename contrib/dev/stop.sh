#!/bin/sh
# stop.sh BINDIR: end the daemon of this user, if one runs: SIGTERM to the process that the lock names, then wait for it.
set -eu
bin=${1:?usage: stop.sh BINDIR}
lock=$("$bin/auditctl" paths lock)
[ -s "$lock" ] || exit 0
pid=$(cat "$lock")
case $pid in '' | *[!0-9]*) exit 0 ;; esac
# a reused process id must not be hit: the process has to be a triplined
case $(readlink "/proc/$pid/exe" 2>/dev/null || ps -o comm= -p "$pid" 2>/dev/null || true) in
*triplined*) ;;
*) exit 0 ;;
esac
kill -TERM "$pid" 2>/dev/null || exit 0
tries=0
while kill -0 "$pid" 2>/dev/null; do
	tries=$((tries + 1))
	[ "$tries" -le 150 ] || { echo "stop: triplined (pid $pid) does not end" >&2; exit 1; }
	sleep 0.1
done
echo "triplined (pid $pid) has stopped"
