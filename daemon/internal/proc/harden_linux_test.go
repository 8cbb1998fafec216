// SPDX-License-Identifier: Apache-2.0

package proc

import (
	"testing"

	"golang.org/x/sys/unix"
)

// Not parallel: it changes the whole process.
func TestHarden(t *testing.T) {
	if err := Harden(); err != nil {
		t.Fatal(err)
	}
	if n, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0); err != nil || n != 0 {
		t.Errorf("dumpable is %d, %v", n, err)
	}
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &r); err != nil || r.Cur != 0 || r.Max != 0 {
		t.Errorf("core limit is %+v, %v", r, err)
	}
}
