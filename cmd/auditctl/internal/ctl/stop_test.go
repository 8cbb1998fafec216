// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestAFullDiskDoesNotKeepAPersonFromStopping(t *testing.T) {
	t.Parallel()
	for _, full := range []error{syscall.ENOSPC, &os.PathError{Op: "write", Path: "x", Err: syscall.EDQUOT}} {
		path := filepath.Join(t.TempDir(), "stopped")
		if err := leave(path, func(string, []byte) error { return full }); err != nil {
			t.Errorf("%v: %v", full, err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%v: the mark is not there: %v", full, err)
		}
	}
	path := filepath.Join(t.TempDir(), "stopped")
	if err := leave(path, func(string, []byte) error { return syscall.EACCES }); err == nil {
		t.Error("another error is taken for a full disk")
	}
	if err := os.Symlink(filepath.Join(t.TempDir(), "elsewhere"), path); err != nil {
		t.Fatal(err)
	}
	if err := leave(path, func(string, []byte) error { return syscall.ENOSPC }); err == nil {
		t.Error("a link is followed")
	}
}
