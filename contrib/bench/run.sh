#!/bin/sh
# run.sh: all benchmarks: whole processes first, then the packages, then (if the client is in the cache) real sessions.
set -eu
cd "$(dirname "$0")/../.."
go run ./contrib/bench -n "${TRIPLINE_BENCH_ROUNDS:-500}"
go list ./... | grep -v /contrib/ | xargs go test -run '^$' -bench . -benchtime "${TRIPLINE_BENCHTIME:-200ms}"
go test -run '^$' -bench . -benchtime 1x -timeout 30m ./contrib/e2e
