#!/bin/sh
# purge.sh [--yes]: after down.sh, delete what is left: configuration, rules, keys and the log, for good. It asks first.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
: "${HOME:?HOME must be set}"
if [ -x "$HOME/.local/bin/triplined" ]; then
	echo "purge: Tripline is still installed in $HOME/.local/bin; first: make down (contrib/dev/down.sh)" >&2
	exit 1
fi
# the programs went with down.sh
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"$here/build.sh" "$stage" auditctl
"$stage/auditctl" purge "$@"
