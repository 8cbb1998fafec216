// SPDX-License-Identifier: Apache-2.0

// Package builtin holds the rule packs that are part of the program, one YAML file a family. It holds data only; package
// tripwires reads it.
package builtin

import "embed"

// Packs holds the files, all in its root directory.
//
//go:embed *.yaml
var Packs embed.FS
