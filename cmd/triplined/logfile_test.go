// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestTheLogFileIsPrivateAndAppendedTo(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "d.log")
	for _, line := range []string{"one\n", "two\n"} {
		f, err := openLog(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(line); err != nil {
			t.Fatal(err)
		}
		f.Close()
		if err := os.Chmod(path, 0o644); err != nil { // the next start mends it
			t.Fatal(err)
		}
	}
	f, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	fi, err := os.Stat(path)
	if err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", fi.Mode(), err)
	}
	if di, err := os.Stat(filepath.Dir(path)); err != nil || di.Mode().Perm() != 0o700 {
		t.Errorf("directory's mode %v, %v", di.Mode(), err)
	}
	if b, _ := os.ReadFile(path); string(b) != "one\ntwo\n" {
		t.Errorf("holds %q", b)
	}
}

func TestALargeLogFileIsMovedOnceByManyStarts(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "d.log")
	old := strings.Repeat("x", maxLog+1)
	if err := os.WriteFile(path, []byte(old), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path+".1", []byte("older"), 0o600); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			f, err := openLog(path)
			if err != nil {
				t.Error(err)
				return
			}
			defer f.Close()
			fmt.Fprintf(f, "<%d>", i)
		})
	}
	wg.Wait()
	moved, err := os.ReadFile(path + ".1")
	if err != nil || !bytes.HasPrefix(moved, []byte(old)) {
		t.Fatalf("%s.1 holds %d bytes, not the old file, %v", path, len(moved), err)
	}
	now, err := os.ReadFile(path)
	if err != nil || len(now) > maxLog {
		t.Errorf("the new file has %d bytes, %v", len(now), err)
	}
	for i := range 20 { // whoever wrote to the old file while it was moved lost nothing
		if mark := fmt.Sprintf("<%d>", i); !strings.Contains(string(now)+string(moved[len(old):]), mark) {
			t.Errorf("%s is lost", mark)
		}
	}
}

func TestALogFileThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	link, fifo, file := filepath.Join(dir, "link"), filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	if err := os.Symlink("target", link); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{link, fifo, dir, filepath.Join(file, "d.log"), "/dev/null"} {
		if f, err := openLog(path); err == nil {
			f.Close()
			t.Errorf("%s was opened", path)
		}
	}
	if _, err := os.Lstat(filepath.Join(dir, "target")); err == nil {
		t.Error("a link was followed")
	}
}

func TestADaemonThatAHookStartsHeedsTheMarker(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "tl")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	args := []string{"--on-demand", "--metrics-listen=off", "--home=" + dir}
	run1 := filepath.Join(dir, ".local", "state", "tripline", "run")
	if err := os.MkdirAll(run1, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(run1, "stopped"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	if code := run(t.Context(), args, func(string) string { return "" }, nil, &stdout, &stderr); code != 0 || stdout.Len()+stderr.Len() != 0 {
		t.Errorf("exit %d, stdout %q, stderr %q", code, stdout.String(), stderr.String())
	}
	log, err := os.ReadFile(filepath.Join(dir, ".local", "state", "tripline", "triplined.log"))
	if err != nil || !strings.Contains(string(log), "a person stopped the daemon") {
		t.Errorf("the log says %q, %v", log, err)
	}
	if left, _ := filepath.Glob(filepath.Join(run1, "*.sock")); len(left) != 0 {
		t.Errorf("sockets: %q", left)
	}
}

func TestAStandardErrorThatIsAPipeIsLetGo(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log, err := openLog(filepath.Join(dir, "d.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if _, err := w.WriteString("early\n"); err != nil {
		t.Fatal(err)
	}
	if err := letGo(w, log); err != nil {
		t.Fatal(err)
	}
	if _, err := w.WriteString("late\n"); err != nil {
		t.Fatal(err)
	}
	if heard, err := io.ReadAll(r); err != nil || string(heard) != "early\n" { // it ends: nobody can write to it any more
		t.Errorf("the reader heard %q, %v", heard, err)
	}
	if b, err := os.ReadFile(log.Name()); err != nil || string(b) != "late\n" {
		t.Errorf("the log holds %q, %v", b, err)
	}
	file, err := os.Create(filepath.Join(dir, "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for _, to := range []io.Writer{file, io.Discard} {
		if err := letGo(to, log); err != nil {
			t.Error(err)
		}
		fmt.Fprint(to, "x")
	}
	if b, err := os.ReadFile(file.Name()); err != nil || string(b) != "x" {
		t.Errorf("a file holds %q, %v", b, err)
	}
}
