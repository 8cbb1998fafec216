// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

// notUp says why the daemon is not there, in its own words where it has some.
func (a *app) notUp(ctx context.Context, k *keeper, cause error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	e := &Error{Code: exitError, Msg: "the daemon did not come up: " + cause.Error(), Err: cause}
	if errors.Is(cause, service.ErrForeign) {
		e.Hints = []string{"nothing was started"}
		return e
	}
	if words := forPeople(k.LastWords(ctx)); len(words) > 0 {
		fmt.Fprintln(a.Err, "the daemon's last words:")
		for _, line := range words {
			fmt.Fprintf(a.Err, "  %s\n", show.Line(line, 1000))
		}
	}
	if where := k.Where(); where != "" {
		e.Hints = append(e.Hints, "all that it said: "+where)
	}
	e.Hints = append(e.Hints, "mend that, then: "+a.paste("start"))
	return e
}

// forPeople takes those lines of a log that are written for people; if there are none, all.
func forPeople(text string) []string {
	if text == "" {
		return nil
	}
	all := strings.Split(text, "\n")
	if plain := slices.DeleteFunc(slices.Clone(all), func(line string) bool { return strings.HasPrefix(line, "{") }); len(plain) > 0 {
		return plain
	}
	return all
}

// sayRunning describes the daemon that answers.
func (a *app) sayRunning(p config.Places, k *keeper, st control.Status, first bool) error {
	by := map[string]string{"systemd": "kept by systemd: " + service.UnitNames, "launchd": "kept by launchd: " + service.Label}[st.StartedBy]
	where := k.Where()
	if by == "" {
		by, where = "detached from this shell; "+a.comesBack(p), p.DaemonLog
	}
	metrics := "off"
	if st.MetricsAddr != "" {
		metrics = st.MetricsAddr
	}
	fmt.Fprintf(a.Out, "triplined runs (pid %d, version %s)\n", st.PID, show.Line(st.Version, 100))
	for _, row := range [][2]string{{"manager", by}, {"messages", where}, {"hooks", st.HookSocket}, {"control", st.ControlSocket}, {"metrics", metrics}, {"log", st.LogDir}} {
		fmt.Fprintf(a.Out, "  %-9s %s\n", row[0], show.Line(row[1], 500))
	}
	if first {
		fmt.Fprintf(a.Out, "a new log was begun; keep its key outside this machine, `%s` checks against it:\n  %s\n", a.paste("verify", "--key"), show.Line(st.GenesisKey, 300))
	}
	switch k.Name() {
	case service.None:
		fmt.Fprintf(a.Err, "no service manager is used: %s\n", show.Line(k.why, 500))
		a.notes(k)
	case st.StartedBy:
		a.notes(k)
	default:
		fmt.Fprintf(a.Err, "note: %s does not keep this daemon; to hand it over: %s\n", k.Name(), a.paste("restart"))
	}
	a.warnMetrics(p, st)
	return nil
}

// comesBack says what starts a daemon again that no manager keeps. Entries of an earlier version do not.
func (a *app) comesBack(p config.Places) string {
	if w, err := a.wired(p); err == nil && w.path != "" && !w.starts {
		return "nothing starts it again when it is away, until: " + a.paste("install", "claude")
	}
	return "hooks start it again when it is away"
}

// notes says what a person should know of the service manager.
func (a *app) notes(k *keeper) {
	for _, n := range k.Notes() {
		fmt.Fprintf(a.Err, "note: %s\n", show.Line(n, 500))
	}
}

// warnMetrics tells of an address of the metrics that could not be had.
func (a *app) warnMetrics(p config.Places, st control.Status) {
	if st.MetricsAddr != "" {
		return
	}
	listen := a.Getenv("TRIPLINE_METRICS_LISTEN")
	if c, err := config.Load(p.ConfigFile); listen == "" && err == nil {
		listen = c.MetricsListen
	}
	if listen != "" && listen != "off" {
		fmt.Fprintf(a.Err, "warning: there are no metrics: %s is taken, or cannot be had; metrics.listen in %s names another, or off\n",
			show.Line(listen, 200), show.Line(p.ConfigFile, 500))
	}
}
