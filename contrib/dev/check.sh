#!/bin/sh
# check.sh: everything that needs no test run: formatting, vet on each platform, staticcheck, shell scripts.
set -eu
cd "$(dirname "$0")/../.."
unformatted=$(gofmt -l cmd daemon hooks tripwires audit exporters contrib)
[ -z "$unformatted" ] || { echo "not gofmt-ed: $unformatted" >&2; exit 1; }
CGO_ENABLED=0 go build ./...
go vet ./...
for target in darwin/arm64 linux/arm64; do
	CGO_ENABLED=0 GOOS=${target%/*} GOARCH=${target#*/} go vet ./...
done
go tool -modfile=contrib/dev/tools/go.mod staticcheck ./...
go mod tidy -diff
if command -v shellcheck >/dev/null 2>&1; then
	shellcheck -s sh contrib/dev/*.sh contrib/bench/*.sh contrib/e2e/fetch-claude.sh contrib/demo/*.sh hooks/scripts/claude/*.sh
	shellcheck -s bash contrib/e2e/newuser.sh .ci/run
else
	echo "check: shellcheck is not installed; the shell scripts were not checked" >&2
fi
