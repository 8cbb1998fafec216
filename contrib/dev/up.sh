#!/bin/sh
# up.sh [AGENT]: build, install into ~/.local/bin, start a daemon that outlives this shell, and prove it with two calls through
# the real hook: one that must be denied and one that must pass. Agent settings are touched only if AGENT is named.
set -eu
agent=${1:-}
here=$(cd "$(dirname "$0")" && pwd)
: "${HOME:?HOME must be set}"
bin=$HOME/.local/bin
say() { printf '%s\n' "$*"; }
fail() { printf 'up: %s\n' "$*" >&2; exit 1; }

if [ -n "$agent" ]; then
	[ "$agent" = claude ] || fail "HOOK=$agent: the only agent of this version is claude"
	for name in CLAUDECODE AI_AGENT $(env | sed -n 's/^\(CODEX_[A-Za-z0-9_]*\)=.*/\1/p'); do
		eval "value=\${$name:-}"
		[ -z "$value" ] || fail "this shell runs under a coding agent ($name is set); a person installs hooks, from a shell of their own"
	done
fi
command -v go >/dev/null 2>&1 || fail "go is not in PATH; install Go 1.26 or later from your distribution"

say "building and installing into $bin"
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
"$here/build.sh" "$stage"
mkdir -p "$bin"
for program in tripline-hook triplined auditctl; do
	# a running program cannot be written to, but its name can be given to another file
	cp "$stage/$program" "$bin/.$program.new"
	mv -f "$bin/.$program.new" "$bin/$program"
done
cp "$bin/auditctl" "$bin/.tripline.new" && mv -f "$bin/.tripline.new" "$bin/tripline"

"$here/start.sh" "$bin"

say "one call that must be denied, and one that must pass, through the real hook:"
ctl=$bin/auditctl
socket=$("$ctl" paths hook-socket)
token=$(cat "$("$ctl" paths keys)/install.token" 2>/dev/null || true)
session=canary-$$-$(date +%s)
call() { # command, wanted exit code
	payload=$(printf '{"session_id":"%s","transcript_path":"","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"%s"},"tool_use_id":"%s-%s"}' "$session" "$1" "$session" "$2")
	code=0
	printf '%s\n' "$payload" | "$bin/tripline-hook" -s "$socket" ${token:+-n "$token"} claude PreToolUse >"$stage/out" 2>"$stage/err" || code=$?
	[ "$code" = "$2" ] || fail "the hook answered '$1' with exit code $code, not $2: $(cat "$stage/out" "$stage/err")"
}
call 'rm -rf /' 2
call 'ls -la' 0
"$ctl" query --session "$session" today
"$ctl" verify

if [ -n "$agent" ]; then
	"$ctl" install "$agent" --yes
else
	say "no agent is wired yet; \`make up HOOK=claude\` (or \`auditctl install claude\`) shows the change and does it"
fi
case ":$PATH:" in
*":$bin:"*) ;;
*) say "next: export PATH=\"\$HOME/.local/bin:\$PATH\"" ;;
esac
