#!/bin/sh
# fuzz.sh TIME: run every fuzz target for TIME (as go test -fuzztime takes it).
set -eu
cd "$(dirname "$0")/../.."
time=${1:-10s}
out=$(mktemp)
trap 'rm -f "$out"' EXIT

# run DIR TARGET: the fuzzing engine sometimes reports the end of its own time as a failure ("context deadline exceeded", with no
# failing input); only that is tried again.
run() {
	for _ in 1 2 3; do
		if go test -run '^$' -fuzz "^$2\$" -fuzztime "$time" -fuzzminimizetime 10x -parallel 2 "$1" </dev/null >"$out" 2>&1; then
			return 0
		fi
		if grep -q 'Failing input written' "$out" || ! grep -q 'context deadline exceeded' "$out"; then
			break
		fi
	done
	cat "$out" >&2
	return 1
}

grep -rl --include='*_test.go' '^func Fuzz' . | xargs -n1 dirname | sort -u | while read -r dir; do
	sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$dir"/*_test.go | while read -r target; do
		echo "fuzz $dir $target"
		run "$dir" "$target"
	done
done
