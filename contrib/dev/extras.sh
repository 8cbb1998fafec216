#!/bin/sh
# extras.sh add AUDITCTL | remove: shell completion and man pages, where bash, fish and man look by themselves. They are a comfort:
# what cannot be written is left out. A file of somebody else is not touched.
set -eu
: "${HOME:?HOME must be set}"
here=$(cd "$(dirname "$0")" && pwd)
share=${XDG_DATA_HOME:-$HOME/.local/share}
bash_dir=$share/bash-completion/completions
fish_dir=$share/fish/vendor_completions.d
man_dir=$share/man/man1

ours() { [ ! -e "$1" ] || grep -q -e "completion V2 for \(auditctl\|tripline\) " -e "^# fish completion for \(auditctl\|tripline\) " -e '"Tripline"' "$1"; }
put() { # FILE, text on stdin
	if ours "$1" && mkdir -p "$(dirname "$1")" 2>/dev/null; then
		cat >"$1.new" && mv -f "$1.new" "$1"
	else
		cat >/dev/null
	fi
}
take() {
	for file; do
		if [ -f "$file" ] && ours "$file"; then rm -f "$file"; fi
	done
}

case ${1:-} in
add)
	ctl=${2:?usage: extras.sh add AUDITCTL}
	for name in auditctl tripline; do
		"$(dirname "$ctl")/$name" completion bash | put "$bash_dir/$name"
		"$(dirname "$ctl")/$name" completion fish | put "$fish_dir/$name.fish"
	done
	pages=$(mktemp -d)
	trap 'rm -rf "$pages"' EXIT
	(cd "$here/../.." && go run -buildvcs=false ./cmd/auditctl/internal/gendocs man "$pages") || exit 0
	for page in "$pages"/*.1; do
		name=$(basename "$page")
		put "$man_dir/$name" <"$page"
	done
	;;
remove)
	take "$bash_dir/auditctl" "$bash_dir/tripline" "$fish_dir/auditctl.fish" "$fish_dir/tripline.fish" "$man_dir"/auditctl.1 "$man_dir"/auditctl-*.1
	# directories that put could have made: rmdir takes only empty ones. One that XDG_DATA_HOME names was somebody's choice.
	for dir in "$bash_dir" "$fish_dir" "$man_dir"; do
		if rmdir "$dir" 2>/dev/null; then rmdir "$(dirname "$dir")" 2>/dev/null || true; fi
	done
	[ "$share" != "$HOME/.local/share" ] || rmdir "$share" 2>/dev/null || true
	;;
*)
	echo "usage: extras.sh add AUDITCTL | remove" >&2
	exit 2
	;;
esac
