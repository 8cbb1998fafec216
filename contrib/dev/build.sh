#!/bin/sh
# build.sh DIR: build the three programs, static and stripped, into DIR.
set -eu
dir=${1:?usage: build.sh DIR}
case $dir in /*) ;; *) dir=$PWD/$dir ;; esac
cd "$(dirname "$0")/../.."
version=$(git describe --tags --always --dirty 2>/dev/null || echo dev)
mkdir -p "$dir"
for program in tripline-hook triplined auditctl; do
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w -X main.version=$version" -o "$dir/$program" "./cmd/$program"
done
