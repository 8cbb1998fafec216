// SPDX-License-Identifier: Apache-2.0

package control

import (
	"context"
	"net/http"
)

// RulesResponse is what GET /v1/rules returns: the files of the rules in force. The built-in packs are not among them; a
// daemon of another version has others.
type RulesResponse struct {
	RuleSet string      `json:"rule_set"` // hash of the compiled set
	Mode    string      `json:"mode"`
	Profile string      `json:"profile"`
	Files   []RulesFile `json:"files"`
}

// RulesFile is one rules file as it is in force. Several generations of one path may be in force together, until a person
// reloads.
type RulesFile struct {
	Path       string `json:"path"`
	Layer      string `json:"layer"`
	Data       []byte `json:"data"`
	Generation int    `json:"generation,omitempty"`
}

// Rules returns the rules in force.
func (c *Client) Rules(ctx context.Context) (RulesResponse, error) {
	var r RulesResponse
	return r, c.call(ctx, http.MethodGet, "/v1/rules", nil, nil, &r)
}
