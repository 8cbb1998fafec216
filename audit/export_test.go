// SPDX-License-Identifier: Apache-2.0

package audit

// WithFaults returns o with functions called before and after each group is written. An error of theirs is that of the
// commit.
func WithFaults(o Options, before, after func() error) Options {
	o.seam.before, o.seam.after = before, after
	return o
}

// WithoutSync returns o without syncing, which breaks every promise.
func WithoutSync(o Options) Options {
	o.seam.noSync = true
	return o
}
