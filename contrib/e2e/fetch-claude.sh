#!/bin/sh
# fetch-claude.sh VERSION: put the native client of that version into the git-ignored cache, from npm by name and version.
set -eu
version=${1:?usage: fetch-claude.sh VERSION}
dir=$(cd "$(dirname "$0")/../.." && pwd)/.cache/claude-$version
command -v npm >/dev/null 2>&1 || { echo "fetch-claude: npm is not installed" >&2; exit 1; }
mkdir -p "$dir"
npm install --prefix "$dir" --no-audit --no-fund --ignore-scripts --loglevel error "@anthropic-ai/claude-code@$version"
"$dir/node_modules/@anthropic-ai/claude-code-linux-x64/claude" --version
