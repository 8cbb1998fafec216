#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# tripline.sh [BINARY] ARG...: run tripline-hook for one event of Claude Code, where no install wired the binary itself.
#
# BINARY is an absolute path; without it the binary is /usr/local/bin/tripline-hook, else /usr/bin/tripline-hook. ARG... is the
# command line of tripline-hook: -s SOCKET [...] claude EVENT [-- DAEMON ARG...]. What the binary answers is the answer. If it
# gives none, events that wait for a verdict are denied (exit 2) and nothing else is blocked (exit 0). That it is an answer shows in
# the exit code, to which the binary adds 64 (-x): a shell runs a file that the system cannot run as a script of its own, and such a
# file, of blanks or for another processor, may end with 0 or 2.
#
# No variable of the environment is used. Some reach the shell itself before this text does (SHELLOPTS where sh is bash, LD_PRELOAD
# everywhere): hooks.json puts `/usr/bin/env -i` in front, and README.md says what is left.

# a shell that is bash takes functions from the environment; these two names must not be among them
unset -f [ printf

case ${1-} in
/*) bin=$1; shift ;;
*) bin=/usr/local/bin/tripline-hook; [ -x "$bin" ] || bin=/usr/bin/tripline-hook ;;
esac
event=
for arg; do
	[ "$arg" != -- ] || break
	event=$arg
done

trap : HUP INT TERM # the binary answers a signal to its group; its answer must not be lost
what='is missing'
if [ -f "$bin" ] && [ -s "$bin" ] && [ -x "$bin" ]; then
	code=0
	exec 3>&2 2>/dev/null # stderr is the binary's: the shell has something to say when it is killed
	(exec "$bin" -x 64 "$@" 2>&3 3>&-) || code=$?
	exec 2>&3 3>&-
	case $code in 64) exit 0 ;; 66) exit 2 ;; esac
	what="cannot be run, was ended, or is no tripline-hook of this version (code $code)"
elif [ -e "$bin" ]; then
	what='is not a program'
fi

reason='Tripline refused this without judging it: its hook program is missing or does not run. This is a fault of the guard, not of what you asked for. Do not retry it and do not look for a way around: tell your user. (rule hook.missing)'
case $event in
PreToolUse | PreSkillShellCommand)
	printf '{"hookSpecificOutput":{"hookEventName":"%s","permissionDecision":"deny","permissionDecisionReason":"%s"}}' "$event" "$reason"
	;;
ConfigChange) printf '{"decision":"block","reason":"%s"}' "$reason" ;;
'') ;; # a broken entry
*) exit 0 ;;
esac
printf '%s\n' "tripline: denied (hook.missing): $bin $what" >&2
exit 2
