#!/bin/sh
# fuzz.sh TIME: run every fuzz target for TIME (as go test -fuzztime takes it).
set -eu
cd "$(dirname "$0")/../.."
time=${1:-10s}
out=$(mktemp)
grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go | while read -r target; do
		echo "fuzz $dir $target"
		go test -run '^$' -fuzz "^$target\$" -fuzztime "$time" -parallel 2 "$dir" </dev/null >"$out" 2>&1 || {
			cat "$out" >&2
			rm -f "$out"
			exit 1
		}
	done
done
rm -f "$out"
