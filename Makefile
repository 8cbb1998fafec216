# Two commands: `make up` builds, installs for this user, starts the daemon and shows that it works; `make test` passes the
# tests. `make down` undoes `make up`, `make purge` deletes what that leaves. Without make, run the scripts by hand.
.PHONY: up down purge test check build bench demo docs man

up: ; @contrib/dev/up.sh $(HOOK)
down: ; @contrib/dev/down.sh
purge: ; @contrib/dev/purge.sh
test: ; @contrib/dev/test.sh
check: ; @contrib/dev/check.sh
build: ; @contrib/dev/build.sh bin
bench: ; @contrib/bench/run.sh
demo: ; @contrib/demo/demo.sh
docs: ; @go run ./cmd/auditctl/internal/gendocs cli contrib/docs/cli.md
man: ; @go run ./cmd/auditctl/internal/gendocs man bin/man/man1 && echo "man -M bin/man auditctl"
