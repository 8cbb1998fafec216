// SPDX-License-Identifier: Apache-2.0

package tripwires

import (
	"testing"

	"github.com/tripline-sh/tripline/tripwires/view"
)

func TestTargetsOfAMakefileAreReadForWhatTheyDoToTripline(t *testing.T) {
	t.Parallel()
	m := view.NewMemory()
	m.AddFile("/home/dev/shop/Makefile", []byte(`# first
BIN ?= $(HOME)/.local/bin
CTL := ~/.local/bin/auditctl
.PHONY: up down test clean purge

test: build ; @contrib/dev/test.sh
build:
	@go build ./...
	auditctl status
clean:
	rm -rf $(OUT) src
down: ; @contrib/dev/down.sh
purge: down
	echo gone
stop:
	@if true; then \
	  $(CTL) stop; \
	fi
all: test
	$(BIN)/auditctl restart
start: ; auditctl start
again: ; $(MAKE) -C . down
loop: ; $(MAKE) loop
`))
	m.AddFile("/home/dev/shop/contrib/dev/down.sh", []byte("#!/bin/sh\nset -eu\nbin=$HOME/.local/bin\n\"$bin/auditctl\" uninstall claude --yes\n\"$(dirname \"$0\")/stop.sh\" \"$bin\"\n"))
	m.AddFile("/home/dev/shop/contrib/dev/stop.sh", []byte("#!/bin/sh\nbin=${1:?usage: stop.sh BINDIR}\n\"$bin/auditctl\" stop\n"))
	m.AddFile("/home/dev/shop/contrib/dev/purge.sh", []byte("#!/bin/sh\nset -eu\nPATH=$HOME/.local/bin:$PATH\nexec auditctl purge \"$@\"\n"))
	m.AddFile("/home/dev/shop/contrib/dev/test.sh", []byte("#!/bin/sh\ngo test ./...\nrm -rf src\n"))
	m.AddFile("/home/dev/shop/sub/GNUmakefile", []byte("x:\n\tsystemctl --user stop triplined\n"))
	e := newEngine(t, Options{})
	for command, want := range map[string]string{
		"make down": "floor", "make purge": "floor", "make stop": "floor", "make all": "floor", "make again": "floor", "make loop": "pass", "make -C sub": "floor", "make -C sub x": "floor", "cd sub && make": "floor",
		"make -f Makefile stop": "floor", "gmake -j4 build down": "floor", "sudo make down": "floor",
		"make": "pass", "make test": "pass", "make build": "pass", "make start": "pass", "make clean": "pass", "make -n down": "pass", "make down -q": "pass", "make nothing": "pass",
		"make test stop=down": "pass", "make -f none.mk down": "pass", "echo make down": "pass",
		"contrib/dev/down.sh": "floor", "sh contrib/dev/stop.sh ~/.local/bin": "floor", "./contrib/dev/stop.sh x": "floor", "bash contrib/dev/purge.sh --yes": "floor",
		"cd contrib/dev && ./purge.sh": "floor", ". contrib/dev/purge.sh": "floor", "cat contrib/dev/purge.sh": "pass", "grep -n stop contrib/dev/down.sh": "pass",
	} {
		if d := bash(t, e, m, command); verdict(d) != want {
			t.Errorf("%s: got %s by %q (%s), want %s", command, verdict(d), d.Rule, d.Reason, want)
		}
	}
	// what an allow rule covers stays allowed: the recipes of a target are no commands of the call
	allowed := newEngine(t, Options{Rules: load(t, userFile("version: 1\nrules:\n  - {id: a, allow: [\"Bash(make:*)\"]}\n"))})
	for command, want := range map[string]string{"make test": "allow", "make clean": "allow", "make down": "floor"} {
		if d := bash(t, allowed, m, command); verdict(d) != want {
			t.Errorf("with an allow rule, %s: got %s by %q, want %s", command, verdict(d), d.Rule, want)
		}
	}
}

func FuzzReadMakefile(f *testing.F) {
	for _, s := range []string{"a: b ; c\n", "A=$(A)\nx:\n\t$(A)$(A)\n", "a b: c | d\n\t-@x\\\n y\n", ".PHONY: x\nx::\n", "A := $(B)$(B)\nB := $(A)$(A)\nx: x\n\t$(A)\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		m := readMakefile(text)
		if out := m.commands([]string{m.first, "x", "a"}); len(out) > maxMakefile {
			t.Errorf("%d bytes of commands from %d", len(out), len(text))
		}
	})
}
