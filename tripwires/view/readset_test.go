// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestTheReadSetHoldsWhatADecisionDependedOn(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	m.AddFile("/p/run.sh", []byte("echo"))
	m.AddLink("/p/l", "run.sh")
	r := m.NewReader()
	for range 2 { // the second time adds nothing
		_, _ = r.ReadFile("/p/l", 99)
		_, _ = r.Lstat("/p/none")
		_, _ = r.Quiet().ReadFile("/p/run.sh", 99)
	}
	_, _ = r.Quiet().Lstat("/q")
	var got []string
	for _, e := range r.ReadSet() {
		got = append(got, e.Path+" "+strings.SplitN(e.Hash, ":", 2)[0])
	}
	want := []string{"/p dir", "/p/l link", "/p/run.sh " + contentHash([]byte("echo")), "/p/none absent"}
	if !slices.Equal(got, want) {
		t.Errorf("read set %q; want %q", got, want)
	}
}

func TestRecheckTellsWhatChanged(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		want   []string
	}{
		{"nothing", func(*testing.T, string) {}, nil},
		{"the script's content", func(t *testing.T, d string) { put(t, d+"/run.sh", "ECHO") }, []string{"/run.sh"}},
		{"the script grew", func(t *testing.T, d string) { put(t, d+"/run.sh", "echo echo") }, []string{"/run.sh"}},
		{"the same content written anew", func(t *testing.T, d string) {
			put(t, d+"/new", "echo")
			must(t, os.Rename(d+"/new", d+"/run.sh"))
		}, nil},
		{"the script is gone", func(t *testing.T, d string) { must(t, os.Remove(d+"/run.sh")) }, []string{"/run.sh"}},
		{"the script became a FIFO", func(t *testing.T, d string) {
			must(t, os.Remove(d+"/run.sh"))
			must(t, syscall.Mkfifo(d+"/run.sh", 0o600))
		}, []string{"/run.sh"}},
		{"what was absent is there", func(t *testing.T, d string) { put(t, d+"/none", "") }, []string{"/none"}},
		{"a link leads elsewhere", func(t *testing.T, d string) {
			must(t, os.Remove(d+"/l"))
			link(t, "run2.sh", d+"/l")
		}, []string{"/l"}},
		{"a directory became a link", func(t *testing.T, d string) {
			must(t, os.Rename(d+"/sub", d+"/sub2"))
			link(t, "/", d+"/sub")
		}, []string{"/sub", "/sub/data"}},
		{"a directory was made anew", func(t *testing.T, d string) {
			must(t, os.Rename(d+"/sub", d+"/sub2"))
			put(t, d+"/sub/x", "")
			must(t, os.Rename(d+"/sub2/data", d+"/sub/data"))
		}, nil},
		{"a file that was looked at grew", func(t *testing.T, d string) { put(t, d+"/sub/data", "more than before") }, []string{"/sub/data"}},
		{"a target became a link", func(t *testing.T, d string) {
			must(t, os.Remove(d+"/target"))
			link(t, "/etc", d+"/target")
		}, []string{"/target"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := disk(t)
			put(t, dir+"/run.sh", "echo")
			put(t, dir+"/sub/data", "data")
			put(t, dir+"/target", "")
			link(t, "run.sh", dir+"/l")
			pool := NewPool(4)
			r := pool.Reader(t.Context())
			_, _ = r.ReadFile(dir+"/l", 99)
			_, _ = r.Lstat(dir + "/none")
			_, _ = r.Lstat(dir + "/sub/data")
			_, _ = r.Resolve(dir + "/target")
			tt.change(t, dir)

			// It is compared after it was stored, too.
			stored, err := json.Marshal(r.ReadSet())
			if err != nil {
				t.Fatal(err)
			}
			var entries []Entry
			if err := json.Unmarshal(stored, &entries); err != nil {
				t.Fatal(err)
			}
			got := Recheck(entries, pool.Reader(t.Context()))
			for i := range got {
				got[i] = strings.TrimPrefix(got[i], dir)
			}
			slices.Sort(got)
			if !slices.Equal(got, tt.want) {
				t.Errorf("changed: %q; want %q", got, tt.want)
			}
		})
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestAReadSetIsBoundedAndAnOverflowNeverComparesEqual(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	r := m.NewReader()
	for i := range maxEntries + 10 {
		_, _ = r.Lstat(fmt.Sprintf("/n%d", i))
	}
	set := r.ReadSet()
	if len(set) != maxEntries+1 {
		t.Fatalf("%d entries", len(set))
	}
	if got := Recheck(set, m.NewReader()); len(got) != 1 {
		t.Errorf("%d entries changed; want the overflow alone", len(got))
	}
}

func TestWhatWillRunIsToldApartFromWhatItWorksOn(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	m.AddFile("/p/run.sh", []byte("echo > out"))
	m.AddFile("/p/data", []byte("x"))
	m.AddLink("/p/l", "run.sh")
	r := m.NewReader()
	_, _ = r.ReadCode("/p/l", 99)
	_, _ = r.ReadCode("/p/none.sh", 99)
	_, _ = r.ReadCode("/p/no/dir.sh", 99)
	_, _ = r.ReadFile("/p/data", 99)
	_, _ = r.Lstat("/p/out")
	_, _ = r.Lstat("/p/run.sh")
	paths := func(es []Entry) (out []string) {
		for _, e := range es {
			out = append(out, e.Path)
		}
		return out
	}
	if got, want := paths(Code(r.ReadSet())), []string{"/p/run.sh", "/p/none.sh", "/p/no"}; !slices.Equal(got, want) {
		t.Errorf("will run: %q, want %q", got, want)
	}
	if got, want := paths(Binding(r.ReadSet())), []string{"/p/l", "/p/run.sh", "/p/none.sh", "/p/no"}; !slices.Equal(got, want) {
		t.Errorf("binds: %q, want %q", got, want)
	}
	m.AddFile("/p/out", nil)
	m.AddFile("/p/data", []byte("y"))
	if got := Recheck(Code(r.ReadSet()), m.NewReader()); got != nil {
		t.Errorf("the call's own work changed %q", got)
	}
	m.AddFile("/p/none.sh", []byte("rm -rf /"))
	if got, want := Recheck(Code(r.ReadSet()), m.NewReader()), []string{"/p/none.sh"}; !slices.Equal(got, want) {
		t.Errorf("changed: %q, want %q", got, want)
	}
}
