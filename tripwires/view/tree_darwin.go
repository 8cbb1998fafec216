// SPDX-License-Identifier: Apache-2.0

package view

import "strings"

// searchOnly opens a directory that may be passed through but not listed: O_EXEC, which is O_SEARCH with O_DIRECTORY.
const searchOnly = 0x40000000

// pseudo reports whether a resolved path is in a tree whose files are not files.
func pseudo(path string) bool { return path == "/dev" || strings.HasPrefix(path, "/dev/") }

// refusePseudo has nothing to refuse: this system has no pseudo file systems with regular files.
func refusePseudo(int) error { return nil }
