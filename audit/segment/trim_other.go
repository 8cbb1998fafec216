// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package segment

// Trim does nothing here.
func (s *Segment) Trim() {}
