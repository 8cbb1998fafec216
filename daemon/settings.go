// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

const (
	settingsPrefix = "settings/" // in the log's state
	ruleSettings   = "settings.change"
	rulePolicy     = "settings.policy"

	maxSettingsFile  = 1 << 20
	maxSettingsFiles = 256
	maxAnnounced     = 64
	announcedFor     = 10 * time.Minute

	hashAbsent = "absent"

	actionInstall, actionUninstall = "install", "uninstall" // of hooks in a settings file
	actionUpgrade                  = "upgrade"              // of the hook program
)

// settingsBook knows the settings files of agents: the bytes that were last accepted, and what a person announced. The
// bytes are in memory only; their hash is in the log's state, so that they can be taken up again after a restart if they
// are still there. Safe for concurrent use.
type settingsBook struct {
	clean func(string) string // redacts a path; one that is not clean is not stored

	mu        sync.Mutex
	files     map[string]*settingsFile
	clock     uint64
	gone      []string // keys of the state whose files were forgotten and that are to be taken off it
	announced []announcement
}

// settingsFile is one known file. Base is what its next change is compared with.
type settingsFile struct {
	Path    string `json:"path"`
	Hash    string `json:"sha256"`            // of the accepted bytes, or "absent"
	Blocked string `json:"blocked,omitempty"` // hash of the bytes that were refused and may still be there
	base    []byte
	hasBase bool
	used    uint64 // for forgetting the one that was not asked for longest
}

// announcement is a person's word about bytes to come.
type announcement struct {
	path, hash string
	action     string // install, uninstall or upgrade
	until      time.Time
}

// settingsChange is the judgement of one change.
type settingsChange struct {
	verdict event.Verdict
	kind    record.Kind
	path    string
	hash    string // of the file now
	data    []byte
	why     string
	letGo   bool // a person took our hooks out of the file: the session calls them no more
}

// newSettingsBook takes up the files that the log's state knows and that are still as they were.
func newSettingsBook(state map[string][]byte, r view.Reader, clean func(string) string) *settingsBook {
	b := &settingsBook{clean: clean, files: make(map[string]*settingsFile)}
	for key, v := range state {
		var f settingsFile
		if json.Unmarshal(v, &f) != nil || f.Path == "" || len(b.files) >= maxSettingsFiles {
			b.gone = append(b.gone, key)
			continue
		}
		if data, hash, err := readSettingsFile(r, f.Path); err == nil && hash == f.Hash {
			f.base, f.hasBase = data, true
		}
		b.files[f.Path] = &f
	}
	return b
}

// readSettingsFile returns a file's bytes and their hash. An absent file is nil and "absent".
func readSettingsFile(r view.Reader, path string) (data []byte, hash string, err error) {
	data, err = r.ReadFile(path, maxSettingsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, hashAbsent, nil
	}
	if err != nil {
		return nil, "", err
	}
	if data == nil {
		data = []byte{}
	}
	sum := sha256.Sum256(data)
	return data, hex.EncodeToString(sum[:]), nil
}

// judge says whether a change of a settings file may take effect.
func (b *settingsBook) judge(ev *event.Event, r view.Reader, now time.Time, harmless tripwires.SettingsJudge) *settingsChange {
	c := &settingsChange{kind: record.TamperSettings, path: ev.FilePath}
	if ev.Source == "policy_settings" {
		c.kind, c.why = record.TamperPolicy, "managed settings changed, which no hook can block"
		c.verdict = event.Verdict{Decision: event.Pass, Rule: rulePolicy}
		return c
	}
	block := func(why string) *settingsChange {
		c.why = why
		c.verdict = event.Verdict{Decision: event.Deny, Rule: ruleSettings, Reason: "Tripline blocked this change of the agent's settings: " + why +
			" (rule " + ruleSettings + "). Put the file back as it was, or let the person make the change with auditctl. Do not retry the same change."}
		return c
	}
	if !filepath.IsAbs(ev.FilePath) || harmless == nil {
		return block("the event does not say which file changed")
	}
	c.path = filepath.Clean(ev.FilePath)
	data, hash, err := readSettingsFile(r, c.path)
	if err != nil {
		return block("the file cannot be read")
	}
	c.data, c.hash = data, hash
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.files[c.path]
	pass := func(why string) *settingsChange {
		c.kind, c.why, c.verdict = record.ConfigSettings, why, event.Verdict{Decision: event.Pass}
		return c
	}
	action, announced := b.action(c.path, hash, now)
	switch {
	case announced:
		c.letGo = action == actionUninstall
		return pass("announced by a person")
	case f != nil && f.Hash == hash:
		return pass("the file is as it was accepted")
	case f == nil || !f.hasBase:
		return block("what the file held before is not known")
	}
	old := f.base
	if old == nil { // known to have been absent, which is not the same as unknown
		old = []byte{}
	}
	ok, why := harmless(c.path, old, data)
	if !ok {
		return block(why)
	}
	return pass("changes nothing that matters to hooks")
}

// plan returns the state to be stored for a judgement, and what takes it over once that is durable. A file that there is
// no room for is not stored either: its changes stay refused.
func (b *settingsBook) plan(c *settingsChange) (key string, value []byte, apply func()) {
	if c.kind == record.TamperPolicy || c.path == "" {
		return "", nil, func() {}
	}
	next := settingsFile{Path: c.path, Hash: c.hash, base: c.data, hasBase: true}
	if c.verdict.Decision != event.Pass {
		b.mu.Lock()
		if f := b.files[c.path]; f != nil {
			next = *f
		} else {
			next = settingsFile{Path: c.path}
		}
		b.mu.Unlock()
		next.Blocked = c.hash
		if next.Blocked == "" {
			next.Blocked = "unreadable"
		}
	}
	b.mu.Lock()
	known := b.file(c.path) != nil
	b.mu.Unlock()
	if !known {
		return "", nil, func() {}
	}
	key, value = b.stored(&next)
	return key, value, func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		if f := b.file(c.path); f != nil {
			next.used = f.used
			*f = next
		}
	}
}

// adopt takes a file as it is at the start of a session for the base of later changes, unless a change of it was
// refused: what was refused never becomes the measure. It returns the state to be stored; nil for none.
func (b *settingsBook) adopt(path string, data []byte, hash string) (key string, value []byte, changed bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.file(path)
	if f == nil || f.Blocked != "" {
		return "", nil, false
	}
	if f.hasBase && f.Hash == hash {
		return "", nil, false
	}
	changed = f.Hash != "" && f.Hash != hash
	f.Hash, f.base, f.hasBase = hash, data, true
	key, value = b.stored(f)
	return key, value, changed
}

// file returns the entry of a path. A full book forgets the file that was not asked for longest: its next change finds no
// base, and is refused. One whose change was refused is kept, so that it does not become the measure after all; nil if
// there are only such. The caller holds mu.
func (b *settingsBook) file(path string) *settingsFile {
	b.clock++
	f := b.files[path]
	if f == nil {
		if len(b.files) >= maxSettingsFiles && !b.forget() {
			return nil
		}
		f = &settingsFile{Path: path}
		b.files[path] = f
	}
	f.used = b.clock
	return f
}

// forget makes room for one file. The caller holds mu.
func (b *settingsBook) forget() bool {
	var idle *settingsFile
	for _, f := range b.files {
		if f.Blocked == "" && (idle == nil || f.used < idle.used) {
			idle = f
		}
	}
	if idle == nil {
		return false
	}
	delete(b.files, idle.Path)
	if len(b.gone) < maxSettingsFiles {
		b.gone = append(b.gone, settingsPrefix+pathKey(idle.Path))
	}
	return true
}

// forgotten takes files that were forgotten off the state. A path that came back since has a later operation of its own.
func (b *settingsBook) forgotten() (ops []audit.StateOp) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, key := range b.gone {
		ops = append(ops, audit.StateOp{Key: key})
	}
	b.gone = nil
	return ops
}

// stored is a file's state; "" if its path must not be at rest. Such a file is forgotten at a restart, which blocks.
func (b *settingsBook) stored(f *settingsFile) (key string, value []byte) {
	if b.clean(f.Path) != f.Path {
		return "", nil
	}
	v, err := json.Marshal(f)
	if err != nil { // strings only: cannot happen
		return "", nil
	}
	return settingsPrefix + pathKey(f.Path), v
}

// pathKey stands for a path in keys of the state.
func pathKey(path string) string {
	sum := sha256.Sum256([]byte(path))
	return hex.EncodeToString(sum[:16])
}

// announce notes bytes that a person is about to write.
func (b *settingsBook) announce(path, hash, action string, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.announced = slices.DeleteFunc(b.announced, func(a announcement) bool { return now.After(a.until) })
	if len(b.announced) >= maxAnnounced {
		b.announced = b.announced[1:]
	}
	b.announced = append(b.announced, announcement{path: filepath.Clean(path), hash: hash, action: action, until: now.Add(announcedFor)})
}

// replay takes up an announcement that was made before this start: what a person is about to write may be written after it.
func (b *settingsBook) replay(r *record.Record, now time.Time) {
	d := r.Detail
	if r.Kind != record.ConfigSettings || d["announced"] != "1" || d["path_sha256"] != "" || r.Time.After(now) || now.After(r.Time.Add(announcedFor)) {
		return
	}
	b.announce(d["path"], d["sha256"], d["action"], r.Time)
}

// action returns what a person announced these bytes for this file to be; false if nobody did. The newest word counts. The
// caller holds mu.
func (b *settingsBook) action(path, hash string, now time.Time) (string, bool) {
	for _, a := range slices.Backward(b.announced) {
		if a.path == path && a.hash == hash && now.Before(a.until) {
			return a.action, true
		}
	}
	return "", false
}

// isUpgrade reports whether a person announced these bytes for this program.
func (b *settingsBook) isUpgrade(path, hash string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	action, ok := b.action(filepath.Clean(path), hash, now)
	return ok && action == actionUpgrade
}

// isAnnounced reports whether a person announced these bytes for this file.
func (b *settingsBook) isAnnounced(path, hash string, now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, ok := b.action(path, hash, now)
	return ok
}

// announcedHashes returns what is announced now.
func (b *settingsBook) announcedHashes(now time.Time) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []string
	for _, a := range b.announced {
		if now.Before(a.until) {
			out = append(out, a.hash)
		}
	}
	return out
}
