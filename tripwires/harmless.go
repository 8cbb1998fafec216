// SPDX-License-Identifier: Apache-2.0

package tripwires

import "runtime"

// isCaseInsensitiveHost says whether this machine's disks take RM for rm.
const isCaseInsensitiveHost = runtime.GOOS == "darwin"

// wordSet makes a set of words.
func wordSet(words ...string) map[string]bool {
	m := make(map[string]bool, len(words))
	for _, w := range words {
		m[w] = true
	}
	return m
}

// harmless are programs and builtins that change nothing by themselves; what they read and where their output goes is judged
// apart. The maps of this file are tables and are never written.
var harmless = wordSet(
	"", ":", "true", "false", "test", "[", "[[", "echo", "printf", "cd", "pushd", "popd", "dirs", "pwd", "export", "set",
	"shift", "local", "return", "exit", "read", "readarray", "mapfile", "wait", "trap", "alias", "unalias", "unset", "ulimit",
	"umask", "let", "declare", "typeset", "readonly", "getopts", "hash", "type", "command", "which", "whereis", "builtin",
	"shopt", "setopt", "jobs", "fg", "bg", "break", "continue", "times", "compgen", "complete", "bind", "enable", "help",
	"ls", "dir", "vdir", "exa", "eza", "lsd", "cat", "bat", "batcat", "head", "tail", "less", "more", "most", "grep", "egrep", "fgrep",
	"zgrep", "rg", "ag", "ack", "wc", "sort", "uniq", "cut", "tr", "diff", "colordiff", "cmp", "comm", "join", "paste", "fold",
	"fmt", "expand", "unexpand", "column", "nl", "tac", "rev", "file", "stat", "du", "df", "date", "cal", "whoami", "id",
	"groups", "users", "who", "w", "uname", "arch", "nproc", "free", "uptime", "hostname", "printenv", "ps", "pgrep", "pidof",
	"pstree", "top", "htop", "lsof", "lsblk", "lscpu", "lspci", "lsusb", "ss", "netstat", "ip", "ifconfig", "ping", "dig",
	"nslookup", "host", "traceroute", "tree", "xxd", "od", "hexdump", "hd", "strings", "base64", "base32", "md5sum", "md5",
	"sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum", "shasum", "b2sum", "cksum", "sum", "realpath", "readlink",
	"basename", "dirname", "seq", "sleep", "yes", "jq", "bc", "dc", "expr", "factor", "numfmt", "man", "info", "tldr",
	"nm", "objdump", "readelf", "ldd", "otool", "cloc", "tokei", "scc", "shellcheck", "locale", "getent", "tty", "stty", "clear", "tput",
	"zcat", "bzcat", "xzcat", "zless", "getconf", "journalctl", "dmesg", "time", "env", "history",
)

// notReaders are programs that name a file without showing or sending what is in it: a path among their words is no read of
// its content.
var notReaders = wordSet(
	"ls", "dir", "exa", "eza", "lsd", "stat", "test", "[", "[[", "chmod", "chown", "chgrp", "touch", "mkdir", "file", "du", "df",
	"realpath", "readlink", "basename", "dirname", "rm", "rmdir", "unlink", "shred", "srm", "ssh", "ssh-add", "ssh-keygen", "ssh-copy-id",
	"mosh", "autossh", "gpg", "gpg2", "gpgconf", "cd", "pushd", "find", "fd", "fdfind", "tree", "echo", "printf", "export", "set", "declare", "local", "readonly", "typeset",
	"mktemp", "kubectl", "helm", "k9s", "aws", "gcloud", "terraform", "docker", "docker-compose", "podman", "git", "gh", "which", "type",
	"command", "auditctl", "tripline", "sha256sum", "sha1sum", "md5sum", "wc", "trap", "unset", "alias", "read", "true", "false", ":",
	"getfacl", "setfacl", "lsattr", "chattr", "dotenv", "direnv", "man", "pgrep", "pkill", "trash", "trash-put", "gio",
	"git-crypt", "sops", "age-keygen", "truncate", "tee", "ln", "kill", "exit", "return", "commit", "code", "cursor", "open", "xdg-open",
)
