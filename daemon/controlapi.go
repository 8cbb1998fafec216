// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/approval"
	"github.com/tripline-sh/tripline/daemon/control"
)

func (d *Daemon) getCalls(w http.ResponseWriter, r *http.Request) error {
	f, err := control.ParseCallsQuery(r.URL.Query())
	if err != nil {
		return badRequest(err, "")
	}
	s := newStream(w)
	return s.end(d.log.Calls(r.Context(), f, func(c record.Call) error { return s.line(c) }))
}

func (d *Daemon) getRecords(w http.ResponseWriter, r *http.Request) error {
	prefix := r.URL.Query().Get("call")
	if prefix == "" {
		return badRequest(errors.New("which call? the query key call is missing"), "")
	}
	s := newStream(w)
	return s.end(d.log.Records(r.Context(), prefix, func(rec record.Record, bodies map[string][]byte) error {
		return s.line(control.NewRecordView(&rec, bodies))
	}))
}

func (d *Daemon) getEvents(w http.ResponseWriter, r *http.Request) error {
	from, to, kind, err := control.ParseEventsQuery(r.URL.Query())
	if err != nil {
		return badRequest(err, "")
	}
	s := newStream(w)
	return s.end(d.log.Scan(r.Context(), audit.Range{From: from, To: to}, func(rec *record.Record, load audit.BodiesFunc) error {
		if !control.EventKind(rec.Kind, kind) {
			return nil
		}
		bodies, err := load()
		if err != nil {
			return err
		}
		return s.line(control.NewRecordView(rec, bodies))
	}))
}

func (d *Daemon) getSessions(w http.ResponseWriter, r *http.Request) error {
	f, err := control.ParseCallsQuery(r.URL.Query())
	if err != nil {
		return badRequest(err, "")
	}
	s := newStream(w)
	return s.end(d.log.Sessions(r.Context(), f.From, f.To, func(v record.Session) error { return s.line(v) }))
}

func (d *Daemon) postVerify(w http.ResponseWriter, r *http.Request) error {
	var req control.VerifyRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	anchors := make([]audit.Anchor, len(req.Anchors))
	for i, a := range req.Anchors {
		anchors[i] = audit.Anchor{Seq: a.Seq, Root: a.Root}
	}
	if req.Key != "" && req.Key != d.log.VerifierKey() {
		d.m.VerifyFailed()
		v := record.Verification{Outcome: "KEY", Size: d.log.Size(), Root: d.log.Root(),
			Detail: "the log is signed with another key than the one that was given"}
		d.noteVerified(r, v)
		return writeJSON(w, v)
	}
	v, err := d.log.Verify(r.Context(), anchors...)
	if r.Context().Err() == nil && (err != nil || v.Outcome != outcomeOK) {
		d.m.VerifyFailed()
	}
	if err != nil {
		return err
	}
	d.noteVerified(r, v)
	return writeJSON(w, v)
}

func (d *Daemon) getApprovals(w http.ResponseWriter, r *http.Request) error {
	out := []control.Approval{}
	for _, c := range d.gate.List(r.URL.Query().Get("all") == "1") {
		out = append(out, approvalView(c))
	}
	return writeJSON(w, out)
}

func (d *Daemon) getApproval(w http.ResponseWriter, r *http.Request) error {
	c, err := d.gate.Show(r.PathValue("id"))
	if err != nil {
		return err
	}
	return writeJSON(w, approvalView(c))
}

func (d *Daemon) postDecide(w http.ResponseWriter, r *http.Request) error {
	var req control.DecideRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := checkProof(req.Proof); err != nil {
		return err
	}
	if req.Decision != "approve" && req.Decision != "deny" {
		return badRequest(errors.New(`the decision must be "approve" or "deny"`), "")
	}
	c, err := d.gate.Decide(r.Context(), r.PathValue("id"), req.Decision == "approve", approval.Decision{
		By:      caller(r),
		Reason:  d.red.String(clip(req.Reason, maxPathText)),
		Proof:   "L0",
		Surface: "control",
	})
	if err != nil {
		return err
	}
	return writeJSON(w, approvalView(c))
}

// approvalView is a card as it goes over the wire.
func approvalView(c approval.Card) control.Approval {
	a := control.Approval{
		ID: c.ID, State: string(c.State), Tool: c.Tool, Input: c.Input, Rule: c.Rule, Reason: c.Reason, Effects: c.Effects,
		Agent: c.Agent, Session: c.Session, Subagent: c.Subagent, Cwd: c.Cwd, Project: c.Project,
		Requested: c.Requested, Expires: c.Expires(), Waiting: c.Waiting, DecidedBy: c.DecidedBy, Comment: c.Comment,
		NotBound: c.NotBound, Recent: c.Recent, Call: c.Call,
	}
	if !c.DecidedAt.IsZero() {
		a.DecidedAt = &c.DecidedAt
	}
	if c.Proof != "" {
		a.Proof = c.Proof + " (weak: same user)"
	}
	if a.Effects == nil {
		a.Effects = []string{}
	}
	if a.NotBound == nil {
		a.NotBound = []string{}
	}
	return a
}

func (d *Daemon) postReload(w http.ResponseWriter, r *http.Request) error {
	var req control.ReloadRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := checkProof(req.Proof); err != nil {
		return err
	}
	p, diff, err := d.rules.person(r.Context(), req.DryRun, req.Expect)
	if errors.Is(err, errUnexpected) {
		return &control.ResponseError{Status: http.StatusConflict, Message: err.Error(), Hint: "auditctl rules reload --dry-run"}
	}
	if err != nil {
		return &control.ResponseError{Status: http.StatusUnprocessableEntity, Message: err.Error(),
			Hint: "the rules in force stay as they are; correct the file and reload again"}
	}
	return writeJSON(w, control.ReloadResponse{
		Changed:   !diff.empty(),
		RuleSet:   p.set.Hash(),
		Rules:     p.set.Len(),
		Tightened: append([]string{}, diff.tightened...),
		Loosened:  append([]string{}, diff.loosened...),
		Restart:   diff.restart,
	})
}

func (d *Daemon) postAnnounce(w http.ResponseWriter, r *http.Request) error {
	var req control.AnnounceRequest
	if err := readJSON(r, &req); err != nil {
		return err
	}
	if err := checkProof(req.Proof); err != nil {
		return err
	}
	if !filepath.IsAbs(req.Path) || len(req.Path) > maxPathText {
		return badRequest(errors.New("the path must be absolute"), "")
	}
	if b, err := hex.DecodeString(req.SHA256); req.SHA256 != hashAbsent && (err != nil || len(b) != 32) {
		return badRequest(errors.New("sha256 must be 64 hex digits, or absent"), "")
	}
	switch {
	case req.Action != actionInstall && req.Action != actionUninstall && req.Action != actionUpgrade:
		return badRequest(errors.New("the action must be install, uninstall or upgrade"), "")
	case req.Action == actionUpgrade && filepath.Base(req.Path) != hookProgram:
		return badRequest(fmt.Errorf("only %s is upgraded", hookProgram), "")
	case req.Action == actionUpgrade && req.SHA256 == hashAbsent:
		return badRequest(errors.New("an upgrade leaves a program in place"), "")
	}
	detail := map[string]string{"announced": "1", "path": d.path(req.Path), "sha256": req.SHA256, "action": req.Action, "by": d.name(caller(r))}
	if detail["path"] != req.Path { // part of it looks like a secret; whoever knows the path can still tell that it is this one
		sum := sha256.Sum256([]byte(req.Path))
		detail["path_sha256"] = hex.EncodeToString(sum[:])
	}
	receipt, err := d.log.Append(r.Context(), &audit.Entry{Record: record.Record{
		Kind: record.ConfigSettings, Agent: d.name(req.Agent), Source: "control", Who: "person", WhoBasis: "claimed", Detail: detail,
	}})
	if err != nil {
		return err
	}
	d.settings.announce(req.Path, req.SHA256, req.Action, d.now())
	if req.Action == actionUpgrade {
		d.hookWatch.upgraded(filepath.Clean(req.Path))
	} else {
		d.hookWatch.add(filepath.Clean(req.Path))
	}
	return writeJSON(w, control.AnnounceResponse{Seq: receipt.Seq})
}
