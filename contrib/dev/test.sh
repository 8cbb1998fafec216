#!/bin/sh
# test.sh: all tests: unit, race, scripts, a short run of every fuzz target, and end to end with the real client if
# TRIPLINE_E2E=1 (or if the client is already in the cache).
set -eu
cd "$(dirname "$0")/../.."
race=-race
if [ "$(go env CGO_ENABLED)" != 1 ] || ! command -v "$(go env CC)" >/dev/null 2>&1; then
	echo "test: NO C COMPILER: the tests run WITHOUT the race detector" >&2
	race=
fi
# shellcheck disable=SC2086 # empty or one word
go list ./... | grep -v /contrib/e2e | xargs go test $race -shuffle=on -timeout 15m
[ "${TRIPLINE_SKIP_FUZZ:-}" = 1 ] || contrib/dev/fuzz.sh "${TRIPLINE_FUZZTIME:-2s}"
# end to end last and alone: it starts real clients, which would disturb the rest
[ "${TRIPLINE_SKIP_E2E:-}" = 1 ] || go test -count=1 -timeout 20m ./contrib/e2e/...
