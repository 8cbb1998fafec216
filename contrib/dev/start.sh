#!/bin/sh
# start.sh BINDIR: (re)start the daemon, detached: a session of its own, no terminal, its log in the state directory.
set -eu
bin=${1:?usage: start.sh BINDIR}
"$(dirname "$0")/stop.sh" "$bin"
log=$("$bin/auditctl" paths state)/triplined.log
mkdir -p "$(dirname "$log")"
chmod 0700 "$(dirname "$log")"
(umask 077 && : >>"$log")
detach='nohup'
command -v setsid >/dev/null 2>&1 && detach='setsid'
begin=$(wc -l <"$log")
$detach "$bin/triplined" </dev/null >>"$log" 2>&1 &
pid=$!
tries=0
until "$bin/auditctl" approvals list -o json >/dev/null 2>&1; do
	tries=$((tries + 1))
	if [ "$tries" -gt 100 ] || ! kill -0 "$pid" 2>/dev/null; then
		echo "start: the daemon did not come up; it said:" >&2
		tail -n +"$((begin + 1))" "$log" >&2
		exit 1
	fi
	sleep 0.1
done
if tail -n +"$((begin + 1))" "$log" | grep -q genesis_key; then
	echo "a new log was begun; keep its key outside this machine, \`auditctl verify --key\` checks against it:"
	echo "  $(cat "$("$bin/auditctl" paths keys)/log.pub")"
fi
echo "triplined runs (pid $(cat "$("$bin/auditctl" paths lock)")), its log is $log"
