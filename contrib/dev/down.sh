#!/bin/sh
# down.sh: undo up.sh: take our entries out of the agents' settings, wait for live sessions to let go of them, stop the daemon,
# remove its units and the programs. Configuration, keys and log stay; purge.sh deletes them.
set -eu
: "${HOME:?HOME must be set}"
bin=$HOME/.local/bin
ctl=$bin/auditctl
if [ ! -x "$ctl" ] || ! "$ctl" --version | grep -q Tripline; then
	echo "down: nothing of ours is in $bin"
	exit 0
fi
log=$("$ctl" paths log)
"$ctl" uninstall claude --yes
"$ctl" stop --disable
"$(dirname "$0")/extras.sh" remove
! "$bin/tripline" --version 2>/dev/null | grep -q Tripline || rm -f "$bin/tripline"
rm -f "$bin/tripline-hook" "$bin/triplined" "$ctl"
echo "removed the programs from $bin; the log stays in $log (contrib/dev/purge.sh deletes it)"
