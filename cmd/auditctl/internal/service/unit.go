// SPDX-License-Identifier: Apache-2.0

package service

import "strings"

// Names of the units. A socket unit gives all its sockets one name, so each socket has a unit of its own.
const (
	serviceUnit = "tripline.service"
	hookUnit    = "tripline-hook.socket"
	controlUnit = "tripline-control.socket"

	// UnitNames are all of them, for a person.
	UnitNames = serviceUnit + ", " + hookUnit + ", " + controlUnit
)

// serviceText is the unit of the daemon. A user's manager has no privileges: what would need them (capabilities, kernel
// protection, private devices and mounts) makes a unit fail there, and is absent.
func serviceText(in *Install) []byte {
	var cmd strings.Builder
	cmd.WriteString(quoteProgram(in.Program))
	for _, arg := range append(append([]string{}, in.Args...), "--started-by", Systemd) {
		cmd.WriteString(" " + quoteArg(arg))
	}
	return []byte("# " + header + `
[Unit]
Description=Tripline: judges and records what coding agents do

[Service]
Type=notify
NotifyAccess=main
ExecStart=` + cmd.String() + `
Sockets=` + hookUnit + ` ` + controlUnit + `
Restart=on-failure
RestartSec=1
WatchdogSec=30
TimeoutStartSec=60
TimeoutStopSec=15
SyslogIdentifier=triplined
UMask=0077
NoNewPrivileges=yes
LockPersonality=yes
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service
SystemCallFilter=~@privileged @resources
SystemCallErrorNumber=EPERM

[Install]
WantedBy=default.target
`)
}

// socketText is the unit of one socket. The socket goes when the unit stops, so that hooks see at once that nobody listens.
func socketText(what, name, path string) []byte {
	return []byte("# " + header + `
[Unit]
Description=Tripline: the socket of ` + what + `

[Socket]
ListenStream=` + strings.ReplaceAll(path, "%", "%%") + `
FileDescriptorName=` + name + `
Service=` + serviceUnit + `
SocketMode=0600
DirectoryMode=0700
RemoveOnStop=yes

[Install]
WantedBy=sockets.target
`)
}

var specifiers = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`)

// quoteProgram writes the path of a program into ExecStart. Variables are not expanded there.
func quoteProgram(path string) string { return `"` + specifiers.Replace(path) + `"` }

// quoteArg writes an argument into ExecStart.
func quoteArg(arg string) string {
	quoted := strings.ReplaceAll(specifiers.Replace(arg), "$", "$$")
	if quoted != "" && !strings.ContainsAny(quoted, " '\";") {
		return quoted
	}
	return `"` + quoted + `"`
}
