# One to three lines a target; the logic is in Go, in docker-compose.yml and in
# .ci/run. Needs Go and make; image, up and down need Docker as well.

GO       ?= go
SERVICES := $(patsubst %/go.mod,%,$(wildcard tokensvc/go.mod eventsvc/go.mod))
MODULES  := $(patsubst %/go.mod,%,$(wildcard shared/go.mod tokensvc/go.mod eventsvc/go.mod deploy/go.mod deploy/*/go.mod deploy/test/*/go.mod))
# What runs on macOS as well: the services, make run and the examples. The other modules measure or drive Linux.
PORTABLE := $(filter shared deploy $(SERVICES),$(MODULES))
CODE     := $(if $(filter Linux,$(shell uname -s)),$(filter-out deploy/tools,$(MODULES)),$(PORTABLE))
# What make test-all runs: the modules, of deploy/test one folder after the other, as most of them load the machine.
TESTED   := $(foreach m,$(filter-out deploy/test/%,$(CODE)),$(if $(filter deploy/test,$m),$(patsubst %/.,%,$(wildcard $m/*/.)),$m))
# Tests that drive the services from outside, or concern neither: of make test-all only.
WHOLE    := $(filter deploy/test/%,$(TESTED))
UNIT     := $(filter-out $(WHOLE),$(TESTED))
ARCHS    ?= amd64 arm64
RELEASED  = $(foreach a,$(ARCHS),$(SERVICES:%=%-linux-$a))
LINTER   := bin/golangci-lint
ACTIONS  := bin/actionlint
# The commit, for images and where the Go tool finds none; a tarball has none, make release REVISION=… names it.
REVISION ?= $(shell git describe --always --abbrev=40 --exclude '*' --dirty 2>/dev/null)
REVISION := $(REVISION)
# The compiler collects its garbage less often, which takes a fifth less processor time.
COMPILE  := GOGC=400 $(GO)
BUILD    := $(COMPILE) build -trimpath -ldflags "-s -w -X tidings.example/shared/service.revision=$(REVISION)"
# Not from the cache: many tests are random, others look at binaries and files that the cache does not know.
# A test that hangs is ended after half an hour: on a small, busy machine the longest tests take minutes.
TEST     := $(GO) test -count=1 -timeout 30m $(TESTFLAGS)
# Packages whose tests drive whole programs, or move much data in few goroutines, which the race detector makes ten times slower.
# make race NORACE=none has them too.
NORACE   := /(tokensvc|eventsvc|dump|console|codec|docs/site|query/changes|store/maintenance|store/postgres)$$

# Each module stands on its own; go.work is for people and their editors.
export GOWORK := off
export REVISION
# Binaries, tests and linters are compiled alike, so that each package is compiled once. Only the race detector needs C.
export CGO_ENABLED ?= 0
export GOFLAGS := $(filter-out -trimpath,$(GOFLAGS)) -trimpath

# each: runs $(2) in every module of $(1); fails at the end if one failed.
each = @bad=; for m in $(1); do echo "== $$m"; (cd $$m && $(2)) || bad="$$bad $$m"; done; test -z "$$bad" || { echo "failed in:$$bad"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help run build manual test test-all race lint vuln cover fuzz bench lines robustness e2e cluster-faults cluster-test conformance image up down install release site modules tidy verify

help: ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

run: build ## build and start both services here, with demo clients
	@cd deploy/local && CGO_ENABLED=0 $(BUILD) -o ../../bin/local .
	@exec bin/local

manual: ## the manual as pages of the console, which the next build embeds
	@cd deploy/docs && $(COMPILE) run . >/dev/null

build: manual ## static binaries: bin/tokensvc and bin/eventsvc
	@set -e; for s in $(SERVICES); do echo "building bin/$$s (a minute or two the first time)"; (cd $$s && CGO_ENABLED=0 $(BUILD) -o ../bin/$$s .); done

test: manual ## the tests of both services and of what they share, a line for each package
	$(call each,$(UNIT),$(TEST) ./...)

test-all: test ## the same, and the tests that drive whole services: stock clients, a browser, faults
	$(call each,$(WHOLE),$(TEST) ./...)

race: manual ## the tests of most packages under the race detector (needs a C compiler)
	$(call each,$(UNIT),CGO_ENABLED=1 $(TEST) -race $$($(GO) list ./... | grep -vE '$(NORACE)'))

# The linter's govet is go vet for this system. No file of ours is for one architecture, so one of macOS stands for both.
lint: $(LINTER) $(ACTIONS) ## golangci-lint with the import rules, go vet for macOS, and actionlint for the workflows
	@$(ACTIONS) -shellcheck= -pyflakes= .github/workflows/*.yml
	$(call each,$(PORTABLE),GOOS=darwin GOARCH=arm64 CGO_ENABLED=0 $(GO) vet ./...)
	$(call each,$(CODE),$(CURDIR)/$(LINTER) run --allow-parallel-runners --config $(CURDIR)/.golangci.yml ./...)

$(LINTER): deploy/tools/go.mod
	cd deploy/tools && $(GO) build -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(ACTIONS): deploy/tools/go.mod
	cd deploy/tools && $(GO) build -o $(CURDIR)/$@ github.com/rhysd/actionlint/cmd/actionlint

vuln: ## known vulnerabilities that the code can reach (asks vuln.go.dev)
	cd deploy/tools && $(GO) build -o $(CURDIR)/bin/govulncheck golang.org/x/vuln/cmd/govulncheck
	$(call each,$(CODE),$(CURDIR)/bin/govulncheck ./...)

cover: ## statement coverage of the services, per package
	$(call each,shared $(SERVICES),$(GO) test -cover ./...)

fuzz: ## every fuzz target for FUZZTIME (10s) each
	$(call each,shared $(SERVICES),for f in $$(grep -rlE "^func Fuzz" --include="*_test.go" .); do for t in $$(sed -n "s/^func \(Fuzz[A-Za-z0-9]*\).*/\1/p" $$f); do $(GO) test -run "^$$" -fuzz "^$$t$$" -fuzztime $(or $(FUZZTIME),10s) -fuzzminimizetime 20x $$(dirname $$f) || exit 1; done; done)

lines: ## lines of Go without tests, and the packages of the store with their imports of each other
	@for m in shared $(SERVICES); do printf '%-8s %6d\n' $$m $$(git ls-files "$$m/*.go" | grep -v _test.go | xargs cat | wc -l); done | awk '{sum += $$2; print} END {print "lines", sum}'
	@cd eventsvc && $(GO) list -f '{{$$p := .ImportPath}}{{range .Imports}}{{$$p}} {{.}}{{"\n"}}{{end}}' ./internal/store/... | \
		awk '{rooms[$$1]} $$2 ~ "/eventsvc/internal/store" {arrows++} END {print "packages of the store", length(rooms), "imports among them", arrows}'

bench: build ## speed of a running service beside this machine's floors
	@cd deploy/test/bench && $(GO) run . $(BENCH_FLAGS)

e2e: ## end to end: with binaries started here, then with docker compose
	@cd deploy/test/e2e && E2E_COMPOSE=1 $(TEST) -v ./...
	@cd deploy/test/alertmanager && E2E_COMPOSE=1 $(TEST) -v -run TestCompose .

cluster-faults: ## every fault of the profile cluster under load, and failovers that lose commits, as root (FAULTS=short: some)
	@cd deploy/test && E2E_COMPOSE=1 $(TEST) -timeout 120m -v ./cluster $(if $(filter short,$(FAULTS)),,-faults=all -losses=$(or $(LOSSES),20) -waits=$(or $(WAITS),20))

cluster-test: ## the mirror and the aggregated API beside a whole kube-apiserver (CLUSTER_FLAGS="-run TestAggregate -events=1000000")
	@cd deploy/test/apiserver && $(TEST) -v . $(CLUSTER_FLAGS)

robustness: ## the long forms of the store's tests (ROBUSTNESS_FLAGS="-compress -run TestFlippedBytes")
	@cd eventsvc && $(GO) test -v -count=1 -timeout 6h -p 1 ./internal/store ./internal/store/bolt ./internal/store/maintenance ./internal/store/postgres -long $(ROBUSTNESS_FLAGS)

conformance: ## stock Kubernetes clients against a running eventsvc, on each engine
	$(call each,$(wildcard deploy/test/conformance),$(TEST) ./... && $(TEST) . -store=postgres -replicas=2)

image: ## container images tidings/tokensvc and tidings/eventsvc
	@set -e; for s in $(SERVICES); do docker build --file deploy/Dockerfile --build-arg REVISION --target $$s -t tidings/$$s .; done

up: ## PostgreSQL, tokensvc and eventsvc in containers
	docker compose up --build --wait
	@echo "console: http://$$(docker compose port eventsvc 8080)/console/   sign in with client demo, secret demo-secret"

down: ## stop the containers; the events stay
	docker compose down

install: build ## binaries and systemd units, below DESTDIR
	install -d $(DESTDIR)/usr/local/bin $(DESTDIR)/etc/systemd/system
	install -m 0755 $(SERVICES:%=bin/%) $(DESTDIR)/usr/local/bin
	install -m 0644 deploy/systemd/*.service $(DESTDIR)/etc/systemd/system

release: manual ## static binaries for linux/amd64 and arm64, an SBOM for each, and checksums, in bin/release
	@cd deploy/tools && CGO_ENABLED=0 $(GO) build -o ../../bin/sbom ./sbom
	@set -e; mkdir -p bin/release; for a in $(ARCHS); do for s in $(SERVICES); do (cd $$s && CGO_ENABLED=0 GOOS=linux GOARCH=$$a $(BUILD) $(if $(wildcard .git/HEAD),-buildvcs=true) -o ../bin/release/$$s-linux-$$a .); done; done
	@set -e; cd bin/release; for f in $(RELEASED); do ../sbom $$f >$$f.cdx.json; done; sha256sum $(RELEASED) $(RELEASED:%=%.cdx.json) | tee SHA256SUMS

modules: ## all modules into the module cache
	$(call each,$(MODULES),$(GO) mod download)

tidy: ## go mod tidy in every module
	$(call each,$(MODULES),$(GO) mod tidy)

site: ## the manual as static pages, in bin/site
	@cd deploy/docs && $(GO) run . ../../bin/site

verify: ## go.mod files are tidy, all is formatted, comments can be read in a diff
	$(call each,$(MODULES),$(GO) mod tidy -diff && $(GO) mod verify)
	@test -z "$$(gofmt -l $(CODE))" || { gofmt -l $(CODE); echo "make verify: run gofmt -w on these files"; exit 1; }
	@! LC_ALL=C.UTF-8 grep -rnE --include='*.go' '^[[:blank:]]*// [^[:blank:]0-9-].{117,}' $(CODE) || { echo "make verify: no line of a comment has more than 120 columns"; exit 1; }
