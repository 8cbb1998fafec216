// SPDX-License-Identifier: Apache-2.0

package install_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tripline-sh/tripline/hooks/agents/claude"
	"github.com/tripline-sh/tripline/hooks/client"
	"github.com/tripline-sh/tripline/hooks/install"
)

// The hook takes the arguments of every entry: without a daemon it denies what gates, or lets it pass if a person said so.
func TestTheHookTakesWhatIsInstalled(t *testing.T) {
	t.Parallel()
	for i := range 4 {
		o, allow := options(t), i%2 == 1
		if i >= 2 {
			o.Daemon = []string{"/nonexistent/triplined", "--on-demand"}
		}
		dir := t.TempDir()
		o.Socket, o.Spool, o.AllowOnDown = filepath.Join(dir, "no.sock"), filepath.Join(dir, "spool"), allow
		text, err := install.PutText([]byte("{}"), o)
		if err != nil {
			t.Fatal(err)
		}
		var settings struct {
			Hooks map[string][]struct {
				Hooks []struct{ Args []string }
			}
		}
		if err := json.Unmarshal(text, &settings); err != nil {
			t.Fatal(err)
		}
		for _, r := range claude.Events() {
			args := settings.Hooks[r.Event][0].Hooks[0].Args
			exit, stdout, stderr := run(t, args)
			denied := r.Kind.Gates() && !allow
			if denied != (exit == 2) || denied != strings.Contains(stdout, "not running") || denied != (stderr != "") {
				t.Errorf("%q: exit %d %q %q", args, exit, stdout, stderr)
			}
		}
	}
}

func run(t *testing.T, args []string) (exit int, stdout, stderr string) {
	t.Helper()
	var files [3]*os.File
	for i := range files {
		f, err := os.CreateTemp(t.TempDir(), "fd")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		files[i] = f
	}
	exit = client.Run(client.Process{
		Args: args, Started: time.Now(), In: int(files[0].Fd()), Out: int(files[1].Fd()), Err: int(files[2].Fd()), Signals: -1,
	})
	return exit, read(t, files[1].Name()), read(t, files[2].Name())
}
