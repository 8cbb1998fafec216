// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"strings"

	"github.com/tripline-sh/tripline/audit/record"
)

func hasPrefix(s, prefix string) bool { return prefix == "" || strings.HasPrefix(s, prefix) }

func equal(s, want string) bool { return want == "" || s == want }

// under says whether a project is the wanted directory or lies in it.
func under(project, dir string) bool {
	dir = strings.TrimRight(dir, "/")
	if dir == "" || project == dir {
		return true
	}
	return strings.HasPrefix(project, dir+"/")
}

// matchRule knows families: "delete" and "delete." match "delete.project". A rule that matched beside the deciding one counts too.
func matchRule(d record.Decision, want string) bool {
	if want == "" {
		return true
	}
	family := want
	if !strings.Contains(want, ".") {
		family += "."
	}
	for _, id := range append([]string{d.Rule}, d.Matches...) {
		if id == want || strings.HasSuffix(family, ".") && strings.HasPrefix(id, family) {
			return true
		}
	}
	return false
}

// matchRequest tests what the request and its decision tell.
func matchRequest(f record.Filter, r *record.Record, d record.Decision) bool {
	if r.Source == "canary" && !f.Canary && f.Session == "" && f.ID == "" {
		return false // no agent made it
	}
	return equal(r.Tool, f.Tool) && under(r.Project, f.Project) && equal(d.Verdict, f.Verdict) && matchRule(d, f.Rule)
}

// matchCall tests the rest.
func matchCall(f record.Filter, c record.Call) bool {
	if f.Denied || f.Asked || f.Failed {
		denied := f.Denied && (c.Answer == "deny" || c.Outcome == record.Blocked)
		asked := f.Asked && (c.Verdict == "ask" || c.Answer == "ask" || c.Card != "")
		failed := f.Failed && c.Outcome == record.Failed
		if !denied && !asked && !failed {
			return false
		}
	}
	return f.Grep == "" || contains(f.Grep, string(c.Input), c.Reason, c.Tool, c.Error)
}

// contains says whether one of the texts holds want, case aside. JSON text is searched as it is written and, where that
// differs, as it reads.
func contains(want string, texts ...string) bool {
	want = strings.ToLower(want)
	escaped := jsonEscaped(want)
	for _, t := range texts {
		t = strings.ToLower(t)
		if strings.Contains(t, want) || escaped != want && strings.Contains(t, escaped) {
			return true
		}
	}
	return false
}
