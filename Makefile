# Everyday targets: make help lists them, and go run -C cmd/lab . help the programs of the
# laboratory.
OUT      ?= lameduck
VERSION  ?= $(shell git describe --tags --match "v*" --always --dirty 2>/dev/null || echo dev)
GOARCH   ?= $(shell go env GOARCH)
SIGCATCH := github.com/lameduck-init/lameduck/shim/internal/sigcatch
RUNS     := cmd/lab/internal/rollout/testdata

# The linker's flags. -E: the program begins with a few instructions of lameduck, which
# record the signal mask and the ignored signals before Go's runtime changes both, and give
# the runtime one processor. Other machines than amd64 and arm64 go without: there
# os/signal catches signals, and asyncpreemptoff leaves SIGURG to other processes, of which
# sigcatch.preemption informs lameduck.
LDFLAGS  := -s -w -X main.version=$(VERSION)
ifneq ($(filter amd64 arm64,$(GOARCH)),)
LDFLAGS  += -E $(SIGCATCH).entry
else
LDFLAGS  += -X runtime.godebugDefault=asyncpreemptoff=1,containermaxprocs=0,updatemaxprocs=0
LDFLAGS  += -X $(SIGCATCH).preemption=off
endif

FLAGS    := -trimpath -buildvcs=false
BUILD    := go build $(FLAGS) -ldflags '$(LDFLAGS)' -o $(OUT) ./cmd/lameduck
# With the flags of BUILD, the laboratory and lameduck share the compiled standard library.
RUNLAB   := go run -C cmd/lab $(FLAGS) .

export CGO_ENABLED ?= 0
.PHONY: build demo test race fuzz soak bench lab pictures check ci help

build: ## the program, at ./lameduck or OUT=PATH
	$(BUILD)
demo: ## one stop under load: bare, with sleeps, with lameduck; needs only Go
	@echo "building lameduck ..."
	@$(BUILD)
	@echo "building the demo ..."
	@$(RUNLAB) demo $(abspath $(OUT))
test: build ## all tests of the product; a test that the machine cannot run says why
	go vet ./...
	go test ./...
	go vet -C cmd/lab . ./internal/truth
	go test -C cmd/lab -count=1 -v . ./internal/truth
race: build ## the same under the race detector, which needs a C compiler
	CGO_ENABLED=1 go test -race ./...
fuzz: ## every fuzz target for FUZZTIME=60s, ten at a time
	.ci/fuzz $(or $(FUZZTIME),60s)
soak: build ## storms, orphans and stops at random for SOAK=10m: no resource leaks
	go test -count=1 -v -timeout=0 -run=TestSoak ./shim/internal/e2e/soak -for=$(or $(SOAK),10m) -lameduck=$(abspath $(OUT))
bench: build ## beside tini, dumb-init, catatonit and ss: ratios, budgets; BENCH=-quick
	$(RUNLAB) bench $(BENCH) $(abspath $(OUT))
lab: build ## rollouts under load, the README's chart and the tables; LAB=-help
	$(RUNLAB) rollout -svg=$(CURDIR)/docs/lab.svg -json=$(CURDIR)/lab.json $(LAB) $(abspath $(OUT))
pictures: build ## docs/demo.svg, from real stops
	$(RUNLAB) demo -json=$(CURDIR)/$(RUNS)/demo.json -svg=$(CURDIR)/docs/demo.svg $(abspath $(OUT))
check: ## formats, lints, vulnerabilities, manual: what runs no code; CHECK='format vet'
	.ci/check $(CHECK)
ci: ## what CI runs, or PART='install tests lint': a function in .ci/run each
	.ci/run $(PART)
help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-8s  %s\n", $$1, $$2}' Makefile
