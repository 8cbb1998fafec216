// SPDX-License-Identifier: Apache-2.0

// Auditctl asks what coding agents did and decides what waits for a person. See package ctl.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/tripline-sh/tripline/cmd/auditctl/internal/ctl"
)

// version is set at build time.
var version = "dev"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(ctl.Run(ctx, ctl.OSEnv(filepath.Base(os.Args[0])), version, os.Args[1:]))
}
