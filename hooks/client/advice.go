// SPDX-License-Identifier: Apache-2.0

package client

import "syscall"

// maxCommand bounds the command that a deny shows, which has 2,000 bytes for everything.
const maxCommand = 512

// startAdvice says who starts the daemon and how. A daemon that is away may be so on a person's word, so it is not the agent's to
// bring back.
func startAdvice(command string) string {
	const (
		head = "Only the user may start the daemon, not you: with the command "
		tail = " After that, the same call can be made again."
	)
	if command == "" {
		return head + "auditctl start in a terminal." + tail
	}
	return head + command + " in a terminal, or by typing ! " + command + " at the prompt here, which runs it without a hook." + tail
}

// startCommand is the command by which a person starts the daemon: the program beside the hook, whose path is name. It is "" where
// that cannot be told, is not there, or is no word that can be pasted into a shell as it stands.
func startCommand(name string) string {
	end := -1
	for i := range len(name) {
		switch c := name[i]; {
		case c == '/':
			end = i
		case !plain(c):
			return ""
		}
	}
	if end < 0 || name[0] != '/' || end > maxCommand {
		return ""
	}
	dir := name[:end]
	programs := [...]string{"/auditctl", "/tripline"}
	switch dir {
	case "/usr/bin", "/usr/sbin", "/bin", "/sbin": // auditctl may be the kernel's there
		programs[0], programs[1] = programs[1], ""
	}
	for _, p := range programs {
		const execute = 1
		if p != "" && syscall.Access(dir+p, execute) == nil {
			return dir + p + " start"
		}
	}
	return ""
}

// plain reports whether a byte of a path means itself in a shell, in JSON and in every quoting of either.
func plain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
		c == '/' || c == '.' || c == '_' || c == '-' || c == '+' || c == '@' || c == ':' || c == ',' || c == '%'
}
