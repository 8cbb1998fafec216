// SPDX-License-Identifier: Apache-2.0

package daemon

import (
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/tripline-sh/tripline/hooks/wire"
)

// installToken knows the token that install wrote into the hook entries. It follows the file. Safe for concurrent use.
type installToken struct {
	path string

	mu    sync.Mutex
	stamp stamp
	token string // "" while there is no file
}

// stamp tells whether a file was changed.
type stamp struct {
	size  int64
	mtime time.Time
	ino   uint64
}

// check returns what is wrong with an event's token: "missing", "unknown", or "" if nothing is or no token is installed.
func (t *installToken) check(token string) string {
	want := t.current()
	switch {
	case want == "":
		return ""
	case token == "":
		return "missing"
	}
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(want))
	if subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return "unknown"
	}
	return ""
}

// current returns the installed token. A file that cannot be read keeps the last one.
func (t *installToken) current() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	fi, err := os.Lstat(t.path)
	if os.IsNotExist(err) {
		t.token, t.stamp = "", stamp{}
		return ""
	}
	if err != nil || !fi.Mode().IsRegular() {
		return t.token
	}
	now := stamp{size: fi.Size(), mtime: fi.ModTime()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		now.ino = st.Ino
	}
	if now == t.stamp {
		return t.token
	}
	f, err := os.OpenFile(t.path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return t.token
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, 4*wire.MaxToken))
	if err != nil {
		return t.token
	}
	t.token, t.stamp = strings.TrimSpace(string(b)), now
	return t.token
}
