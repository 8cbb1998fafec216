// SPDX-License-Identifier: Apache-2.0

package disk

import (
	"path/filepath"
	"testing"
)

func TestADirectoryIsOnSomeFileSystem(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	u, err := Of(dir)
	if err != nil {
		t.Fatal(err)
	}
	if u.Free < 0 || u.Total < u.Free || u.Name == "" {
		t.Errorf("usage %+v", u)
	}
	if u, err := Of(filepath.Join(dir, "none")); err == nil || u != (Usage{}) {
		t.Errorf("a place that is not there: %+v, %v", u, err)
	}
}

func TestSizesBeyondALongAreTheLargestThatFits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		blocks, of uint64
		want       int64
	}{{0, 0, 0}, {3, 4096, 12288}, {1 << 63, 1, 1<<63 - 1}, {1 << 60, 4096, 1<<63 - 1}, {5, 0, 0}} {
		if got := size(tt.blocks, tt.of); got != tt.want {
			t.Errorf("size(%d, %d) = %d, want %d", tt.blocks, tt.of, got, tt.want)
		}
	}
}
