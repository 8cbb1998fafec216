// SPDX-License-Identifier: Apache-2.0

// Package all lists the agents that Tripline speaks to.
package all

import (
	"github.com/tripline-sh/tripline/hooks/agents"
	"github.com/tripline-sh/tripline/hooks/agents/claude"
)

// All returns every adapter. The list is new at each call.
func All() []agents.Adapter {
	return []agents.Adapter{claude.Adapter{}}
}
