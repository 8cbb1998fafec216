// SPDX-License-Identifier: Apache-2.0

package approval

import (
	"strings"

	"github.com/tripline-sh/tripline/audit/show"
)

// maxText bounds what the model is told, in bytes.
const maxText = 2000

func refuse(card, code, rule, comment string) Ticket {
	return Ticket{Card: card, State: Refused, Code: code, Text: text(card, code, rule, comment)}
}

// text says to the model what was refused, why, and what to do instead.
func text(card, code, rule, comment string) string {
	var b strings.Builder
	b.WriteString("Tripline: this call did not run (" + code)
	if rule != "" {
		b.WriteString(", rule " + show.Line(rule, 128))
	}
	if card != "" {
		b.WriteString(", approval " + show.Line(card, 32))
	}
	b.WriteString("). ")
	switch code {
	case CodeDenied:
		b.WriteString("A person denied it. Do not retry the same call and do not try to reach the same effect by another way; ask the person what to do instead.")
	case CodeConsumed:
		b.WriteString("Its approval was already used: one approval lets a call run once. Do not retry the same call; continue with its result, or ask the person if it must run again.")
	case CodeExpired:
		b.WriteString("Its approval ran out before it was used. Ask the person; if they still want it, the same call opens a new request.")
	case CodeMismatch:
		b.WriteString("It is not the call that was approved. Only the exact call that the person saw may run.")
	case CodeStale:
		b.WriteString("A file that the decision was based on changed after it was approved. Tell the person which files you changed; the same call opens a new request.")
	case CodeBusy:
		b.WriteString("Too many calls wait for approval. Do not retry at once; tell the person that decisions are waiting (auditctl approvals list).")
	case CodePending:
		b.WriteString("It waits for a person's decision (auditctl approvals show " + show.Line(card, 32) + "). Do not retry now; tell the person, and make exactly the same call again after they approved it.")
	case CodeCancelled:
		b.WriteString("Its request was withdrawn. Do not retry unless the person asks for it.")
	case CodeRevoked:
		b.WriteString("Its approval was taken back. Do not retry the same call; ask the person.")
	default:
		b.WriteString("The approval could not be recorded, so nothing may run. Do not retry now; tell the person.")
	}
	if comment != "" {
		b.WriteString(" The person wrote: " + show.Line(comment, 1000))
	}
	return show.Text(b.String(), maxText)
}
