// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io/fs"
	"math"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripline-sh/tripline/audit/redact"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/hooks/transcript"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// Options say what is to be judged, and with what.
type Options struct {
	Dir      string    // the client's directory, with its projects below it
	From, To time.Time // half-open; zero = open. A call without a time counts.
	Project  string    // only calls of this project, or made in a directory below it; "" = all
	Engine   *tripwires.Engine
	Homes    []string
	Location *time.Location // whose days are counted; nil = UTC
	All      bool           // list every stopped call, up to a bound for hostile trees; else the newest
	Workers  int            // 0 = one for each processor, at most 8
	// Progress, if not nil, is told how many bytes of how many were dealt with. It is called by several goroutines.
	Progress func(done, total int64)
	// Now measures how long it took.
	Now func() time.Time
}

// Bounds of one run.
const (
	maxListed    = 24 << 20  // bytes of the stopped calls that are listed, the newest ones: some 30,000
	maxListedAll = 512 << 20 // the same with Options.All
	maxPerFile   = 1 << 20   // calls of one transcript
	maxPath      = 1000      // bytes of a path that is listed
	maxInput     = 2000      // bytes of an input that is listed
)

// Run reads the transcripts and judges their calls. The error wraps fs.ErrNotExist if there are none, and comes with an empty
// report; or it is that of ctx.
func Run(ctx context.Context, o Options) (*Report, error) {
	begin := o.Now()
	tree, err := transcript.Open(o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return (&run{o: &o}).report(ctx, newTally(&o, transcript.Stats{}), begin), err
	}
	if err != nil {
		return nil, err
	}
	defer tree.Close() //nolint:errcheck // read only: closing loses nothing
	all, stats, err := tree.Files(ctx)
	if err != nil {
		return nil, err
	}
	files := all[:0]
	total := int64(0)
	for _, f := range all {
		if f.Modified.Before(o.From) { // its last line is older than the range
			continue
		}
		files = append(files, f)
		total += f.Size
	}
	pool := view.NewPool(8)
	r := &run{
		o: &o, tree: tree, judge: newJudge(o.Engine, newSnapshot(pool), o.Homes), redactor: redact.New(), seed: maphash.MakeSeed(), total: total,
		first: map[string]string{},
	}
	t := newTally(&o, stats)
	if err := r.files(ctx, files, t); err != nil {
		return nil, err
	}
	rep := r.report(ctx, t, begin)
	rep.Summary.Files = len(files)
	look := r.judge.snap.reader(ctx)
	for i := range rep.Rules {
		rule := &rep.Rules[i]
		there := func(p string) bool {
			if !path.IsAbs(p) {
				return false
			}
			info, err := look.Lstat(p)
			return err == nil && info.Mode.IsDir()
		}
		if n := slices.IndexFunc(rule.Projects, there); n >= 0 {
			rule.Worst = rule.Projects[n]
		}
	}
	return rep, nil
}

// report is what the tally says, and of what, by what and how long it took.
func (r *run) report(ctx context.Context, t *tally, begin time.Time) *Report {
	rep := t.report()
	s := &rep.Summary
	s.From, s.To = optional(r.o.From), optional(r.o.To)
	s.Bytes = r.total
	s.RuleSet = r.o.Engine.Rules().Hash()
	s.Mode, s.Profile = r.setting(ctx)
	s.DurationMS = r.o.Now().Sub(begin).Milliseconds()
	return rep
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// run is the work on all files.
type run struct {
	o        *Options
	tree     *transcript.Tree
	judge    *judge
	redactor *redact.Redactor
	seed     maphash.Seed
	total    int64
	done     atomic.Int64

	mu    sync.Mutex
	first map[string]string // by the path of a session's own transcript: where it began
}

// setting asks the engine what it is set to.
func (r *run) setting(ctx context.Context) (mode, profile string) {
	d := r.o.Engine.Evaluate(ctx, tripwires.Call{Tool: "TodoWrite", Input: []byte("{}")}, view.NewMemory().NewReader())
	return d.Mode, d.Profile
}

// files deals with the files at once and hands their results to t in their order, so that the report is the same each time.
func (r *run) files(ctx context.Context, files []transcript.File, t *tally) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	workers := r.o.Workers
	if workers <= 0 {
		workers = min(runtime.GOMAXPROCS(0), 8)
	}
	type job struct {
		file transcript.File
		out  chan *fileResult
	}
	jobs := make(chan job)
	ordered := make(chan job, 2*workers) // bounds how far the workers run ahead
	var wg sync.WaitGroup
	wg.Go(func() {
		defer close(jobs)
		defer close(ordered)
		for _, f := range files {
			j := job{f, make(chan *fileResult, 1)}
			select {
			case ordered <- j:
			case <-ctx.Done():
				return
			}
			select {
			case jobs <- j:
			case <-ctx.Done():
				j.out <- &fileResult{err: ctx.Err()}
				return
			}
		}
	})
	for range workers {
		wg.Go(func() {
			reader := transcript.NewReader(transcript.Options{})
			for j := range jobs {
				j.out <- r.file(ctx, reader, j.file)
			}
		})
	}
	var err error
	for j := range ordered {
		res := <-j.out
		if err == nil && res.err != nil {
			err = res.err
			cancel()
		}
		if err == nil {
			t.take(res)
		}
	}
	wg.Wait()
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// seen is a call of a file, as the tally needs it.
type seen struct {
	key      uint64
	session  string
	day      int32 // since 1970, noDay if the transcript tells no time
	copied   bool  // in a forked session
	tooLarge bool
	verdict  *verdict
	listed   *Call // if it was stopped
}

type fileResult struct {
	calls []seen
	stats transcript.Stats
	err   error
}

// file judges the calls of one transcript. Results are of interest only while a stopped call waits for its own.
func (r *run) file(ctx context.Context, reader *transcript.Reader, f transcript.File) *fileResult {
	res := &fileResult{}
	first := r.firstCwd(reader, f)
	open := map[string][]*Call{}
	var v transcript.Visitor
	result := func(x *transcript.Result) error {
		for _, c := range open[x.ToolUseID] {
			c.Refused, c.RefusedBy = show.Line(x.Refused, 100), show.Line(x.RefusedBy, 100)
		}
		if delete(open, x.ToolUseID); len(open) == 0 {
			v.Result = nil
		}
		return nil
	}
	beyond := int64(0)
	v.Call = func(c *transcript.Call) error {
		if len(res.calls) == maxPerFile {
			beyond++
			return ctx.Err()
		}
		s, ok := r.call(ctx, c, first)
		if !ok {
			return nil
		}
		if s.listed != nil {
			open[c.ToolUseID] = append(open[c.ToolUseID], s.listed)
			v.Result = result
		}
		res.calls = append(res.calls, s)
		return ctx.Err()
	}
	if r.o.Progress != nil {
		v.Advance = func(n int64) { r.o.Progress(r.done.Add(n), r.total) }
	}
	_, res.stats, res.err = reader.ReadFile(ctx, r.tree, f, 0, &v)
	res.stats.Beyond += beyond
	return res
}

// call judges one call; ok is false if it was not asked for.
func (r *run) call(ctx context.Context, c *transcript.Call, first string) (s seen, ok bool) {
	if !c.Time.IsZero() && (c.Time.Before(r.o.From) || !r.o.To.IsZero() && !c.Time.Before(r.o.To)) {
		return s, false
	}
	s = seen{key: r.key(c), session: c.Session, day: r.day(c.Time), copied: c.Origin != ""}
	if c.Oversized {
		s.tooLarge = true
		return s, r.o.Project == "" || within(r.o.Project, c.Cwd)
	}
	v := r.judge.judge(ctx, c.Tool, c.Input, c.Cwd, first)
	if r.o.Project != "" && v.project != r.o.Project && !within(r.o.Project, c.Cwd) {
		return s, false
	}
	s.verdict = v
	if v.stopped() {
		s.listed = &Call{
			Time: c.Time, Session: c.Session, Subagent: c.Subagent, Project: clip(v.project), Cwd: clip(c.Cwd), Tool: c.Tool, ToolUseID: c.ToolUseID,
			Input: bytes.Clone(r.redactor.JSON(c.Input, maxInput).Data), Verdict: v.decision, Rule: v.rule, Floor: v.floor, Reason: v.reason, Today: v.today,
		}
	}
	return s, true
}

// clip bounds a path that is listed, and lets go of the rest.
func clip(p string) string {
	if len(p) <= maxPath {
		return p
	}
	return strings.Clone(p[:maxPath])
}

const noDay = math.MinInt32

// day numbers the days by the person's clock.
func (r *run) day(t time.Time) int32 {
	if t.IsZero() {
		return noDay
	}
	if r.o.Location != nil {
		t = t.In(r.o.Location)
	}
	_, east := t.Zone()
	s := t.Unix() + int64(east)
	day := s / 86400
	if s%86400 < 0 {
		day--
	}
	return int32(day) // of years 0 to 9999
}

// key tells a call from every other one. The id alone does not: some servers count from one in each session.
func (r *run) key(c *transcript.Call) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for _, s := range []string{c.ToolUseID, c.MessageID} {
		_, _ = h.WriteString(s)
		_ = h.WriteByte(0)
	}
	maphash.WriteComparable(&h, c.Time.UnixNano())
	return h.Sum64()
}

// firstCwd returns where a transcript's session began; the look-up of a session with many subagents is made once.
func (r *run) firstCwd(reader *transcript.Reader, f transcript.File) string {
	key := f.Main
	if key == "" {
		key = f.Path
	}
	r.mu.Lock()
	cwd, ok := r.first[key]
	r.mu.Unlock()
	if !ok {
		cwd = reader.FirstCwd(r.tree, f)
		r.mu.Lock()
		r.first[key] = cwd
		r.mu.Unlock()
	}
	return cwd
}

// within reports whether p is dir or below it.
func within(dir, p string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}
