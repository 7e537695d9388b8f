# lakefs-mount. `make demo` and `make test` are the two to know.

GO       ?= go
BIN      := bin/lakefs-mount
DEMO     ?= demo
FUZZTIME ?= 20s
TIMEOUT  ?= 20m
LARGE_TIMEOUT ?= 90m
# How long the tests that kill go on, or how many kills: 30m, 5000.
SOAK     ?= 30m
SOAK_TIMEOUT ?= 12h
# PySpark and its jars, some 800 MB that `make test` does without.
SPARK    := .cache/spark
PKGS     ?= ./...
# What runs on a second store too. Lakes of a Glue catalog are in buckets in the
# first run, and skip themselves in the second.
S3_PKGS  ?= ./fs/... ./internal/testing/tools/...
# Mounts of the tests are counted here, a line each.
MOUNTS   := .cache/mounts

# go.mod names the toolchain; an older Go fetches it, whatever the environment says.
export GOTOOLCHAIN := auto
export GOFLAGS := $(filter-out -mod=% -modfile=%,$(GOFLAGS))
# Stamped with the revision where git answers (not so for another user's clone).
VCS := $(shell git rev-parse HEAD >/dev/null 2>&1 && echo auto || echo false)

# Debian packages: DEMO_TOOLS for the demo, TEST_TOOLS for the tests. COMMAND=PACKAGE.
DEMO_TOOLS := fusermount3=fuse3
TEST_TOOLS := $(DEMO_TOOLS) gcc=gcc rsync=rsync vim=vim gawk=gawk ed=ed patch=patch zip=zip unzip=unzip \
	sqlite3=sqlite3 jq=jq node=nodejs ps=procps perl=perl git=git python3=python3 xxd=xxd \
	getfattr=attr bzip2=bzip2 xz=xz-utils zstd=zstd cpio=cpio curl=curl flock=util-linux \
	pigz=pigz lz4=lz4 wget=wget sponge=moreutils emacs=emacs-nox java=default-jre-headless \
	fio=fio file=file man=man-db dh_bash-completion=bash-completion

.PHONY: all build demo deps fuse venv test test-large test-spark race soak fuzz bench bench-quick bench-write bench-program peers packages test-packages lint fmt cover e2e check clean

all: build

build: ## bin/lakefs-mount
	$(GO) build -buildvcs=$(VCS) -o $(BIN) ./cmd/lakefs-mount

demo: fuse build ## a mounted demo lake in ./demo
	@$(BIN) demo $(DEMO)

fuse: ## what a mount needs
	@tools/deps.sh $(DEMO_TOOLS)

venv: ## Python readers, writers and servers of the tests, in .venv
	@tools/venv.sh .venv

deps: ## what the tests need: Debian packages, Python readers and servers in .venv, versitygw and promtool
	@tools/deps.sh $(TEST_TOOLS)
	@tools/venv.sh .venv
	@GO="$(GO)" tools/versitygw.sh >/dev/null
	@tools/promtool.sh >/dev/null || echo "No promtool: the tests that need it are skipped" >&2

test: deps ## everything, on real mounts; the mount's tests on a folder and on S3
	@GO="$(GO)" tools/test.sh $(MOUNTS) -timeout $(TIMEOUT) $(PKGS)
	@MOUNTTEST_STORE=s3 MOUNTTEST_AGAIN=1 GO="$(GO)" tools/test.sh $(MOUNTS) -timeout $(TIMEOUT) $(S3_PKGS)

race: deps ## the same under the race detector, and the mount's tests on one processor
	@GO="$(GO)" tools/test.sh $(MOUNTS) -race -timeout $(TIMEOUT) $(PKGS)
	@MOUNTTEST_STORE=s3 MOUNTTEST_AGAIN=1 GO="$(GO)" tools/test.sh $(MOUNTS) -race -timeout $(TIMEOUT) $(S3_PKGS)
	@GOMAXPROCS=1 GO="$(GO)" tools/test.sh $(MOUNTS) -race -timeout $(TIMEOUT) ./fs/... ./cmd/...

test-large: deps ## the tests that move gigabytes, one package at a time
	@MOUNTTEST_LARGE=1 GO="$(GO)" tools/test.sh $(MOUNTS) -p 1 -timeout $(LARGE_TIMEOUT) -run Large $(PKGS)

test-spark: deps ## the tests with PySpark, which is downloaded once into .cache/spark
	@tools/spark.sh $(SPARK)
	@MOUNTTEST_SPARK=$(CURDIR)/$(SPARK) GO="$(GO)" tools/test.sh $(MOUNTS) -p 1 -v -timeout $(LARGE_TIMEOUT) -run '^TestSpark$$' ./internal/testing/spark ./internal/testing/glueworld ./render

e2e: deps ## the mount's tests alone
	@GO="$(GO)" tools/test.sh $(MOUNTS) -timeout $(TIMEOUT) ./fs/... ./cmd/... ./internal/testing/...

soak: deps ## the crash tests at length: for SOAK=30m, or SOAK=5000 kills
	@LAKEFS_SOAK=$(SOAK) GO="$(GO)" tools/test.sh $(MOUNTS) -p 1 -v -timeout $(SOAK_TIMEOUT) -run 'Crash|Kill' ./commit ./staging ./internal/testing/crash/...

fuzz: ## each fuzz target for FUZZTIME
	@GO="$(GO)" tools/fuzz.sh $(FUZZTIME)

BENCH := .cache/bench

bench: fuse venv bench-program peers ## everything, some half an hour: a far store beside other mounts (into docs/), a folder beside go-fuse's loopback, Go's benchmarks
	@$(BENCH) -read -docs docs $(BENCHFLAGS)
	@$(BENCH) $(BENCHFLAGS)
	$(GO) test -run '^$$' -bench . -benchmem -timeout 30m $(PKGS)

bench-quick: fuse bench-program peers ## some cases of reading from a far store, in two minutes
	@$(BENCH) -read -quick -rounds 1 -large 268435456 $(BENCHFLAGS)

bench-write: fuse bench-program ## writing to an S3 store that is far away, beside a plain program with the AWS SDK
	@$(BENCH) -write $(BENCHFLAGS)

bench-program:
	@GO="$(GO)" tools/versitygw.sh >/dev/null
	@mkdir -p .cache
	@$(GO) build -buildvcs=false -o $(BENCH) ./internal/testing/bench

peers: ## the other mounts of the benchmark: rclone and s3fs
	@GO="$(GO)" tools/peers.sh

packages: ## dist/: deb, rpm and tar.gz for amd64 and arm64, the same bytes wherever they are built
	@GO="$(GO)" tools/packages.sh dist

test-packages: deps packages ## as root: the deb in a fresh Debian under systemd, killed in every way; reproducible from nothing; lintian and rpm
	@tools/deps.sh debootstrap=debootstrap lintian=lintian rpm=rpm unshare=util-linux
	@MOUNTTEST_PACKAGES=1 $(GO) test -count=1 -v -timeout 60m ./packaging

lint: ## go vet and golangci-lint, built from tools/golangci-lint
	$(GO) vet $(PKGS)
	$(GO) tool -modfile=tools/golangci-lint/go.mod golangci-lint run $(PKGS)

fmt: ## gofumpt and goimports
	$(GO) tool -modfile=tools/golangci-lint/go.mod golangci-lint fmt

cover: deps ## coverage of all packages by all tests: .cache/cover.html
	@mkdir -p .cache
	$(GO) test -timeout $(TIMEOUT) -coverpkg=./... -coverprofile=.cache/cover.out $(PKGS)
	$(GO) tool cover -html=.cache/cover.out -o .cache/cover.html
	$(GO) tool cover -func=.cache/cover.out | tail -1

check: lint race ## what a change must pass

clean:
	rm -rf bin dist .cache
