# Two commands are all you need: `make run` and `make test`. `make help` lists the rest.

CARGO  ?= cargo
PORT   ?= 6379
SECONDS ?= 600
SAMPLE ?= 200
SEED   ?= 1
SHAPES ?=
PREFIX ?= /usr/lib/redis/modules
# Debian's packages: the server, its client and benchmark, and libclang, which bindgen reads Redis' header with.
PACKAGES = redis-server redis-tools libclang-dev
# What the clients of other languages need.
CLIENTS  = python3 python3-venv nodejs npm
# What the page and the site are tested with.
BROWSER  = chromium nodejs npm
MODULE   = target/release/libredis_ratelimit.so

# Tests mostly wait: for replicas, elections and timeouts.
export RUST_TEST_THREADS ?= $(shell expr 4 '*' $$(nproc))
# The commit, in as many digits in each clone.
export RATELIMIT_BUILD ?= $(shell git describe --always --exclude='*' --abbrev=12 --dirty 2>/dev/null || echo unknown)

# Cargo is no child of make's that shares its jobs.
unexport MAKEFLAGS

.DEFAULT_GOAL := help
.PHONY: help setup build build-tests run test test-units test-server packages test-packages test-client-releases test-clients test-http test-site compat lint demo page site bench fuzz simulate every-order soak coverage mutants release test-release reproduce publish test-deb image test-image install

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-20s %s\n", $$1, $$2 } \
		/^bench:/ { while (("tools/bench list" | getline what) > 0) print "                           " what }' $(MAKEFILE_LIST)

setup: ## Check for what is needed; as root or with sudo, install Debian's packages
	@tools/setup $(PACKAGES)

build: setup ## Build the module: target/release/libredis_ratelimit.so
	$(CARGO) build --release --locked

run: build ## Build, then start a server with the module on 127.0.0.1 (PORT=6379)
	@echo
	@echo "Try in another terminal:  redis-cli -p $(PORT) RL.GCRA user:1 15 30 1m"
	@echo
	redis-server redis.conf --port $(PORT)

TESTS = $(CARGO) test --locked --no-fail-fast --workspace --exclude ratelimit-benches

test: setup ## Build, then run the unit tests and the tests against real servers
	@$(MAKE) --no-print-directory --jobs=2 build build-tests
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target test-units test-server

# What the tests are and load. Cargo builds it beside the module, whose last step takes one core.
build-tests: setup
	$(TESTS) --tests --no-run
	$(CARGO) build --locked --package ratelimit-faulty

test-units:
	$(TESTS) --lib --test laws --test windows

test-server:
	$(TESTS) --test it

packages: ## Make the packages for Python and Node.js: target/packages/*.whl, *.tar.gz, *.tgz
	@tools/setup $(CLIENTS)
	tools/packages build

test-packages: build ## Make them, install them into empty environments, check their types, and run their tests
	@tools/setup $(CLIENTS)
	tools/packages

test-client-releases: build ## Test the packages with each minor release of redis-py, node-redis and ioredis that their metadata allow
	@tools/setup $(CLIENTS)
	tools/packages build
	tools/test-client-releases

test-clients: build ## Run client libraries and the packages: CL.THROTTLE unmodified, the examples, and MOVED on a three-node cluster
	@tools/setup $(CLIENTS)
	tools/test-clients

test-http: build ## Send real requests to FastAPI, Flask, Django, Express, Fastify and Hono behind the packages' middleware
	@tools/setup $(CLIENTS)
	tools/test-http

demo: build ## Draw the lessons, and a chart of every strategy on six shapes of traffic (target/demo; SHAPES="edge slow", DEMO_SERVER=host:port)
	$(CARGO) run --release --locked --package ratelimit-demo-drive -- $(SHAPES)

page: ## Make the page that lays the strategies side by side: target/page/compare.html
	tools/page

site: page ## Build the documentation as a site, with that page as its front: target/site/index.html
	tools/site

test-site: build site ## Open the page and the site in Debian's Chromium: links, search, arithmetic, accessibility
	@tools/setup $(BROWSER)
	tools/test-site

compat: setup ## Run the tests with the module of a release, against other releases of Redis and Valkey too (SERVER=valkey-9: that one only)
	tools/compat

lint: setup ## Formatting, clippy, no circles of imports, the English of the pages, the workflows
	$(CARGO) fmt --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(CARGO) clippy --locked --lib --bins --examples --manifest-path fuzz/Cargo.toml --target-dir target/fuzz/build -- -D warnings
	$(CARGO) fmt --check --manifest-path demo/Cargo.toml
	$(CARGO) clippy --locked --all-targets --manifest-path demo/Cargo.toml --target-dir target/page/build -- -D warnings
	@tools/setup python3
	tools/imports
	tools/prose
	tools/workflows

bench: $(if $(filter adaptive core list sketch,$(WHAT)),setup,build) ## Measure: WHAT=cpu, or one of
	@tools/bench $(WHAT)

fuzz: build ## Fuzz: half the time the core, guided by coverage, half calls, dumps and copies over the wire (SECONDS=600)
	tools/fuzz $$(($(SECONDS) / 2))
	RATELIMIT_FUZZ_SECONDS=$$(($(SECONDS) / 6)) $(CARGO) test --locked --no-fail-fast --test it fuzz:: -- --nocapture --test-threads=2

simulate: setup ## Nodes in memory, new seeds, and all that can go wrong: prints what happened, or the history that breaks a law (SECONDS=600)
	$(CARGO) run --release --locked --package ratelimit-laws --example simulate -- $(SECONDS)

every-order: ## Try all orders of arrivals, polls, releases, settlements and time of four callers and three tenants, on the lines as shipped (3 GB, a quarter of an hour or more)
	$(CARGO) run --release --locked --package ratelimit-laws --example every_order

soak: build ## A thousand connections, rude ones among them: latencies, memory, no errors (SECONDS=600)
	$(CARGO) bench --locked --package ratelimit-benches --bench soak -- soak --seconds=$(SECONDS)

coverage: setup ## Lines and regions of src/ that the tests reach, the modules in the servers included
	tools/coverage

mutants: ## Break the core and the engine in SAMPLE=200 places, one at a time: which do the tests without a server not notice? (SEED=1; WHERE=src: the module, by those with one)
	@tools/setup python3
	tools/mutants $(SAMPLE) $(SEED) $(WHERE)

release: setup ## Make all files of a release for x86-64 and arm64: target/dist (ARCHITECTURES=amd64)
	@tools/setup $(CLIENTS)
	tools/release

test-release: ## Load the module of those files in a server, install the packages of those files, and run their quick starts
	cd target/dist && sha256sum --check --quiet SHA256SUMS
	tar --extract --wildcards --to-stdout --file target/dist/*-linux-$$(dpkg --print-architecture).tar.gz '*/libredis_ratelimit.so' >target/released.so
	chmod +x target/released.so
	MODULE=target/released.so tools/packages try target/dist

reproduce: ## Make the release again from a clone in another folder: the same bytes? Commit everything before
	rm -rf target/again
	git clone --quiet . target/again
	env -u RATELIMIT_BUILD $(MAKE) -C target/again release
	diff target/dist/SHA256SUMS target/again/target/dist/SHA256SUMS

publish: ## Put those files on GitHub, as the release of the tag that the workflow runs for (gh)
	gh release create "$(GITHUB_REF_NAME)" --verify-tag --title "$(GITHUB_REF_NAME)" --generate-notes target/dist/*.* target/dist/SHA256SUMS

test-deb: ## Install Debian's package of those files, run Debian's server with it, and purge it again (root)
	tools/test-deb

image: ## Build the image of a server with those files by docker, podman or buildah (SERVER=valkey, SERVER=files, PLATFORMS=linux/amd64,linux/arm64)
	tools/image

test-image: ## Build the images on Debian's servers, run them, docker-compose.yml and the StatefulSet (root, podman; ARM64=1: that too)
	tools/test-image

install: ## Copy the built module to the folder PREFIX (/usr/lib/redis/modules); run make build before, as yourself
	@[ -e $(MODULE) ] || { echo "install: no $(MODULE); run: make build" >&2; exit 1; }
	install -D -m 755 $(MODULE) $(DESTDIR)$(PREFIX)/libredis_ratelimit.so
	@echo "Add to redis.conf:  loadmodule $(PREFIX)/libredis_ratelimit.so"
