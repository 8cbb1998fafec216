// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/tripline-sh/tripline/audit"
	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/daemon/internal/proc"
	"github.com/tripline-sh/tripline/hooks/event"
	"github.com/tripline-sh/tripline/tripwires"
)

// enrich adds what the event itself does not say: who connected, what the session did before, and the call as the rules
// see it.
func (d *Daemon) enrich(x *exchange) {
	x.peer, x.agentProc = peerRecord(x.req)
	if x.canary {
		x.firstCwd = x.ev.Cwd
	} else {
		d.meet(x)
	}
	if !x.late {
		x.token = d.token.check(x.req.h.Token)
	}
	if x.token != "" {
		x.note("token", x.token)
		if !x.canary {
			d.warnToken(x)
		}
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

// meet puts an event to its session.
func (d *Daemon) meet(x *exchange) {
	x.firstCwd, x.project = d.sessions.seen(x.sess, x.ev.Cwd)
	v := sighting{at: x.at, cwd: d.path(x.ev.Cwd), agent: x.agentProc, start: x.kind == event.KindSessionStart}
	if !x.late {
		v.hook = time.Unix(0, x.req.h.Started)
	}
	d.sessions.note(x.sess, v)
	d.heard(x.req.h.Agent, x.at)
}

// peerRecord says who connected: what the kernel tells, and the agent process as a claim.
func peerRecord(r *request) (*record.Peer, proc.Process) {
	if r.peer == nil {
		return nil, proc.Process{}
	}
	p := &record.Peer{UID: r.peer.UID, GID: r.peer.GID, PID: r.peer.PID}
	if self, err := proc.Lookup(r.peer.PID); err == nil {
		p.Exe = self.Exe
	}
	agent, _ := proc.Agent(r.peer.PID)
	if r.peer.Gone() { // then the number may have been another process all along
		p.Exe, agent = "", proc.Process{}
	}
	p.Exe, p.AgentPID, p.AgentExe = clip(p.Exe, maxPathText), agent.PID, clip(agent.Exe, maxPathText)
	return p, agent
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
