// SPDX-License-Identifier: Apache-2.0

package preview

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tripline-sh/tripline/tripwires"
	"github.com/tripline-sh/tripline/tripwires/view"
)

// tangle makes directories, files and links of every kind, and names paths to and beside all of them.
func tangle(t *testing.T) (root string, paths []string) {
	t.Helper()
	root = t.TempDir()
	for _, d := range []string{"a/b", "shop/.git", "shop/src"} {
		if err := os.MkdirAll(filepath.Join(root, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range []string{"a/f", "a/b/g", "shop/src/x", "shop/.git/HEAD"} {
		if err := os.WriteFile(filepath.Join(root, f), []byte(f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"up": "..", "a/up": "../a", "a/b/self": "self", "a/dangling": "../nowhere/x", "tofile": "a/f", "todir": "a/b", "abs": filepath.Join(root, "shop"), "shop/src/out": "../../a/../up/.", "first": "a/dangling/.."} {
		if err := os.Symlink(to, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"", "a", "b", "f", "g", "up", "self", "dangling", "tofile", "todir", "abs", "out", "shop", "src", "x", ".git", "HEAD", "nope", "..", "first"}
	for _, n := range names {
		for _, m := range names {
			for _, o := range []string{"", "/b/g", "/nope/..", "/up/a", "/", "/x"} {
				paths = append(paths, root+"/"+n+"/"+m+o, filepath.Clean(root+"/"+n+"/"+m+o))
			}
		}
	}
	return root, append(paths, "/", "", "relative", "/\x00", "//"+root+"//a", "/"+strings.Repeat("x/", 3000))
}

// The snapshot answers as the machine does, in whatever order it is asked.
func TestASnapshotSaysWhatTheMachineSays(t *testing.T) {
	t.Parallel()
	root, paths := tangle(t)
	ctx := context.Background()
	pool := view.NewPool(4)
	snap := newSnapshot(pool)
	rnd := rand.New(rand.NewPCG(3, 4))
	for round := range 2 {
		rnd.Shuffle(len(paths), func(i, j int) { paths[i], paths[j] = paths[j], paths[i] })
		for _, p := range paths {
			ask := func(r view.Reader) string {
				var b strings.Builder
				say := func(v any, err error) {
					for _, known := range []error{fs.ErrNotExist, view.ErrDenied, view.ErrNotRegular, view.ErrTooLarge, view.ErrLoop, view.ErrInvalid, view.ErrBusy} {
						if errors.Is(err, known) {
							err = known
						}
					}
					fmt.Fprintf(&b, "%v %v\n", v, err)
				}
				steps := []func(){
					func() { v, err := r.Lstat(p); say(v.Ino, err) },
					func() { v, err := r.Resolve(p); say(v, err) },
					func() { v, err := r.Readlink(p); say(v, err) },
					func() { v, err := r.ReadFile(p, 3); say(string(v), err) },
					func() { v, err := r.Quiet().ReadFile(p, 100); say(string(v), err) },
					func() { v, err := r.ReadDir(p, 100); say(len(v), err) },
					func() { v, err := r.StatBelow(p, []string{"b", "b/g", "nope"}); say(len(v), err) },
				}
				for _, s := range steps {
					s()
				}
				return b.String()
			}
			if got, want := ask(snap.reader(ctx)), ask(pool.Reader(ctx)); got != want {
				t.Fatalf("round %d, %q below %s:\nsnapshot\n%s\nmachine\n%s", round, p, root, got, want)
			}
		}
	}
}

// Calls are judged with a snapshot as they are without one.
func TestASnapshotChangesNoVerdict(t *testing.T) {
	t.Parallel()
	root, _ := tangle(t)
	home := filepath.Join(root, "home")
	e, err := tripwires.New(tripwires.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	pool := view.NewPool(4)
	snap := newSnapshot(pool)
	var lines []string
	for _, c := range commands {
		if strings.Contains(c, "%") {
			c = fmt.Sprintf(c, 7)
		}
		lines = append(lines, c)
	}
	for _, target := range []string{"src", "src/x", "src/out/a", "../a/dangling", "../abs/src", "../tofile", "~", "/", ".git", "nope/nope", "*", "src/*"} {
		lines = append(lines, "rm -rf "+target, "rm "+target, "mv src/x "+target, "> "+target, "cat "+target, "ln -s x "+target+" && rm -r "+target, "chmod -R 777 "+target, "sh "+target, "cd "+target+" && rm -rf *")
	}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 3 {
		rnd.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
		for _, l := range lines {
			in := []byte(fmt.Sprintf(`{"command":%q}`, l))
			call := tripwires.Call{Agent: "claude", Tool: "Bash", Input: in, Cwd: root + "/shop", Homes: []string{home}}
			got, want := e.Evaluate(ctx, call, snap.reader(ctx)), e.Evaluate(ctx, call, pool.Reader(ctx))
			if got.Verdict != want.Verdict || got.Rule != want.Rule || got.Floor != want.Floor || got.Reason != want.Reason {
				t.Errorf("%q: %s %s %q with the snapshot, %s %s %q without", l, got.Verdict, got.Rule, got.Reason, want.Verdict, want.Rule, want.Reason)
			}
		}
	}
}

func TestASnapshotForgetsBeforeItGrows(t *testing.T) {
	t.Parallel()
	snap := newSnapshot(view.NewPool(2))
	r := snap.reader(context.Background())
	dir := t.TempDir()
	big := filepath.Join(dir, "big")
	if err := os.WriteFile(big, make([]byte, 1<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for i := range int64(40) {
		if _, err := r.ReadFile(big, 1<<20+i); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3000 {
		long := fmt.Sprintf("%s/%d/%s", dir, i, strings.Repeat("x", 10_000))
		if _, err := r.Lstat(long); err == nil {
			t.Fatal("it is there")
		}
	}
	held := 0
	for p := range snap.stats {
		held += len(p)
	}
	for i := range maxRemembered + 100 {
		if _, err := r.Lstat(fmt.Sprintf("%s/gone/%d", dir, i)); !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	if held > maxBytes || snap.bytes > maxBytes || len(snap.files) > 12 || len(snap.stats) > maxRemembered {
		t.Errorf("%d bytes of long paths, %d bytes, %d files, %d paths", held, snap.bytes, len(snap.files), len(snap.stats))
	}
}
