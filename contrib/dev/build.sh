#!/bin/sh
# build.sh DIR [PROGRAM...]: build the named programs (all three without a name), static and stripped, into DIR.
set -eu
[ $# -gt 0 ] || { echo "usage: build.sh DIR [PROGRAM...]" >&2; exit 2; }
dir=$1
shift
[ $# -gt 0 ] || set -- tripline-hook triplined auditctl
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
cd "$(dirname "$0")/../.."
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
os=$(go env GOOS)
arch=$(go env GOARCH)
mkdir -p "$dir"
for program; do
	flags="-s -w -X main.version=$version"
	case $program/$os/$arch in
	# the hook's own entry, which keeps the environment from the Go runtime
	tripline-hook/linux/amd64 | tripline-hook/linux/arm64) flags="$flags -E tripline_entry" ;;
	esac
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "$flags" -o "$dir/$program" "./cmd/$program"
done
