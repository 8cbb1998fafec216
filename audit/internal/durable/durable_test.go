// SPDX-License-Identifier: Apache-2.0

package durable_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/audit/internal/durable"
)

func names(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return strings.Join(out, " ")
}

func content(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAFileIsReplacedAsAWholeAndPrivate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	for _, want := range []string{"one", "two", ""} {
		if err := durable.WriteFile(path, []byte(want)); err != nil {
			t.Fatal(err)
		}
		if got := content(t, path); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if fi, err := os.Stat(path); err != nil || fi.Mode() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	// A link at its place is replaced, not followed; so is what lies under the temporary name.
	target := filepath.Join(dir, "target")
	for _, link := range []string{path, durable.TempName(path)} {
		_ = os.Remove(link) // may not be there
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if err := durable.WriteFile(path, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	if got := names(t, dir); got != "f" {
		t.Errorf("directory holds %q", got)
	}
}

func TestCreateAndPublishNeverReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if err := durable.Create(path, []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := durable.Create(path, []byte("two")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("second create: %v", err)
	}
	if got := content(t, path); got != "one" || names(t, dir) != "f" {
		t.Errorf("content %q, directory %q", got, names(t, dir))
	}
	if err := durable.Rename(path, filepath.Join(dir, "g")); err != nil {
		t.Fatal(err)
	}
	if err := durable.Create(path, nil); err != nil {
		t.Fatal(err)
	}
	if err := durable.Rename(path, filepath.Join(dir, "g")); !errors.Is(err, fs.ErrExist) {
		t.Errorf("rename over a file: %v", err)
	}
}

func TestDirectoriesAreMadePrivateAndOnlyRealOnesCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	deep := filepath.Join(dir, "a", "b", "c")
	for range 2 {
		if err := durable.MkdirAll(deep); err != nil {
			t.Fatal(err)
		}
	}
	for d := deep; d != dir; d = filepath.Dir(d) {
		if fi, err := os.Stat(d); err != nil || fi.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, fi.Mode(), err)
		}
	}
	file, link := filepath.Join(dir, "file"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(deep, link); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{file, link, filepath.Join(file, "x")} {
		if err := durable.MkdirAll(bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestOnlyPreparedFilesAreRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, n := range []string{".new-x", "x", ".newx", "new-x"} {
		if err := os.WriteFile(filepath.Join(dir, n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, ".new-dir"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := durable.RemoveTemps(dir); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); got != ".new-dir .newx new-x x" {
		t.Errorf("left %q", got)
	}
}
