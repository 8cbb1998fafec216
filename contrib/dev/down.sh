#!/bin/sh
# down.sh: undo up.sh: take our entries out of the agents' settings, stop the daemon, remove the programs. The log stays.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${HOME:?HOME must be set}"
bin=$HOME/.local/bin
if [ ! -x "$bin/auditctl" ] || ! "$bin/auditctl" --version | grep -q Tripline; then
	echo "down: nothing of ours is in $bin"
	exit 0
fi
log=$("$bin/auditctl" paths log)
"$bin/auditctl" uninstall claude --yes
"$here/stop.sh" "$bin"
rm -f "$bin/tripline-hook" "$bin/triplined" "$bin/auditctl" "$bin/tripline"
echo "removed the programs from $bin; the log stays in $log"
