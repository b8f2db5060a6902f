# `make help` prints every target with the line beside it.

# Pinned: another version finds other things, and a red `make verify` must come from a change of the code.
GOLANGCI := github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0

# The whole suite takes about a quarter of an hour on 2 cores; a test that hangs is told from a slow machine by no package of it taking so long.
TEST_TIMEOUT := 16m

# What the race detector is spared. SQLite is C translated to Go: its memory is not Go's, so the detector overlooks each access that it is told of there.
# The driver above it is watched as all else is. A package that instantiates generic code of others must not be among these (modernc.org/libc does):
# the linker keeps one copy of each instance, and one that is not watched, of sync.Map say, would hide races and make up others.
SPARED := modernc.org/sqlite/lib modernc.org/memory
# Where it is watched, checkptr would cost another tenth, and looks for misuse of unsafe, which we don't use.
RACE := -race -gcflags='all=-d=checkptr=0' $(foreach package,$(SPARED),-gcflags='$(package)=-race=false -d=checkptr=0')

# The services' tests wait for their workers more than they compute, on both databases alike; on SQLite, which is in the process, the detector makes
# them six times as long and sees nothing that it does not see on PostgreSQL. `go test -race ./...` runs them so, too.
SERVICES := ./services/tickets ./services/deployments ./services/payments

# Begun last, as its name would have it, what takes minutes would run alone at the end. Tests wait, so three packages share two cores.
OTHERS = ./e2e ./pkg/outbox $(filter-out $(SERVICES:./%=github.com/einmal/einmal/%),$(shell go list ./...))
TEST := -p 3 -vet=off -timeout $(TEST_TIMEOUT) # make verify/vet asks more than go test would

SHELL := /bin/bash
.DEFAULT_GOAL := help

.PHONY: demo
demo: build ## Run the failure scenarios against real processes on embedded SQLite, print the table and write demo-report.html
	bin/einmal scenarios --report demo-report.html

.PHONY: run
run: build ## Start everything in one process on embedded SQLite in ./data, until Ctrl-C
	bin/einmal run

.PHONY: build
build: ## Build bin/einmal
	CGO_ENABLED=0 go build -trimpath -o bin/einmal ./cmd/einmal

.PHONY: test
test: test/tools ## Run all tests with the race detector, on SQLite and on PostgreSQL
	go test $(TEST) -run '/^sqlite$$' $(SERVICES)
	go test $(RACE) $(TEST) -skip '/^sqlite$$' $(SERVICES)
	go test $(RACE) $(TEST) $(OTHERS)

.PHONY: test/tools
test/tools: ## Fetch what the tests need beside Go: a PostgreSQL server, Alertmanager, strace, gcc
	@.ci/tools

.PHONY: verify
verify: verify/cheap lint ## Check everything about the code that needs no database: formatting, vet, modules, rooms, migrations, lint

.PHONY: verify/cheap
verify/cheap: verify/format verify/vet verify/modules verify/rooms verify/migrations ## The same without the linter

.PHONY: verify/format
verify/format: ## Every file is as gofmt writes it
	@test -z "$$(gofmt -l . | tee /dev/stderr)" || { echo 'run: gofmt -w .' >&2; exit 1; }

.PHONY: verify/vet
verify/vet: ## go vet
	CGO_ENABLED=0 go vet ./... # as it is built: what it compiles, the scenarios' binary is linked of
	cd bench && CGO_ENABLED=0 go vet ./...

.PHONY: verify/modules
verify/modules: ## go.mod and go.sum say what the code imports
	go mod tidy -diff
	cd bench && go mod tidy -diff

.PHONY: verify/rooms
verify/rooms: ## Import directions, the same stage files in every service, README as the program is
	CGO_ENABLED=0 go test .

.PHONY: verify/migrations
verify/migrations: ## The same migrations for PostgreSQL and SQLite
	@diff <(cd migrations/postgres && find . -name '*.sql' | sort) <(cd migrations/sqlite && find . -name '*.sql' | sort)

.PHONY: verify/mutants
verify/mutants: test/tools ## Break the code on purpose, one patch at a time: each must turn a named test or scenario red
	go run ./e2e/mutants

.PHONY: lint
lint: ## golangci-lint with .golangci.yml (the first run builds it)
	go run $(GOLANGCI) run ./...

SOAK := 10m

.PHONY: soak
soak: test/tools ## Two real Alertmanagers, 200 alerts that come and go, a service killed every 20 s (SOAK=10m)
	go run ./e2e/soak -duration $(SOAK)

.PHONY: bench
bench: ## Compare a ticket with a bare insert on both databases, write bench/results.json
	cd bench && go run .

.PHONY: up
up: ## docker compose: PostgreSQL, the services on 127.0.0.1:8081 to 8083, the outside world that they change on 8090
	docker compose up -d --build --wait

.PHONY: down
down: ## Stop what `make up` started; its data stays in the volumes
	docker compose down

.PHONY: help
help: ## Print this
	@awk -F ':.*## ' '/^[a-z\/]+:.*## / { printf "  %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
