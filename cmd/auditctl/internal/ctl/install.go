// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/doctor"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/service"
	"github.com/tripline-sh/tripline/cmd/auditctl/internal/words"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/install"
)

type installOptions struct {
	dryRun, yes bool
}

func (a *app) install() *cobra.Command {
	o := &installOptions{}
	cmd := &cobra.Command{
		Use:   "install [AGENT]",
		Short: "Wire an agent's hooks to Tripline, after showing the change",
		Long: `Add our hooks to an agent's user settings (claude: $CLAUDE_CONFIG_DIR/settings.json, else ~/.claude/settings.json). The
difference is printed first; nothing is written without a person's word. Every foreign entry, comment and blank stays. Without AGENT,
the agents that are found on this machine are offered one by one in a terminal; elsewhere they are only named.

Exit codes: 0 ok, 1 error or refused, 2 usage.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return a.offer(cmd.Context(), o)
			}
			return a.runInstall(cmd.Context(), o, args[0])
		},
	}
	o.flags(cmd)
	return cmd
}

func (a *app) uninstall() *cobra.Command {
	o := &installOptions{}
	cmd := &cobra.Command{
		Use:   "uninstall AGENT",
		Short: "Take our hooks out of an agent's settings, and nothing else",
		Long: `Remove our entries from an agent's user settings. A running daemon is told first, so that sessions accept the change; then it
waits up to five seconds for them to let go of our hooks, and names those that did not. The log and the programs stay.

Exit codes: 0 ok, 1 error or refused, 2 usage.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runUninstall(cmd.Context(), o, args[0]) },
	}
	o.flags(cmd)
	return cmd
}

func (o *installOptions) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the change and write nothing")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do it without asking (for scripts that a person runs)")
}

// settingsPath is the settings file of the only agent that this version wires.
func (a *app) settingsPath(agent string, p config.Places) (string, error) {
	if agent != "claude" {
		return "", usagef("unknown agent %q: this version wires claude", agent)
	}
	path, err := install.SettingsPath(a.Getenv("CLAUDE_CONFIG_DIR"), p.Home)
	if err != nil {
		return "", failf("set HOME to your home directory", "%v", err)
	}
	return path, nil
}

func (a *app) runInstall(ctx context.Context, o *installOptions, agent string) error {
	if !o.dryRun {
		if err := a.needPerson("wiring an agent"); err != nil {
			return err
		}
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	options, err := a.hookOptions(ctx, agent, p)
	if err != nil {
		return err
	}
	path := options.Path
	if err := a.oldClient(path, p); err != nil {
		return err
	}
	if n, most := len(p.HookSocket), doctor.MaxSocketPath(); n > most {
		return failf("set TRIPLINE_HOME or XDG_RUNTIME_DIR to a shorter directory, in every shell that asks, and start again from there",
			"the path of the daemon's socket has %d bytes, and the system takes %d: no daemon could listen there, and every guarded call would be denied", n, most)
	}
	change, err := install.Plan(options)
	if err != nil {
		return failf("the file was left as it is", "%v", err)
	}
	if why := install.Skipped(change.Old); why != "" {
		return failf("mend that, then: "+a.paste("install", agent), "%s would not be guarded: %s: %s", agent, path, why)
	}
	for _, w := range change.Warnings {
		fmt.Fprintf(a.Err, "warning: %s\n", show.Line(w, 500))
	}
	if change.Empty() {
		fmt.Fprintf(a.Out, "%s is already wired in %s\n", agent, show.Line(path, 500))
		if o.dryRun {
			return nil
		}
		if err := writeToken(p, change.Token); err != nil {
			return err
		}
		_, err := a.announce(ctx, p, change, "install", agent) // what stands there is as it should be: an alarm about it ends
		return err
	}
	wanted, err := install.Wanted(options)
	if err != nil {
		return failf("the file was left as it is", "%v", err)
	}
	short := fmt.Sprintf("in short: from then on %s of %s call %s; nothing else in the file changes", words.Count(len(wanted), "event"), agent, show.Line(options.Binary, 500))
	if ok, err := a.agree(ctx, change, short, o); !ok {
		return err
	}
	// the daemon must know the token before the first event carries it
	if err := writeToken(p, change.Token); err != nil {
		return err
	}
	running, err := a.apply(ctx, p, change, "install", agent)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "wired: %s; sessions that begin from now on are guarded\n", show.Line(path, 500))
	if running {
		return nil
	}
	if _, err := os.Lstat(p.StoppedFile); err != nil && options.Daemon != nil {
		fmt.Fprintf(a.Err, "no daemon runs: the first guarded call starts it; or now: %s\n", a.paste("start"))
		return nil
	}
	fmt.Fprintf(a.Err, "no daemon runs: until one does, guarded calls are denied; %s\n", a.startHint())
	return nil
}

// oldClient refuses a client that is too old for hooks like ours, and warns of one that lets a call run if its hook cannot. Its release is
// read from its files; where they do not tell, nothing is said.
func (a *app) oldClient(settings string, p config.Places) error {
	facts := doctor.FindAgent(filepath.Dir(settings), p.Home, a.Getenv("PATH"))
	v := facts.Installed
	if v == (claude.Version{}) {
		v = facts.Transcript
	}
	switch {
	case v == (claude.Version{}):
	case v.Compare(claude.FirstSupported) < 0:
		return failf("update it first: claude update", "claude %v is too old for these hooks: they need %v, better %v", v, claude.FirstSupported, claude.FirstOnFailure)
	case v.Compare(claude.FirstOnFailure) < 0:
		fmt.Fprintf(a.Err, "warning: claude %v lets a call run if its hook cannot run; %v and later do not: claude update\n", v, claude.FirstOnFailure)
	}
	return nil
}

// hookOptions are what install writes for an agent.
func (a *app) hookOptions(ctx context.Context, agent string, p config.Places) (install.Options, error) {
	var o install.Options
	path, err := a.settingsPath(agent, p)
	if err != nil {
		return o, err
	}
	c, err := config.Load(p.ConfigFile)
	if err != nil {
		return o, failf("mend the file first", "%v", err)
	}
	if o, err = a.entries(p, path, c.OnDown); err != nil {
		return o, err
	}
	o.Daemon, err = a.hookDaemon(ctx, p)
	return o, err
}

// entries are the options of entries in a settings file that call the hook beside this program and start no daemon.
func (a *app) entries(p config.Places, settings, onDown string) (install.Options, error) {
	binary, err := a.hookBinary()
	if err != nil {
		return install.Options{}, err
	}
	token, err := readToken(p)
	return install.Options{
		Path: settings, Owner: os.Getuid(), Binary: binary, Socket: p.HookSocket, Spool: p.SpoolDir, ServerUID: os.Getuid(), Token: token,
		AllowOnDown: onDown == "allow",
	}, err
}

// hookDaemon is the command line by which a hook starts the daemon when it is away; nil where a service manager holds the socket.
func (a *app) hookDaemon(ctx context.Context, p config.Places) ([]string, error) {
	k, err := a.keeper(ctx, p)
	if err != nil || k.Name() != service.None {
		return nil, err
	}
	return a.onDemand(p), nil
}

func (a *app) runUninstall(ctx context.Context, o *installOptions, agent string) error {
	if !o.dryRun {
		if err := a.needPerson("taking an agent's hooks out"); err != nil {
			return err
		}
	}
	p, err := a.places()
	if err != nil {
		return err
	}
	path, err := a.settingsPath(agent, p)
	if err != nil {
		return err
	}
	change, err := install.PlanRemoval(path, os.Getuid())
	if err != nil {
		return failf("the file was left as it is", "%v", err)
	}
	if change.Empty() {
		fmt.Fprintf(a.Out, "there is nothing of ours in %s\n", show.Line(path, 500))
		if o.dryRun {
			return nil
		}
		_, err := a.announce(ctx, p, change, "uninstall", agent) // and so it is to be: an alarm about entries that went ends
		return err
	}
	if ok, err := a.agree(ctx, change, "in short: our entries go; nothing else in the file changes", o); !ok {
		return err
	}
	running, err := a.apply(ctx, p, change, "uninstall", agent)
	if err != nil {
		return err
	}
	fmt.Fprintf(a.Out, "taken out of %s; %s is no longer guarded, and the log stays in %s\n", show.Line(path, 500), agent, show.Line(p.LogDir, 500))
	if !running {
		fmt.Fprintf(a.Err, "note: no daemon ran, so a session of %s that is open now does not take the change up; its calls are denied until it is restarted\n", agent)
		return nil
	}
	return a.letGo(ctx, p, agent)
}

// agree shows a change, which may be longer than the screen, and what it comes to, and asks for a person's word. Without it err
// says why nothing was done.
func (a *app) agree(ctx context.Context, c *install.Change, short string, o *installOptions) (bool, error) {
	diff, note := c.Readable()
	fmt.Fprint(a.Out, show.Text(diff, 0))
	if note != "" {
		fmt.Fprintln(a.Err, note)
	}
	fmt.Fprintln(a.Err, short)
	switch {
	case o.dryRun:
		fmt.Fprintln(a.Err, "nothing was written (dry run)")
		return false, nil
	case o.yes:
		return true, nil
	case !a.InTTY:
		return false, failf("look at the change above and run it again in a terminal, or with --yes", "a person's word is needed to change %s", c.Path)
	}
	if !a.confirm(ctx, fmt.Sprintf("write this to %s?", show.Line(c.Path, 500))) {
		return false, &Error{Code: exitError, Msg: errDeclined.Error(), Err: errDeclined}
	}
	return true, nil
}

// announceTime bounds the wait for a daemon that is told of a change.
const announceTime = 15 * time.Second

// apply tells a running daemon which bytes the settings file is about to get, so that it lets the change pass, and writes them.
func (a *app) apply(ctx context.Context, p config.Places, c *install.Change, action, agent string) (running bool, err error) {
	if running, err = a.announce(ctx, p, c, action, agent); err != nil {
		return running, err
	}
	if err := c.Apply(); err != nil {
		return running, failf("nothing was written; try again", "%v", err)
	}
	return running, nil
}

// announce tells a running daemon which bytes a person wants in the settings file.
func (a *app) announce(ctx context.Context, p config.Places, c *install.Change, action, agent string) (running bool, err error) {
	cl := &control.Client{Socket: p.ControlSocket}
	ctx, cancel := context.WithTimeout(ctx, announceTime) // a daemon that hangs must not hold the person up for good
	defer cancel()
	_, err = cl.Announce(ctx, control.AnnounceRequest{Path: c.Path, SHA256: c.SHA256(), Action: action, Agent: agent, Proof: a.proof()})
	if errors.Is(err, control.ErrUnreachable) {
		return false, nil
	}
	return true, a.controlError(err)
}

// hookBinary is the hook program beside this one.
func (a *app) hookBinary() (string, error) {
	path := filepath.Join(filepath.Dir(a.Exe), "tripline-hook")
	fi, err := os.Stat(path)
	if err != nil || fi.Mode()&0o111 == 0 || fi.IsDir() {
		return "", failf("install the three programs into one directory", "tripline-hook is not beside this program: %s", path)
	}
	return path, nil
}

// readToken returns the install token, "" before the first install.
func readToken(p config.Places) (string, error) {
	b, err := os.ReadFile(p.TokenFile)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", failf("", "the install token cannot be read: %v", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// writeToken keeps the install token where the daemon looks for it.
func writeToken(p config.Places, token string) error {
	if old, err := readToken(p); err != nil || old == token {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(p.TokenFile), 0o700); err != nil {
		return failf("", "the install token cannot be kept: %v", err)
	}
	if err := renameio.WriteFile(p.TokenFile, []byte(token+"\n"), 0o600, renameio.IgnoreUmask()); err != nil {
		return failf("", "the install token cannot be kept: %v", err)
	}
	return nil
}
