# Two commands do everything on a fresh machine (Rust and Python 3.10+ present): `make demo` and `make test`.
# The rest are their parts, by name. Stamps under .venv/stamps keep a second run quick; `make clean` forgets them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
STAMPS := $(VENV)/stamps
PY := $(BIN)/python
PIP := $(PY) -m pip --quiet --disable-pip-version-check

RUST_SOURCES := Cargo.toml Cargo.lock pyproject.toml python/holdback/_core.pyi $(wildcard build.rs) $(shell find src -name "*.rs")
comma := ,
say = @printf '\n\033[1m== %s\033[0m\n' "$(1)"

.PHONY: help demo test setup build fmt lint lint-rust lint-python types test-rust test-python test-threads test-integrations test-platforms bench bench-report fuzz crate msrv \
	dist sdist wheels check-dist test-dist release-check docs clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 22

demo: $(STAMPS)/build $(STAMPS)/serve ## `holdback cut` on a document, `holdback serve` in front of a model: each step shown
	@$(PY) examples/demo.py
	@$(PY) examples/demo_serve.py

test: lint test-rust types test-python ## everything that must be green: lints, types, Rust and Python tests

# --- set-up: the virtual environment, its tools, the compiled module -----------------------------------------------

$(STAMPS)/venv:
	$(call say,Virtual environment in $(VENV))
	@python="$$(tools/find-python)"; "$$python" -m venv --clear $(VENV); "$(PY)" --version
	@$(PIP) install --upgrade 'pip>=25.1' # 25.1 is the first that reads [dependency-groups]
	@mkdir -p $(STAMPS) && touch $@

$(STAMPS)/build-tools: pyproject.toml $(STAMPS)/venv
	$(call say,Build tools)
	@$(PIP) install --group build
	@touch $@

$(STAMPS)/dev: pyproject.toml $(STAMPS)/venv
	$(call say,Development tools)
	@$(PIP) install --group dev
	@touch $@

$(STAMPS)/serve: pyproject.toml $(STAMPS)/venv
	$(call say,What the gateway needs)
	@$(PIP) install --group serve
	@touch $@

# A stale module beside the sources would win over the new one, so it goes first. Release profile: a debug build is
# ten times slower and its numbers mean nothing.
$(STAMPS)/build: $(RUST_SOURCES) $(STAMPS)/build-tools
	$(call say,Compile and install holdback (release))
	@tools/check-rust
	@rm -f python/holdback/_core*.so python/holdback/_core*.pyd
	@env -u CONDA_PREFIX VIRTUAL_ENV="$(abspath $(VENV))" $(PY) -m maturin develop --release --locked --quiet
	@touch $@

setup: $(STAMPS)/dev ## make .venv with all tools
build: $(STAMPS)/build ## compile the module and install it into .venv

# --- checks ----------------------------------------------------------------------------------------------------------

fmt: $(STAMPS)/dev ## format Rust and Python
	@cargo fmt
	@rustfmt --edition 2024 fuzz/src/drive.rs fuzz/fuzz_targets/*.rs
	@$(BIN)/ruff check --quiet --fix-only .
	@$(BIN)/ruff format --quiet .

lint: lint-python lint-rust ## formatting, clippy, ruff

lint-rust:
	$(call say,rustfmt and clippy)
	@tools/check-rust fmt clippy
	cargo fmt --check
	rustfmt --check --edition 2024 fuzz/src/drive.rs fuzz/fuzz_targets/*.rs
	cargo clippy --locked --all-targets --quiet -- -D warnings
	cargo clippy --locked --all-targets --quiet --features python -- -D warnings

lint-python: $(STAMPS)/dev
	$(call say,ruff)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMPS)/dev $(STAMPS)/build ## mypy and pyright strict; the stub against the compiled module
	$(call say,mypy$(comma) pyright and stubtest)
	$(BIN)/mypy
	$(BIN)/basedpyright
	MYPYPATH=python $(PY) -m mypy.stubtest holdback._core --allowlist tools/stubtest-allowlist

test-rust: ## the core alone: pyo3 is not compiled
	$(call say,Rust tests)
	@tools/check-rust
	cargo test --locked --quiet

test-python: $(STAMPS)/dev $(STAMPS)/build ## pytest against the installed module
	$(call say,Python tests)
	$(PY) -m pytest --quiet

test-deep: $(STAMPS)/dev $(STAMPS)/build ## the property tests with many more examples (an hour or more)
	$(call say,Python property tests$(comma) deep)
	HYPOTHESIS_PROFILE=deep $(PY) -m pytest --quiet -o timeout=0 tests/test_differential.py tests/test_properties.py

test-threads: $(STAMPS)/dev $(STAMPS)/build ## the Python tests again, each in several threads at once
	$(call say,Python tests in threads)
	@$(PIP) install --group threads
	$(PY) -m pytest --quiet --parallel-threads=4 --ignore=tests/test_cli_cut.py --ignore=tests/test_layering.py tests

# Not part of `make test` or of CI: installing takes as long as all other checks together. An environment of its own: the integrated packages bring a hundred packages, and what types are checked against should not change.
INTEGRATIONS := $(VENV)/integrations
ifeq ($(OS),Windows_NT)
INTEGRATIONS_PY := $(INTEGRATIONS)/Scripts/python
else
INTEGRATIONS_PY := $(INTEGRATIONS)/bin/python
endif

$(STAMPS)/integrations: pyproject.toml $(STAMPS)/venv
	$(call say,Integrations in $(INTEGRATIONS) (minutes))
	@$(PY) -m venv --clear $(INTEGRATIONS)
	@$(INTEGRATIONS_PY) -m pip --quiet --disable-pip-version-check install --upgrade 'pip>=25.1'
	@$(INTEGRATIONS_PY) -m pip --quiet --disable-pip-version-check install --group dev-integrations
	@touch $@

test-integrations: $(STAMPS)/integrations $(STAMPS)/build ## the adapters against the real packages (installs them: minutes)
	$(call say,Integrations)
	PYTHONPATH=python $(INTEGRATIONS_PY) -m pytest --quiet -W default -W error::ResourceWarning \
	  -W error::pytest.PytestUnraisableExceptionWarning tests/integrations # what those packages deprecate is theirs, what is left open may be ours

# Not part of `make test` either: needs root, makes whole systems outside the checkout, takes up to an hour.
PLATFORM ?= debian arm64 windows oldest
test-platforms: ## the suite on platforms that this machine is not: docs/platforms.md (root, Debian; up to an hour)
	@for one in $(PLATFORM); do tools/platforms/$$one; done

PEERS := "pyahocorasick>=2.3,<3" "ahocorasick-rs>=1,<2" "daachorse>=0.5,<0.6" "hyperscan>=0.9,<0.10" "pyperscan>=0.4,<0.5"
$(STAMPS)/peers: Makefile $(STAMPS)/dev
	$(call say,Peers for the benchmarks)
	@for peer in $(PEERS); do $(PIP) install --only-binary :all: "$$peer" || echo "left out: $$peer"; done
	@touch $@

bench: $(STAMPS)/peers $(STAMPS)/build ## all benchmarks, results in benches/results (minutes; run nothing beside them)
	$(call say,Benchmarks)
	$(PY) -m benches.run

bench-report: $(STAMPS)/dev $(STAMPS)/build ## the tables and the chart of docs/performance.md, from the newest results
	$(PY) -m benches.report

crate: ## the Rust crate on its own: package, documentation without warnings
	$(call say,Crate)
	@tools/check-rust
	cargo package --locked --allow-dirty --quiet
	version="$$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml)"; CARGO_TARGET_DIR=target \
	  cargo test --locked --quiet --manifest-path "target/package/holdback-$$version/Cargo.toml"
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps

# The oldest Rust is in Cargo.toml. Where it is not installed, clippy's incompatible_msrv in `make lint` is the check.
msrv: ## the tests on the oldest supported Rust (rustup installs it)
	$(call say,Oldest supported Rust)
	@tools/check-rust
	version="$$(sed -n 's/^rust-version *= *"\(.*\)"/\1/p' Cargo.toml)"; rustup toolchain install --profile minimal "$$version"; \
	  cargo "+$$version" test --locked --quiet

MINUTES ?= 2
fuzz: ## fuzz every target for MINUTES=2 in all
	$(call say,Fuzz)
	@tools/check-rust
	tools/fuzz $(MINUTES)

# --- what is published -------------------------------------------------------------------------------------------------

$(STAMPS)/dist-tools: pyproject.toml $(STAMPS)/build-tools
	$(call say,Packaging tools)
	@$(PIP) install --group dist
	@touch $@

dist: $(STAMPS)/dist-tools ## sdist, and from it wheels for every interpreter present; all checked
	$(call say,Build sdist and wheels)
	@tools/check-rust
	$(PY) tools/build_dist.py
	@$(MAKE) --no-print-directory check-dist

sdist: $(STAMPS)/dist-tools # for the release workflow: the sdist alone
	$(PY) tools/build_dist.py sdist

wheels: $(STAMPS)/dist-tools # for the release workflow: wheels from FROM=sdist
	@tools/check-rust
	$(PY) tools/build_dist.py wheels "$(FROM)"

check-dist: $(STAMPS)/dist-tools ## tags, contents, metadata, symbols and size of dist/
	$(call say,Check sdist and wheels)
	$(PY) tools/check_dist.py $(PARTIAL) $(TAG)

test-dist: $(STAMPS)/dist-tools ## install each file of dist/ into a fresh environment elsewhere and test it there
	$(call say,Test sdist and wheels)
	$(PY) tools/test_dist.py

release-check: ## everything that a release does but publish: the files, tried out, and built again from a clone
	@$(MAKE) --no-print-directory dist
	$(call say,The sdist once more$(comma) from a clone)
	$(PY) tools/build_dist.py again
	@$(MAKE) --no-print-directory test-dist crate

# --- documentation -----------------------------------------------------------------------------------------------------

$(STAMPS)/docs-tools: pyproject.toml $(STAMPS)/venv
	$(call say,Documentation tools)
	@$(PIP) install --group docs
	@touch $@

docs: $(STAMPS)/docs-tools ## the site, strictly, into site/
	$(call say,Documentation)
	$(BIN)/zensical build --strict --clean

clean: ## forget everything built here
	rm -rf $(VENV) target dist site fuzz/target .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -f python/holdback/_core*.so python/holdback/_core*.pyd
