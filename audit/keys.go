// SPDX-License-Identifier: Apache-2.0

package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/audit/internal/checkpoint"
	"github.com/tripline-sh/tripline/audit/internal/durable"
	"github.com/tripline-sh/tripline/audit/segment"
)

// Files of KeyDir.
const (
	keyFile    = "log.key"
	pubFile    = "log.pub"
	anchorFile = "last.checkpoint" // a copy of the newest checkpoint, about a second old at most, outside the segments
	lockFile   = "lock"            // in Dir
)

// loadKey reads the signing key, or makes one if dir holds no segments yet. A lost key is not replaced: the new one could
// not vouch for what is there.
func loadKey(keyDir, dir string) (*checkpoint.Key, error) {
	path := filepath.Join(keyDir, keyFile)
	text, err := readSmall(path)
	if errors.Is(err, fs.ErrNotExist) {
		names, lerr := segment.List(dir)
		if lerr != nil {
			return nil, lerr
		}
		if len(names) > 0 {
			return nil, fmt.Errorf("signing key %q is missing but %q holds segments: restore the key, or move the segments away to begin a new log", path, dir)
		}
		var skey string
		if skey, err = checkpoint.GenerateKey(); err != nil {
			return nil, err
		}
		text = []byte(skey + "\n")
		err = durable.WriteFile(path, text)
	}
	if err != nil {
		return nil, err
	}
	key, err := checkpoint.ParseKey(string(text))
	if err != nil {
		return nil, fmt.Errorf("signing key %q: %w", path, err)
	}
	pub := key.Verifier() + "\n"
	if have, err := readSmall(filepath.Join(keyDir, pubFile)); err != nil || string(have) != pub {
		if err := durable.WriteFile(filepath.Join(keyDir, pubFile), []byte(pub)); err != nil {
			return nil, err
		}
	}
	return key, nil
}

// anchor is a checkpoint found outside the segments.
type anchor struct {
	checkpoint.Checkpoint
	name segment.Name
}

// seq returns the sequence number of the last record that the anchor covers, 0 without one.
func (a anchor) seq() uint64 {
	if a.Size == 0 {
		return 0
	}
	return a.name.First + a.Size - 1
}

// opener is what checks a checkpoint's signature.
type opener interface {
	Open([]byte) (checkpoint.Checkpoint, error)
}

// readAnchor reads last.checkpoint. A missing file is no anchor, and so is one that the key did not sign: it says nothing.
func readAnchor(keyDir string, key opener) (anchor, error) {
	msg, err := readSmall(filepath.Join(keyDir, anchorFile))
	if errors.Is(err, fs.ErrNotExist) {
		return anchor{}, nil
	}
	if err != nil {
		return anchor{}, err
	}
	c, err := key.Open(msg)
	if err != nil {
		return anchor{}, nil
	}
	name, ok := segment.ParseName(c.Segment + ".db")
	if !ok {
		return anchor{}, nil
	}
	return anchor{c, name}, nil
}

// keepAnchor writes the newest checkpoint to last.checkpoint a second after it changed, so that its syncs stay out of the way
// of the commits that come together, until stop is closed, and once more then. It returns the error of that last time; what fails before
// is tried again.
func (l *Log) keepAnchor(stop <-chan struct{}) error {
	for {
		select {
		case <-l.dirty:
		case <-stop:
			return l.writeAnchor()
		}
		pause := time.NewTimer(time.Second)
		select {
		case <-pause.C:
			if l.writeAnchor() != nil {
				l.moved()
			}
		case <-stop:
			pause.Stop()
			return l.writeAnchor()
		}
	}
}

func (l *Log) writeAnchor() error {
	l.mu.RLock()
	msg := l.tip.Checkpoint
	l.mu.RUnlock()
	return durable.WriteFile(filepath.Join(l.o.KeyDir, anchorFile), msg)
}

// readSmall reads a regular file of ours, never a link, at most 64 KiB.
func readSmall(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // only read
	if fi, err := f.Stat(); err != nil {
		return nil, err
	} else if !fi.Mode().IsRegular() {
		return nil, fmt.Errorf("%q is no regular file", path)
	}
	return io.ReadAll(io.LimitReader(f, 64<<10))
}

// lockDir takes the lock of a log's directory, which is free again when the file is closed or the process ends.
func lockDir(ctx context.Context, dir string) (*os.File, error) {
	path := filepath.Join(dir, lockFile)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW|syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("audit: lock: %w", err)
	}
	deadline := time.NewTimer(lockPatience)
	defer deadline.Stop()
	retry := time.NewTicker(25 * time.Millisecond)
	defer retry.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(fmt.Errorf("audit: lock %q: %w", path, err), f.Close())
		}
		select {
		case <-retry.C:
		case <-deadline.C:
			return nil, errors.Join(fmt.Errorf("audit: %q: %w", dir, ErrLocked), f.Close())
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("audit: %q: %w", dir, ErrLocked), ctx.Err(), f.Close())
		}
	}
}
