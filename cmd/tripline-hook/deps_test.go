// SPDX-License-Identifier: Apache-2.0

package main_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/tripline-sh/tripline/"

// allowed is everything that the hook may link, with the reason. Packages below internal/ of the standard library come with these
// and are not listed: their names are the toolchain's business.
var allowed = map[string]string{
	module + "cmd/tripline-hook": "the program",
	module + "hooks/client":      "its work",
	module + "hooks/client/sys":  "its system calls",
	module + "hooks/spool":       "events that the daemon could not take",
	module + "hooks/wire":        "the frames",

	"cmp":          "of slices",
	"errors":       "sentinel values of wire and spool",
	"io":           "io.Reader in the signatures of wire",
	"io/fs":        "of os",
	"iter":         "of slices",
	"math/bits":    "of runtime",
	"os":           "os.Args and os.Exit: the standard library has no smaller door to them",
	"path":         "of io/fs",
	"runtime":      "every Go program",
	"slices":       "of syscall",
	"strconv":      "-t, -u, and the numbers in the names of spool entries",
	"sync":         "of syscall",
	"sync/atomic":  "of sync",
	"syscall":      "sockets, files, poll",
	"time":         "the deadline; os has it anyway",
	"unicode/utf8": "of strconv",
	"unsafe":       "pointers given to system calls",
}

// forbidden says why the usual suspects are not on the list. It is for the message only: what is not allowed is forbidden.
var forbidden = map[string]string{
	"fmt":       "brings reflect; costs start time",
	"net":       "costs 0.24 ms of start time and threads",
	"os/signal": "costs 0.2 ms of start time: hooks/client/sys does it with four instructions",
	"reflect":   "costs start time",
	"flag":      "brings fmt; exits with its own codes",
	"log":       "the hook has nobody to log to",
	"context":   "the hook is one thread with one deadline",
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	cmd := exec.Command("go", "list", "-deps", ".")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64", "GOFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	linked := map[string]bool{}
	for pkg := range strings.FieldsSeq(string(out)) {
		linked[pkg] = true
		if allowed[pkg] != "" || strings.HasPrefix(pkg, "internal/") {
			continue
		}
		t.Errorf("the hook links %s, which is not allowed: %s", pkg, forbidden[strings.SplitN(pkg, "/", 2)[0]])
	}
	for pkg := range allowed {
		if !linked[pkg] {
			t.Errorf("the hook no longer links %s: take it off the list", pkg)
		}
	}
}

// The environment belongs to the agent, and through it to whatever the project put there.
func TestTheHookUsesNoEnvironmentVariable(t *testing.T) {
	t.Parallel()
	readers := map[string]bool{
		"Getenv": true, "LookupEnv": true, "Environ": true, "ExpandEnv": true, "Expand": true, "UserHomeDir": true,
		"UserConfigDir": true, "UserCacheDir": true, "TempDir": true, "Local": true, "LoadLocation": true, "LookPath": true,
	}
	for _, dir := range []string{".", "../../hooks/client", "../../hooks/client/sys", "../../hooks/spool", "../../hooks/wire"} {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && readers[s.Sel.Name] {
					t.Errorf("%s uses %s, which reads the environment", name, s.Sel.Name)
				}
				return true
			})
		}
	}
}
