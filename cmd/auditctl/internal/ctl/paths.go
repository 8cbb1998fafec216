// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/daemon/config"
)

func (a *app) pathsCmd() *cobra.Command {
	return &cobra.Command{
		Use:   "paths [NAME]",
		Short: "Print where this install keeps its files",
		Long: `Print all places, or the one called NAME, for scripts.

Exit codes: 0 ok, 1 error, 2 usage.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			p, err := a.places()
			if err != nil {
				return err
			}
			t := &table{header: []string{"NAME", "PATH"}}
			for _, n := range placeList(p) {
				if len(args) == 1 && args[0] == n[0] {
					fmt.Fprintln(a.Out, n[1])
					return nil
				}
				t.add(n[0], n[1])
			}
			if len(args) == 1 {
				return usagef("unknown place %q; known: %s", args[0], strings.Join(placeNames(), ", "))
			}
			return t.print(a.Out, 0)
		},
	}
}

// placeList names the places that paths prints.
func placeList(p config.Places) [][2]string {
	return [][2]string{
		{"config", p.ConfigFile}, {"rules", p.RulesDir}, {"state", p.StateDir}, {"log", p.LogDir}, {"keys", p.KeysDir}, {"spool", p.SpoolDir},
		{"run", p.RunDir}, {"hook-socket", p.HookSocket}, {"control-socket", p.ControlSocket}, {"lock", p.LockFile},
		{"metrics-addr", p.MetricsAddr},
	}
}

func placeNames() []string {
	var out []string
	for _, n := range placeList(config.Places{}) {
		out = append(out, n[0])
	}
	return out
}
