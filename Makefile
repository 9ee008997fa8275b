# make build   leaves the binary at ./lameduck, or at OUT
# make demo    shows what it is for (needs Go and make alone)
# make test    all tests; what the machine lacks is skipped, with the reason
# make bench   beside the other inits, and ss: medians, ratios, budgets
# make check   all that reads the code and runs none of it
# make fuzz    every fuzz target for a minute
# make soak    ten minutes of storms, orphans and stops: nothing leaks
# make lab     rollouts behind real balancers, beside tini, dumb-init and sleeps
# make systems other kernels and processors, under QEMU

OUT     ?= lameduck
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
MODULE  := github.com/lameduck-init/lameduck

# -E: the program begins in our own few instructions, which note the signal mask and
# the ignored signals before Go's runtime changes them, and give the runtime one
# processor. On other machines than amd64 and arm64 os/signal catches: asyncpreemptoff
# leaves URG to other processes, and sigcatch.preemption tells our code so; the other
# two are those of cmd/lameduck/version.go, which -X replaces.
GOARCH  ?= $(shell go env GOARCH)
LDFLAGS := -s -w -X main.version=$(VERSION)
ifneq ($(filter amd64 arm64,$(GOARCH)),)
LDFLAGS += -E $(MODULE)/shim/internal/sigcatch.entry
else
LDFLAGS += -X runtime.godebugDefault=asyncpreemptoff=1,containermaxprocs=0,updatemaxprocs=0
LDFLAGS += -X $(MODULE)/shim/internal/sigcatch.preemption=off
endif

# These run once or never; inlining them would cost 200 kB.
COLD    := github.com/alecthomas/kong encoding/json fmt go/... internal/poll internal/reflectlite internal/sync \
	net/url os/... reflect regexp/... strconv strings syscall time $(MODULE)/cmd/lameduck

export CGO_ENABLED ?= 0

.PHONY: build demo test containers images bench k8s e2e-k8s docs lint race golden lab lab-quick systems check fuzz soak clean
build:
	go build -trimpath -buildvcs=false $(COLD:%=-gcflags=%=-l) -ldflags '$(LDFLAGS)' -o $(OUT) ./cmd/lameduck

# The laboratory's smallest case.
demo: build
	@go run -C cmd/lab -buildvcs=false . -demo $(CURDIR)/lameduck

test: build
	go vet ./... ./testdata/bench/... ./testdata/fuzz ./testdata/images ./testdata/soak
	go test ./...

# Beside tini, dumb-init and catatonit, and beside ss where it looks at traffic, as
# far as they are installed: medians, and ratios with their budgets and goals. Takes
# five minutes; BENCH=-quick, two; BENCH=-traffic has only the looks.
bench: build
	go run -buildvcs=false ./testdata/bench $(BENCH) ./lameduck

# Rollouts under load, behind HAProxy and nginx, which must be installed, as must
# tini and dumb-init: failed requests and stop times, beside what people use instead.
# Takes a quarter of an hour; draws the README's chart. LAB=-help has the flags.
lab: build
	go run -C cmd/lab -buildvcs=false . $(LAB) -svg=$(CURDIR)/docs/lab.svg -json=$(CURDIR)/lab.json $(CURDIR)/lameduck

# A selection of it in a minute and a half, and the laboratory's own tests.
lab-quick: build
	go vet -C cmd/lab ./...
	go test -C cmd/lab -count=1 ./...
	go run -C cmd/lab -buildvcs=false . -quick $(CURDIR)/lameduck

# The binary as PID 1 of Debian's kernels for amd64, arm64 and s390x, under QEMU:
# qemu-system-x86, qemu-system-arm and qemu-system-misc. Downloads the kernels into
# KERNELS, unless there are some. Takes twenty minutes; SYSTEMS='-only s390x' has only
# the rows that contain the text.
KERNELS ?= kernels
systems:
	test -d $(KERNELS) || .ci/kernels $(KERNELS)
	go run -C cmd/lab -buildvcs=false . systems -kernels=$(abspath $(KERNELS)) $(SYSTEMS)

# In real containers, for which podman and runc must be installed.
containers: build
	go test -run Container ./shim/internal/e2e -containers

# The Dockerfiles, built and stopped under load. Needs root, podman, runc and iproute2;
# haproxy, nginx, php-fpm and java as far as they are installed. Takes a minute, on a
# busy machine two.
images: build
	go vet ./testdata/images/...
	go test -count=1 -parallel 12 ./testdata/images

# The manifests: a module of its own, with much of Kubernetes to compile.
k8s:
	cd testdata/k8s && go vet ./... && go test -count=1 ./...

# What the pages say: their commands are typed, their manifests explained, their links
# followed. A module of its own, with Kubernetes' types to compile: a minute cold, ten
# seconds warm. The go command would not see that a page has changed: -count=1.
docs:
	cd testdata/docs && go vet ./... && go test -count=1 ./...

# The linter of manifests and Dockerfiles, a module of its own, and what it says of
# ours. Ten seconds; the first time it downloads and compiles for a minute.
lint:
	cd cmd/lameduck-lint && go vet ./... && go test -count=1 ./...
	go run -C cmd/lameduck-lint -buildvcs=false . $(CURDIR)/testdata/k8s $(CURDIR)/testdata/images $(CURDIR)/Dockerfile.example

# Rollouts in the cluster that KUBECONFIG names, with each manifest: failed requests and
# stop times, beside plain TERM and a sleep. Takes a quarter of an hour; E2E=-help has
# the flags. E2E_LOAD is the command that brings an image into the cluster, for kind:
#   E2E_LOAD='kind load image-archive "$ARCHIVE"' make e2e-k8s
# k3d image import "$ARCHIVE", minikube image load "$ARCHIVE", ctr -n k8s.io images
# import "$ARCHIVE"; or, with E2E_IMAGES=REGISTRY/PATH, crane push "$ARCHIVE" "$IMAGE".
e2e-k8s:
	cd testdata/k8s && go run -buildvcs=false ./e2e $(E2E)

# All tests under the race detector, which needs a C compiler.
race: build
	CGO_ENABLED=1 go test -race ./...

# Formats, vets, lints, looks for vulnerabilities, and so on, with pinned tools; see
# .ci/check. Half a minute, and four the first time, when they are built. CHECK='format
# vet' is those parts alone.
check:
	.ci/check $(CHECK)

# Every fuzz target, eight at a time: a minute and a half on two processors.
FUZZTIME ?= 60s
fuzz:
	go run -buildvcs=false ./testdata/fuzz -for=$(FUZZTIME)

# The built lameduck as PID 1 of namespaces, under load, at random; before that, half
# a minute for the soak itself to find the faults of bad inits. SOAK=30s is a short
# one, SOAK='1h -seed=N' a long one along a known course.
SOAK ?= 10m
soak: build
	go test ./testdata/soak
	go run -buildvcs=false ./testdata/soak -for=$(SOAK) ./lameduck

# Writes what is found into the golden files. Read the diff.
golden:
	go test ./shim ./shim/internal/stop ./shim/internal/sockdiag -update

clean:
	rm -f lameduck lab.json
