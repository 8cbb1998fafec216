// SPDX-License-Identifier: Apache-2.0

// Package daemon is the composition of everything: it takes events from hooks, has them decoded, judged, gated and
// recorded, and answers. The packages below it do not know each other; what they need from one another is mapped here.
//
// A Daemon is a value: several can live in one process, each with its own places. It reads no environment, handles no
// signals and never ends the process.
package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/redact"
	"github.com/tripline-sh/tripline/daemon/approval"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/disk"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/daemon/internal/sock"
	"github.com/tripline-sh/tripline/exporters/prom"
	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/agents/all"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// viewSlots bounds the reads of the machine that are under way for decisions.
const viewSlots = 32

// Options make a Daemon. Places is required.
type Options struct {
	Places    config.Places
	Overrides map[string]string // configuration keys that the command line sets; they win over the file
	Version   string            // "" = dev
	Homes     []string          // home directories beside the one of the password database; the first one is what ~ means
	OwnPaths  []string          // further paths that belong to this install, such as its binaries
	Logger    zerolog.Logger    // the zero value logs nothing
	Adapters  []agents.Adapter  // nil = every agent
	StartedBy string            // who keeps it running: systemd, launchd, hook or person; "" = person
	OnDemand  bool              // a hook started it: Start fails with ErrStopped while the stopped marker is there
	Manager   *Manager          // the service manager that started it; nil = none

	seam seam
}

// seam lets tests stand between the daemon and its parts.
type seam struct {
	stage   func(eventName, stage string) // may panic
	openLog func(context.Context, audit.Options) (auditLog, error)
	uid     func(peer uint32) uint32 // what a peer's uid is taken for
	limits  *limits
}

// auditLog is what the daemon needs of the audit log.
type auditLog interface {
	// Append returns only when the record is durable, or with an error.
	Append(context.Context, *audit.Entry) (audit.Receipt, error)
	State(prefix string) (map[string][]byte, error)
	Calls(context.Context, record.Filter, func(record.Call) error) error
	Sessions(ctx context.Context, from, to time.Time, fn func(record.Session) error) error
	Records(ctx context.Context, prefix string, fn func(record.Record, map[string][]byte) error) error
	Scan(ctx context.Context, r audit.Range, fn func(*record.Record, audit.BodiesFunc) error) error
	Tail(ctx context.Context, n int) ([]record.Record, error)
	Verify(ctx context.Context, anchors ...audit.Anchor) (record.Verification, error)
	Size() uint64
	Root() string
	VerifierKey() string
	Report() audit.Report
	Dir() string
	Err() error
	Failed() <-chan error
	Close(context.Context) error
}

// Daemon is one running instance. Fields without a comment are set by New or Start and not changed after.
type Daemon struct {
	places    config.Places
	overrides map[string]string
	version   string
	homes     []string
	ownPaths  []string
	startedBy string
	onDemand  bool
	manager   *Manager
	logger    zerolog.Logger
	adapters  map[string]agents.Adapter
	judges    map[string]tripwires.SettingsJudge // by agent
	seam      seam
	limits    limits
	now       func() time.Time
	uid       uint32
	pid       int

	red     *redact.Redactor
	m       *prom.Metrics
	pool    *view.Pool
	token   *installToken
	joinKey []byte

	log         *alarmLog
	gate        *approval.Gate
	policy      atomic.Pointer[policy]
	rules       *rulesWatch
	hookWatch   *hookWatch
	sessions    *sessions
	calls       *calls
	settings    *settingsBook
	alarms      *alarms
	gaps        *gaps
	spool       *spoolReader
	newest      newest        // events of agents
	anchor      atomic.Uint64 // highest sequence number that a denial carried out of the log
	verified    *verified
	canaries    canaries
	disk        atomic.Pointer[disk.Usage] // of the log's file system, as it was last measured
	hooks       *hookServer
	control     *controlServer
	standing    atomic.Pointer[standing] // set once both sockets are open
	metricsAddr string
	started     time.Time

	workCtx  context.Context // of everything that an event needs; outlives stopCtx by the time that replies take
	stopCtx  context.Context // ended as soon as Stop begins
	stop     context.CancelFunc
	fatal    chan error     // one error at most: the daemon cannot go on
	wg       sync.WaitGroup // goroutines of single decisions
	judging  chan struct{}  // their slots
	large    atomic.Bool    // a large frame was served since memory was last given back
	cleanups []cleanup      // owned by Start, then by Stop

	mu      sync.Mutex // guards the rest
	running bool
	stopErr error
	began   bool // Start was called
}

// New checks the options. It touches nothing but the configuration file, which it reads.
func New(o Options) (*Daemon, error) {
	if !filepath.IsAbs(o.Places.HookSocket) || !filepath.IsAbs(o.Places.LogDir) {
		return nil, errors.New("daemon: Places is required")
	}
	for _, path := range []string{o.Places.HookSocket, o.Places.ControlSocket} {
		if err := sock.CheckPath(path); err != nil {
			return nil, err
		}
	}
	if err := o.Manager.check(); err != nil {
		return nil, err
	}
	cfg, err := config.Load(o.Places.ConfigFile)
	if err != nil {
		// A broken file is the business of Start, which may have an earlier set to go on with.
		cfg = config.Default()
	}
	for key := range o.Overrides {
		if !slices.Contains(config.Keys(), key) {
			return nil, fmt.Errorf("unknown configuration key %q", key)
		}
	}
	if err := applyOverrides(&cfg, o.Overrides); err != nil {
		return nil, err
	}
	d := &Daemon{
		places:    o.Places,
		overrides: o.Overrides,
		version:   o.Version,
		startedBy: cmp.Or(o.StartedBy, "person"),
		onDemand:  o.OnDemand,
		manager:   o.Manager,
		logger:    o.Logger,
		adapters:  make(map[string]agents.Adapter),
		judges:    map[string]tripwires.SettingsJudge{claude.Name: claude.JudgeSettings},
		seam:      o.seam,
		limits:    defaultLimits(),
		now:       time.Now,
		uid:       uint32(os.Geteuid()),
		pid:       os.Getpid(),
		red:       redact.New(),
		pool:      view.NewPool(viewSlots),
		token:     &installToken{path: o.Places.TokenFile},
		sessions:  newSessions(),
		calls:     newCalls(),
		gaps:      newGaps(),
		fatal:     make(chan error, 1),
	}
	if d.version == "" {
		d.version = "dev"
	}
	if o.seam.limits != nil {
		d.limits = *o.seam.limits
	}
	d.judging = make(chan struct{}, d.limits.conns)
	adapters := o.Adapters
	if adapters == nil {
		adapters = all.All()
	}
	var names []string
	for _, a := range adapters {
		if a.Name() == "" || d.adapters[a.Name()] != nil {
			return nil, fmt.Errorf("daemon: two adapters are called %q", a.Name())
		}
		d.adapters[a.Name()] = a
		names = append(names, a.Name())
	}
	d.m = prom.New(d.version, names...)
	d.homes = knownHomes(o.Homes, d.uid)
	d.ownPaths = slices.Concat(o.Places.Own(), o.OwnPaths)
	d.rules = &rulesWatch{d: d}
	return d, nil
}

// knownHomes are the given home directories and the one that the password database has for uid.
func knownHomes(given []string, uid uint32) []string {
	var out []string
	add := func(h string) {
		if h = filepath.Clean(h); filepath.IsAbs(h) && !slices.Contains(out, h) {
			out = append(out, h)
		}
	}
	for _, h := range given {
		add(h)
	}
	if u, err := user.LookupId(strconv.FormatUint(uint64(uid), 10)); err == nil {
		add(u.HomeDir)
	}
	return out
}

// trustedUID reports whether a peer may use the sockets: this user, and nobody else.
func (d *Daemon) trustedUID(peer uint32) bool {
	if d.seam.uid != nil {
		peer = d.seam.uid(peer)
	}
	return peer == d.uid
}

// stopping reports whether Stop has begun.
func (d *Daemon) stopping() bool { return d.stopCtx.Err() != nil }

// Run starts the daemon, waits for ctx or for a failure that it cannot go on after, and stops it. ready, if not nil, is
// called when it serves.
func (d *Daemon) Run(ctx context.Context, ready func()) error {
	if err := d.Start(ctx); err != nil {
		return err
	}
	if ready != nil {
		ready()
	}
	var err error
	select {
	case <-ctx.Done():
	case err = <-d.fatal:
		d.logger.Error().Err(err).Msg("the daemon cannot go on")
	case err = <-d.log.Failed():
		d.logger.Error().Err(err).Msg("the audit log cannot go on in this process; start the daemon again")
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), d.limits.stop)
	defer cancel()
	err = errors.Join(err, d.Stop(sctx))
	d.logger.Info().Bool("clean", err == nil).Msg("stopped")
	return err
}

// Addrs are the places at which a started daemon can be reached.
type Addrs struct {
	Hook, Control string
	Metrics       string // "" if off
}

// Addrs returns the addresses of a started daemon.
func (d *Daemon) Addrs() Addrs {
	return Addrs{Hook: d.places.HookSocket, Control: d.places.ControlSocket, Metrics: d.metricsAddr}
}

// GenesisKey is the verifier key of the log, and whether this start created it: then a person should keep it.
func (d *Daemon) GenesisKey() (key string, first bool) {
	return d.log.VerifierKey(), d.log.Report().FirstRun
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.As(err, &ne) && ne.Timeout()
}

// Harden protects the memory of the whole process, where signing keys are, from this user's other processes as far as
// the system allows. The program calls it once, before New.
func Harden() error { return proc.Harden() }
