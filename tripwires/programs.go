// SPDX-License-Identifier: Apache-2.0

package tripwires

import "strings"

// program gives one program's arguments their effects.
type program func(x *evaluation, c *command)

// programTable makes the table of programs by name. Each Engine has its own, since the programs lead back to the table.
func programTable() map[string]program {
	t := map[string]program{}
	add := func(p program, names ...string) {
		for _, n := range names {
			t[n] = p
		}
	}
	for name, p := range runnerTable() {
		t[name] = p
	}
	add(progRm, "rm", "grm", "zf_rm")
	add(progUnlink, "unlink", "rmdir", "shred", "srm", "gshred", "wipe")
	add(progTrash, "trash", "trash-put", "rmtrash")
	add(progRimraf, "rimraf", "del-cli", "del")
	add(progFind, "find", "gfind")
	add(progFd, "fd", "fdfind")
	add(progTruncate, "truncate", "gtruncate")
	add(progMv, "mv", "gmv")
	add(progCp, "cp", "gcp")
	add(progLn, "ln", "gln", "link")
	add(progInstall, "install", "ginstall")
	add(progDd, "dd", "gdd", "dcfldd", "pv")
	add(progTee, "tee", "gtee", "sponge")
	add(progSedScript, "sed", "gsed")
	add(progTouch, "touch")
	add(progMkdir, "mkdir")
	add(progTar, "tar", "gtar", "bsdtar")
	add(progRsync, "rsync")
	add(progScp, "scp", "sftp")
	add(progGit, "git")
	add(progChmod, "chmod", "chown", "chgrp", "gchmod", "gchown", "chattr", "chflags", "setfacl")
	add(progMkfs, "mkfs", "mkswap", "newfs", "mke2fs", "mkdosfs", "mkntfs")
	add(progDiskTool, "wipefs", "fdisk", "sfdisk", "cfdisk", "parted", "gdisk", "sgdisk", "blkdiscard", "hdparm", "diskutil", "cryptsetup", "badblocks", "zerofree")
	add(progKill, "kill", "pkill", "killall", "skill", "xkill", "killall5")
	add(progShutdown, "shutdown", "reboot", "halt", "poweroff", "init", "telinit")
	add(progCrontab, "crontab")
	add(progAt, "at", "batch")
	add(progSystemctl, "systemctl")
	add(progLaunchctl, "launchctl")
	add(progHistory, "history", "fc")
	add(progUnset, "unset")
	add(progSet, "set")
	add(progSystemdRun, "systemd-run")
	add(progJournalctl, "journalctl")
	add(progPrivilege, "sudo", "su", "doas", "pkexec", "run0", "sudoedit", "gosu", "runuser")
	add(progVisudo, "visudo", "usermod", "useradd", "userdel", "passwd", "chpasswd", "groupadd", "gpasswd", "deluser", "adduser", "chsh", "dscl", "setcap")
	for name := range shells {
		if name != "busybox" {
			add(progShell, name)
		}
	}
	add(progMount, "mount", "umount", "fusermount", "bindfs")
	add(progScreen, "screen")
	add(progCurl, "curl")
	add(progWget, "wget", "wget2")
	add(progNetcat, "nc", "ncat", "netcat", "nc.openbsd", "nc.traditional")
	add(progSocat, "socat")
	add(progSQL, "psql", "mysql", "mariadb", "sqlite3", "sqlite", "duckdb", "pgcli", "mycli", "cockroach", "clickhouse-client", "sqlcmd", "usql", "bigquery", "snowsql", "turso", "sqlplus")
	add(progDropDB, "dropdb", "dropuser")
	add(progRedis, "redis-cli", "valkey-cli")
	add(progMongo, "mongo", "mongosh")
	add(progPrisma, "prisma")
	add(progFramework, "rails", "rake", "artisan", "mysqladmin", "mix", "pg_restore")
	for name := range infraVerbs {
		t[name] = progInfra
	}
	add(progAWS, "aws")
	add(progAgent, "claude", "codex", "gemini", "cursor-agent", "copilot", "opencode", "qwen", "aider", "amp", "goose", "q", "crush", "droid", "auggie")
	add(progRunner, "npx", "bunx", "pnpx", "uvx", "pnpm", "yarn", "npm", "uv", "pipx")
	add(progApplyPatch, "apply_patch", "applypatch")
	add(progOurs, "auditctl", "tripline", daemonName, "tripline-hook")
	return t
}

// programFamily finds programs whose names carry a version or a type.
func programFamily(name string) program {
	switch {
	case strings.HasPrefix(name, "mkfs."), strings.HasPrefix(name, "newfs_"):
		return progMkfs
	case languageOf(name) != "":
		return progInterpreter
	case name != "" && !harmless[name]:
		return progUnlisted
	}
	return nil
}

// progOurs: our own programs read; what they must not do is said by selfProtected.
func progOurs(*evaluation, *command) {}
