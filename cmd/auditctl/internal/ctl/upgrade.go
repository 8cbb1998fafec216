// SPDX-License-Identifier: Apache-2.0

package ctl

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/google/renameio/v2"

	"github.com/tripline-sh/tripline/audit/record"
	"github.com/tripline-sh/tripline/audit/show"
	"github.com/tripline-sh/tripline/daemon/config"
	"github.com/tripline-sh/tripline/daemon/control"
)

// maxHookProgram is the largest program that is taken for a hook: the daemon reads no larger one.
const maxHookProgram = 32 << 20

// upgradeHook gives the hook program beside this one the bytes of the file at from. A running daemon is told first, so that it is on
// record who did it, and no alarm. In a shell of an agent, whose word counts for nothing, the daemon is not told: it raises the alarm.
func (a *app) upgradeHook(ctx context.Context, p config.Places, from string) error {
	to := filepath.Join(filepath.Dir(a.Exe), "tripline-hook")
	program, err := readProgram(from)
	if err != nil {
		return failf("nothing was replaced", "%s is no hook program: %v", show.Line(from, 500), err)
	}
	switch old, err := readProgram(to); {
	case err == nil && bytes.Equal(old, program):
		return nil
	case errors.Is(err, fs.ErrNotExist): // a first one, which nobody watches
	default:
		a.announceHook(ctx, p, to, program)
	}
	// a running program cannot be written to, but its name can be given to another file
	if err := renameio.WriteFile(to, program, 0o755, renameio.IgnoreUmask()); err != nil {
		return failf("", "the hook program cannot be replaced: %v", err)
	}
	return nil
}

// announceHook tells a running daemon, if a person stands behind it. The upgrade goes on without that: it is an alarm then.
func (a *app) announceHook(ctx context.Context, p config.Places, path string, program []byte) {
	if err := a.needPerson("telling the daemon of a new hook program"); err != nil {
		fmt.Fprintf(a.Err, "warning: %v: the daemon may record %s\n", err, record.TamperBinary)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, announceTime)
	defer cancel()
	sum := sha256.Sum256(program)
	_, err := (&control.Client{Socket: p.ControlSocket}).Announce(ctx, control.AnnounceRequest{
		Path: path, SHA256: hex.EncodeToString(sum[:]), Action: "upgrade", Agent: "claude", Proof: a.proof(),
	})
	if err != nil && !errors.Is(err, control.ErrUnreachable) {
		// one of a version that knows no upgrades, for example
		fmt.Fprintf(a.Err, "note: the daemon that ran took no word of the new hook program and may have recorded %s: %s\n", record.TamperBinary, show.Line(err.Error(), 500))
	}
}

// readProgram reads a regular file that could be run.
func readProgram(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch fi, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !fi.Mode().IsRegular():
		return nil, errors.New("not a regular file")
	case fi.Mode()&0o111 == 0:
		return nil, fs.ErrPermission
	}
	b, err := io.ReadAll(io.LimitReader(f, maxHookProgram+1))
	if err == nil && len(b) > maxHookProgram {
		err = errors.New("too large")
	}
	return b, err
}
