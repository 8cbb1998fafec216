// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

// enrich adds what the event itself does not say: who connected, what the session did before, and the call as the rules
// see it.
func (d *Daemon) enrich(x *exchange) {
	x.peer = peerRecord(x.req)
	x.firstCwd, x.project = d.sessions.seen(x.sess, x.ev.Cwd)
	d.sessions.note(x.sess, x.at, x.kind == event.KindSessionStart)
	if !x.late {
		x.token = d.token.check(x.req.h.Token)
	}
	if x.token != "" {
		x.note("token", x.token)
		d.warnToken(x)
	}
	if x.kind != event.KindPreTool && x.kind != event.KindSkillShell {
		return
	}
	x.call = tripwires.Call{
		Agent:     x.ev.Agent,
		Session:   x.ev.Session,
		Subagent:  x.ev.Subagent,
		Tool:      x.ev.Tool,
		Input:     x.ev.Input,
		MCPServer: x.ev.MCPServer,
		MCPSource: x.ev.MCPSource,
		Cwd:       x.ev.Cwd,
		FirstCwd:  x.firstCwd,
		Homes:     d.homes,
		Announced: d.settings.announcedHashes(d.now()),
	}
}

// peerRecord says who connected: what the kernel tells, and the agent process as a claim.
func peerRecord(r *request) *record.Peer {
	if r.peer == nil {
		return nil
	}
	p := &record.Peer{UID: r.peer.UID, GID: r.peer.GID, PID: r.peer.PID}
	if self, err := proc.Lookup(r.peer.PID); err == nil {
		p.Exe = self.Exe
	}
	if a, ok := proc.Agent(r.peer.PID); ok {
		p.AgentPID, p.AgentExe = a.PID, a.Exe
	}
	if r.peer.Gone() { // then the number may have been another process all along
		p.Exe, p.AgentPID, p.AgentExe = "", 0, ""
	}
	p.Exe, p.AgentExe = clip(p.Exe, maxPathText), clip(p.AgentExe, maxPathText)
	return p
}

// inputMAC is the keyed hash that joins records by input. The key is kept apart from the log, so that the log does not
// help to guess an input that was redacted.
func (d *Daemon) inputMAC(canonical []byte) string {
	m := hmac.New(sha256.New, d.joinKey)
	m.Write(canonical)
	return hex.EncodeToString(m.Sum(nil)[:16])
}

// warnToken records a session's first event with a bad install token. The verdict does not depend on it.
func (d *Daemon) warnToken(x *exchange) {
	if !d.sessions.warnToken(x.sess) {
		return
	}
	r := d.baseRecord(x)
	r.Kind = record.TamperToken
	d.appendLater(d.workCtx, &audit.Entry{Record: r})
}
