// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
)

// errDeclined says that a person looked at a change and did not want it.
var errDeclined = errors.New("not confirmed: nothing was written")

// found is an agent that seems to be used on this machine.
type found struct {
	agent string
	why   string
}

// discover looks for agents that this version can wire. Nothing is run.
func (a *app) discover(p config.Places) []found {
	if path, err := a.settingsPath("claude", p); err == nil {
		if fi, err := os.Stat(filepath.Dir(path)); err == nil && fi.IsDir() {
			return []found{{"claude", filepath.Dir(path)}}
		}
	}
	for _, dir := range filepath.SplitList(a.Getenv("PATH")) {
		path := filepath.Join(dir, "claude")
		if fi, err := os.Stat(path); filepath.IsAbs(dir) && err == nil && !fi.IsDir() && fi.Mode()&0o111 != 0 {
			return []found{{"claude", path}}
		}
	}
	return nil
}

// offer is install without an agent: it offers what it finds to a person, and changes nothing without one.
func (a *app) offer(ctx context.Context, o *installOptions) error {
	p, err := a.places()
	if err != nil {
		return err
	}
	list := a.discover(p)
	if len(list) == 0 {
		fmt.Fprintf(a.Out, "no agent that this version wires was found; when there is one: %s\n", a.paste("install", "claude"))
		return nil
	}
	for _, f := range list {
		fmt.Fprintf(a.Out, "found %s (%s)\n", f.agent, show.Line(f.why, 500))
		if !a.InTTY && !o.yes && !o.dryRun {
			fmt.Fprintf(a.Out, "a person wires it, after a look at the change, by: %s\n", a.paste("install", f.agent))
			continue
		}
		err := a.runInstall(ctx, o, f.agent)
		if errors.Is(err, errDeclined) {
			fmt.Fprintf(a.Err, "%s was left as it is; later: %s\n", f.agent, a.paste("install", f.agent))
			err = nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}
