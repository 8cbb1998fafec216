// SPDX-License-Identifier: Apache-2.0

package view

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// disk is a scratch directory on the machine, by its resolved path.
func disk(t *testing.T) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func link(t *testing.T, target, name string) {
	t.Helper()
	if err := os.Symlink(target, name); err != nil {
		t.Fatal(err)
	}
}

// world is a small tree that the machine and a Memory can both hold.
func world(t *testing.T) (dir string, machine, memory Reader) {
	dir = disk(t)
	m := NewMemory()
	for _, f := range []string{"a/b/file", "a/x", "top"} {
		put(t, filepath.Join(dir, f), "content of "+f)
		m.AddFile(filepath.Join(dir, f), []byte("content of "+f))
	}
	for name, target := range map[string]string{
		"l": "a/b", "abs": dir + "/a", "dangling": "nowhere/x", "loop1": "loop2", "loop2": "loop1", "tofile": "a/b/file",
		"up": "a/b/../..", "a/b/back": "../../top", "chain": "l", "self": ".",
	} {
		link(t, target, filepath.Join(dir, name))
		m.AddLink(filepath.Join(dir, name), target)
	}
	long := "a/x"
	for i := range 45 {
		n := filepath.Join(dir, "n"+strconv.Itoa(i))
		link(t, long, n)
		m.AddLink(n, long)
		long = "n" + strconv.Itoa(i)
	}
	return dir, NewPool(4).Reader(t.Context()), m
}

func TestResolveGoesWhereTheKernelGoes(t *testing.T) {
	t.Parallel()
	dir, machine, memory := world(t)
	tests := []struct {
		path, want string
		err        error
	}{
		{"", "", nil},
		{"/a/b/file", "/a/b/file", nil},
		{"/l/file", "/a/b/file", nil},
		{"/l", "/a/b", nil},
		{"/l/", "/a/b", nil},
		{"/l/..", "/a", nil},
		{"/l/../x", "/a/x", nil},
		{"/chain/../../top", "/top", nil},
		{"/abs/b", "/a/b", nil},
		{"/dangling", "/nowhere/x", nil},
		{"/dangling/y/../z", "/nowhere/x/z", nil},
		{"/none/a/b", "/none/a/b", nil},
		{"/none/../l/file", "/a/b/file", nil}, // none may be made by then, and the link is there now
		{"/none/../l", "/a/b", nil},
		{"/none/x/../../chain/../../top", "/top", nil},
		{"/none/../loop1", "", ErrLoop},
		{"/tofile/x", "/a/b/file/x", nil},
		{"/up", "", nil},
		{"/a/b/back", "/top", nil},
		{"/self/self/self/a", "/a", nil},
		{"//a/./b//file", "/a/b/file", nil},
		{"/loop1", "", ErrLoop},
		{"/loop1/x", "", ErrLoop},
		{"/n39", "/a/x", nil},
		{"/n40", "", ErrLoop},
		{strings.Repeat("/self", 41) + "/a", "", ErrLoop},
	}
	for _, tt := range tests {
		for name, r := range map[string]Reader{"machine": machine, "memory": memory} {
			got, err := r.Resolve(dir + tt.path)
			if tt.err != nil {
				if !errors.Is(err, tt.err) {
					t.Errorf("%s: Resolve(%q) = %q, %v; want %v", name, tt.path, got, err, tt.err)
				}
				continue
			}
			if want := dir + tt.want; got != want || err != nil {
				t.Errorf("%s: Resolve(%q) = %q, %v; want %q", name, tt.path, got, err, want)
			}
		}
	}
	for _, p := range []string{"", "a", "./a", "/a\x00b"} {
		if _, err := machine.Resolve(p); !errors.Is(err, ErrInvalid) {
			t.Errorf("Resolve(%q): %v; want %v", p, err, ErrInvalid)
		}
	}
	if got, err := machine.Resolve("/../../" + dir); got != dir || err != nil {
		t.Errorf("above the root: %q, %v", got, err)
	}
	if _, err := machine.Resolve("/" + strings.Repeat("a/", maxPath)); !errors.Is(err, ErrLoop) {
		t.Errorf("an endless path: %v", err)
	}
	if got, err := machine.Resolve("/" + strings.Repeat("n", 300)); len(got) != 301 || err != nil {
		t.Errorf("a name that cannot be: %v", err)
	}
}

func TestOnlyRegularFilesOfABoundedSizeAreRead(t *testing.T) {
	t.Parallel()
	dir := disk(t)
	put(t, dir+"/f", "0123456789")
	put(t, dir+"/empty", "")
	link(t, "f", dir+"/l")
	link(t, "/dev/zero", dir+"/zero")
	link(t, "/proc/self/environ", dir+"/environ")
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	link(t, "fifo", dir+"/tofifo")
	sock := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", sock)
	if err != nil {
		t.Skipf("SKIPPED: no unix socket at a path of %d bytes: %v", len(sock), err)
	}
	defer ln.Close() //nolint:errcheck // a test's socket
	r := NewPool(4).Reader(t.Context())
	for _, tt := range []struct {
		name string
		max  int64
		want string
		err  error
	}{
		{"f", 10, "0123456789", nil}, {"l", 100, "0123456789", nil}, {"f", 9, "", ErrTooLarge}, {"f", 0, "", ErrTooLarge},
		{"empty", 0, "", nil}, {"none", 9, "", fs.ErrNotExist}, {"f/x", 9, "", fs.ErrNotExist}, {"", 9, "", ErrNotRegular},
		{"fifo", 9, "", ErrNotRegular}, {"tofifo", 9, "", ErrNotRegular}, {"s", 9, "", ErrNotRegular},
		{"zero", 9, "", ErrNotRegular}, {"environ", 1 << 20, "", ErrNotRegular},
	} {
		got, err := r.ReadFile(dir+"/"+tt.name, tt.max)
		if string(got) != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("ReadFile(%q, %d) = %q, %v; want %q, %v", tt.name, tt.max, got, err, tt.want, tt.err)
		}
	}
	if runtime.GOOS == "linux" {
		for _, p := range []string{"/proc/version", "/proc/self/../version", "/sys/kernel/uevent_seqnum", "/dev/null", "/proc/self/root/proc/version"} {
			if _, err := r.ReadFile(p, 1<<20); !errors.Is(err, ErrNotRegular) && !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("ReadFile(%q): %v; want %v", p, err, ErrNotRegular)
			}
		}
	}
	names, err := r.ReadDir(dir, 100)
	slices.Sort(names)
	if err != nil || !slices.Equal(names, []string{"empty", "environ", "f", "fifo", "l", "s", "tofifo", "zero"}) {
		t.Errorf("ReadDir: %q, %v", names, err)
	}
	if names, err := r.ReadDir(dir, 3); len(names) != 3 || err != nil {
		t.Errorf("ReadDir of at most 3: %q, %v", names, err)
	}
	if _, err := r.ReadDir(dir+"/f", 3); !errors.Is(err, ErrNotRegular) {
		t.Errorf("ReadDir of a file: %v", err)
	}
}

func TestInfoIsWhatTheKernelSays(t *testing.T) {
	t.Parallel()
	dir := disk(t)
	put(t, dir+"/f", "abc")
	if err := os.Chmod(dir+"/f", 0o755|fs.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	if err := os.Link(dir+"/f", dir+"/g"); err != nil {
		t.Fatal(err)
	}
	link(t, "f", dir+"/l")
	r := NewPool(4).Reader(t.Context())
	for _, name := range []string{"/f", "/l", ""} {
		want, err := os.Lstat(dir + name)
		if err != nil {
			t.Fatal(err)
		}
		got, err := r.Lstat(dir + name)
		st := want.Sys().(*syscall.Stat_t)
		if err != nil || got.Mode != want.Mode() || got.Size != want.Size() || got.Ino != st.Ino || got.MTimeNS != want.ModTime().UnixNano() ||
			got.UID != st.Uid || got.RawMode != uint32(st.Mode) || got.Nlink != uint64(st.Nlink) {
			t.Errorf("Lstat(%q) = %+v, %v; the system says %+v", name, got, err, st)
		}
	}
	if text, err := r.Readlink(dir + "/l"); text != "f" || err != nil {
		t.Errorf("Readlink: %q, %v", text, err)
	}
	if _, err := r.Readlink(dir + "/f"); !errors.Is(err, ErrNotRegular) {
		t.Errorf("Readlink of a file: %v", err)
	}
	infos, err := r.StatBelow(dir, []string{"l", "none", "none/x", "f"})
	if err != nil || infos[0].Ino == 0 || infos[0] != infos[3] || infos[1].Ino != 0 || infos[2].Ino != 0 {
		t.Errorf("StatBelow: %+v, %v", infos, err)
	}
}

func TestWhatMayNotBeReadIsNotSaidToBeAbsent(t *testing.T) {
	t.Parallel()
	m := NewMemory()
	m.AddFile("/closed/f", nil)
	m.Deny("/closed")
	m.AddFile("/secret", []byte("x"))
	m.Deny("/secret")
	r := m.NewReader()
	if _, err := r.Lstat("/closed"); err != nil {
		t.Errorf("Lstat of a closed directory itself: %v", err)
	}
	for what, err := range map[string]error{
		"Lstat": second(r.Lstat("/closed/f")), "Resolve": second(r.Resolve("/closed/f/g")), "ReadFile": second(r.ReadFile("/closed/f", 9)),
		"ReadFile itself": second(r.ReadFile("/secret", 9)), "ReadDir": second(r.ReadDir("/closed", 9)),
	} {
		if !errors.Is(err, ErrDenied) || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v; want %v", what, err, ErrDenied)
		}
	}
	if !slices.Contains(r.ReadSet(), Entry{Path: "/closed/f", Hash: "denied"}) {
		t.Errorf("the read set does not say that it was denied: %+v", r.ReadSet())
	}
}

func second[T any](_ T, err error) error { return err }

func TestHostilePathsNeverHangOrPanic(t *testing.T) {
	t.Parallel()
	_, machine, memory := world(t)
	for _, p := range hostile {
		for _, r := range []Reader{machine, memory} {
			_, _ = r.Resolve(p)
			_, _ = r.Lstat(p)
			_, _ = r.ReadFile(p, 16)
			_, _ = r.ReadDir(p, 2)
			_, _ = r.StatBelow(p, []string{p, "..", ""})
		}
	}
}

var hostile = []string{"", "/", "//", ".", "..", "/..", "/.", "/\x00", "\x00", "/a/../../../..", "/proc/self/fd/0", "/proc/self/root/proc/self/root/etc",
	"/dev/tty", "/dev/stdin", "/dev/fd/0", "/proc/kmsg", "/" + strings.Repeat("../", 3000), strings.Repeat("/a", 9000), "/\xff\xfe", "/proc/self/cwd/x",
	"/proc/1/root/etc/shadow", "/sys/kernel/debug"}

func TestLinksThatGrowThePathAreCutOff(t *testing.T) {
	t.Parallel()
	// Each link is followed into the next one with two thousand components behind it: unbounded, the rest of the path
	// would grow to megabytes, and putting it together to hours.
	m := NewMemory()
	for i := range 39 {
		m.AddLink("/l"+strconv.Itoa(i), "/l"+strconv.Itoa(i+1)+strings.Repeat("/x", 2000))
	}
	if _, err := m.Resolve("/l0"); !errors.Is(err, ErrLoop) {
		t.Errorf("links that grow the path: %v; want %v", err, ErrLoop)
	}
	deep := NewMemory()
	deep.AddDir(strings.Repeat("/d", maxDepth+10))
	if _, err := deep.Resolve(strings.Repeat("/d", maxDepth+5)); !errors.Is(err, ErrLoop) {
		t.Errorf("a tree without a bottom: %v; want %v", err, ErrLoop)
	}
}

func FuzzResolve(f *testing.F) {
	for _, p := range hostile {
		f.Add(p, "x")
	}
	for _, p := range []string{"/l/../x", "/d/l2/..", "/d/./l/../../q", "/abs/abs/"} {
		f.Add(p, "../d/l")
	}
	f.Fuzz(func(t *testing.T, p, target string) {
		m := NewMemory()
		m.AddDir("/d")
		m.AddLink("/l", target)
		m.AddLink("/d/l", target)
		m.AddLink("/abs", "/d")
		m.AddFile("/x", nil)
		got, err := m.Resolve(p)
		if err != nil {
			return
		}
		if filepath.Clean(got) != got || got[0] != '/' {
			t.Fatalf("Resolve(%q) = %q, which is not clean", p, got)
		}
		again, err := m.Resolve(got)
		if err != nil || again != got {
			t.Fatalf("Resolve(%q) = %q, and resolved again %q, %v", p, got, again, err)
		}
	})
}
