// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"

	"github.com/tripline-sh/tripline/daemon"
)

// version is set by the linker: -ldflags '-X main.version=1.2.3'. Nothing else changes it.
var version = "dev"

// versionText adds the commit to a development version.
func versionText() string {
	if version != "dev" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			rev = "-" + s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	return version + rev + dirty
}

// harden keeps this process's memory, where the signing key is, from the user's other processes and from core files.
func harden() error { return daemon.Harden() }
