# Every verb prepares what it needs: `make demo` and `make test` work from a fresh clone with
# Python >= 3.11, Rust and make alone.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OUT ?= out/demo
# what the extension is made of, with what its build script reads: a changed test does not build it again
SOURCES := $(shell find crates -path '*/src/*' -name '*.rs') $(wildcard crates/*/Cargo.toml crates/*/build.rs) \
	Cargo.toml Cargo.lock pyproject.toml $(wildcard $(shell git rev-parse --git-path logs/HEAD 2>/dev/null))
PIP := -m pip install --quiet --disable-pip-version-check
# what pyproject.toml says that the package needs, or an extra
NEEDS = $(BIN)/python -c 'import sys, tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; known = {"package": project["dependencies"], **project["optional-dependencies"]}; print(*(one for name in sys.argv[1:] for one in known[name]), sep="\n")'

export CARGO_TERM_COLOR ?= auto

.PHONY: help setup quick stubs test-stubs page test-page demo check lint wasm test test-rust test-python test-slow test-live mutations coverage test-extras test-codec audit format fuzz test-fuzz swarm studies bench docs wheel dist fairness scorecards clean

help:
	@echo "make setup      .venv with the extension built into it"
	@echo "make quick      the same at once after a change: an extension that is built in seconds and runs slower"
	@echo "make stubs      python/tidegate/_core.pyi: signatures and docstrings of the extension, from its source"
	@echo "make page       the page of \`tidegate play\`; needs node and Rust's target wasm32-unknown-unknown"
	@echo "make demo       the main job: a comparison table, a figure and a report in $(OUT)"
	@echo "make check      lint, wasm and Rust tests: under five minutes when caches are warm"
	@echo "make test       Rust and Python tests, under ten minutes"
	@echo "make test-live  real programs on links, in network namespaces (Linux)"
	@echo "make test-slow  the long ones; needs chromium and tshark for some of them"
	@echo "make mutations  each paper again without its mechanism: which verdicts turn; ten minutes"
	@echo "make coverage   which part of the lines the fast tests run, by package and by crate"
	@echo "make test-extras  ONNX models and notebooks: installs what they need (200 MB), and tests them"
	@echo "make test-page  the page in a browser (chromium): builds it, and installs Playwright (140 MB)"
	@echo "make test-codec the encoder in the loop: a build with it in .cache/codec, and its tests"
	@echo "make lint       formatting, clippy, rustdoc, ruff, mypy, licences"
	@echo "make wasm       the pure crates compile for wasm32; pinned experiments and a play in a browser's engine give the same bits there"
	@echo "make audit      known vulnerabilities of crates and packages, as far as their lists can be had"
	@echo "make format     formats Rust and Python"
	@echo "make fuzz       each fuzz target for FUZZ_SECONDS (60); FUZZ_TARGETS=\"twcc rtp\": these"
	@echo "make swarm      random scenarios of every feature for SWARM_SECONDS (60): what must hold for each"
	@echo "make studies    measures the numbers of docs' tables again and writes both; STUDY=\"today avpf\": these"
	@echo "make fairness   every scheme beside every other: tables and pictures of docs/fairness.md, in minutes"
	@echo "make scorecards every scheme on every case of RFC 8867: tables of docs/scorecards.md, in minutes"
	@echo "make bench      tidegate beside ns-2 and SimPy; PEERS=ns3 for ns-3, too"
	@echo "make docs       the documentation site in site/; a dead link fails it"
	@echo "make wheel      an abi3 wheel in dist/, tried in a clean environment of each Python that is here"
	@echo "make dist       what a release publishes: a wheel for Linux with glibc 2.28, a source distribution; tried in plain Debian systems"

# the environment with the build tool; the stamp comes last, so that an interrupted step is done again
$(VENV)/.tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "tidegate needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make PYTHON=python3.12 ..."; exit 2; }
	@command -v cargo >/dev/null || { echo "tidegate needs Rust (cargo was not found): https://rustup.rs"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) 'maturin>=1.9,<2'
	@touch $@

# what the package, its tests and its tools need
$(VENV)/.packages: $(VENV)/.tools pyproject.toml
	@$(NEEDS) package dev > $(VENV)/requirements.txt
	$(BIN)/python $(PIP) -r $(VENV)/requirements.txt
	@touch $@

# the extension
$(VENV)/.ready: $(VENV)/.packages $(SOURCES)
	@echo "building the extension (two minutes the first time) ..."
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/maturin develop --locked --release --quiet > $(VENV)/build.log 2>&1 || { cat $(VENV)/build.log; exit 1; }
	@touch $@

setup: $(VENV)/.ready

# the default build is due again afterwards, whatever asks for it
quick: $(VENV)/.packages
	@rm -f $(VENV)/.ready
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/maturin develop --locked --profile quick --quiet

# signatures and docstrings as the extension tells them, which compiles what of it depends on PyO3
STUB := python/tidegate/_core.pyi
stubs: PROFILE ?= quick
stubs: $(VENV)/.packages
	@VIRTUAL_ENV=$(CURDIR)/$(VENV) PATH=$(CURDIR)/$(BIN):$$PATH $(BIN)/maturin generate-stubs --locked --profile $(PROFILE) --features pyo3/extension-module,stubs --out target/stubs --quiet
	@$(BIN)/python .ci/stubs.py target/stubs/tidegate/_core.pyi $(STUB)
	@$(BIN)/ruff check --quiet --fix $(STUB)
	@$(BIN)/ruff format --quiet $(STUB)

page:
	@.ci/page

demo: setup
	$(BIN)/tidegate compare gcc gcc:draft-02 tfrc fixed:2Mbps --scenario drop-and-download --seeds 3 --out $(OUT)
	@.ci/page --can

check: lint wasm test-rust

# all but `tidegate shell`, which is Linux's alone, is held to other systems, too
ELSEWHERE := --exclude tidegate/shell/ --follow-imports silent --no-warn-unreachable
lint: $(VENV)/.packages
	cargo fmt --all --check
	cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
	RUSTDOCFLAGS='-D warnings' cargo doc --locked --workspace --no-deps --quiet
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(foreach system,win32 darwin,$(BIN)/mypy --platform $(system) $(ELSEWHERE) python/tidegate &&) true
	@if command -v cargo-deny >/dev/null; then cargo fetch --locked --quiet && cargo deny --offline --log-level error check licenses bans sources; \
	else echo "cargo-deny is not installed: licences and sources were not checked (cargo install cargo-deny)"; fi

wasm:
	@.ci/wasm

test: test-rust test-python

# fails where the stub is not what the extension says; a build more, so that CI asks and `make test` does not. It is of the
# profile of tests, whose crates are compiled already
test-stubs: setup
	@$(MAKE) --no-print-directory stubs PROFILE=dev STUB=target/stubs/_core.pyi
	@cmp target/stubs/_core.pyi $(STUB) || { echo "$(STUB) is not what the extension says; make stubs writes it"; exit 1; }

test-rust:
	cargo test --locked --workspace --exclude tidegate-python --quiet
	cargo test --locked -p tidegate-python --features pyo3/extension-module --test fuzzed --quiet

test-python: setup
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist loadfile -m 'not slow' tests python/tidegate
	$(BIN)/python -m mypy.stubtest tidegate._core

# in namespaces of their own; says so where they are forbidden
LIVE := $(patsubst %,tests/python/%.py,shell/test_shell_live shell/test_shell_rights_live shell/test_shell_figures runs/test_sockets_live runs/test_sockets_hostile shell/test_calls_live shell/test_programs_live recordings/test_import_live)
test-live: setup
	$(BIN)/python -m pytest -q $(LIVE)

# what goes by the clock has the machine for itself; the page has a verb of its own
TIMED := $(LIVE) tests/python/runs/test_cluster.py tests/python/runs/test_sockets.py tests/python/results/test_dataset.py
PAGE := $(wildcard tests/python/show/test_page*.py)
test-slow: setup
	cargo test --locked --workspace --exclude tidegate-python --tests --quiet -- --ignored
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist loadfile -m 'slow and not mutation' $(patsubst %,--ignore=%,$(TIMED) $(PAGE)) tests
	$(BIN)/python -m pytest -q -m slow $(TIMED)

# ten minutes: each paper again without its mechanism, against what is kept with it
mutations: setup
	$(BIN)/python -m pytest -q -s -m mutation tests

# which lines the fast tests run
coverage: setup
	@.ci/coverage

# not among the extras that tests take, for their size
test-extras: setup
	@$(NEEDS) notebooks onnx > $(VENV)/extras.txt
	$(BIN)/python $(PIP) -r $(VENV)/extras.txt 'onnx>=1.17' 'pandas>=2.2'
	$(BIN)/python -m pytest -q tests/python/control/test_onnx.py tests/python/whole/test_notebooks.py tests/python/output/test_notebook_values.py

# where the page cannot be built, its tests say so and skip
test-page: setup
	@.ci/page --if-possible
	@$(NEEDS) page > $(VENV)/page.txt
	$(BIN)/python $(PIP) -r $(VENV)/page.txt
	@[ ! -d page/node_modules ] || npm --prefix page test --silent
	$(BIN)/python -m pytest -q tests/python/show/test_play.py $(PAGE)

# beside the other build: its extension would be in the way of the default one's tests
test-codec: $(VENV)/.tools
	cargo clippy --locked --release -p tidegate-codec -p tidegate-python --features codec-openh264 --all-targets --quiet -- -D warnings
	cargo test --locked --release -p tidegate-codec --features openh264 --quiet
	rm -rf .cache/codec
	$(BIN)/maturin build --locked --release --quiet --features codec-openh264 --out .cache/codec
	$(PYTHON) -m venv .cache/codec/venv
	.cache/codec/venv/bin/python $(PIP) "$$(ls .cache/codec/*.whl)[media,test]"
	.cache/codec/venv/bin/python -m pytest -q tests/python/media/test_media_codec.py

audit: setup
	@.ci/audit

format: setup
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# what they check runs as ordinary tests, too, with a thousand mutations
fuzz: setup
	cd fuzz && FUZZ_RUNS=$(FUZZ_RUNS) ./run $(or $(FUZZ_SECONDS),60) $(FUZZ_TARGETS)

# that the targets compile: with a sanitizer each of them takes minutes
test-fuzz:
	cd fuzz && cargo check --locked --bins --quiet

# STUDY="today avpf": these; all by default
studies: setup
	PYTHONPATH=tests/python $(BIN)/python studies/remake.py $(STUDY)

fairness: setup
	$(BIN)/python studies/fairness.py
	TIDEGATE_BLESS=1 $(BIN)/python -m pytest -q tests/python/whole/test_fairness.py
	$(BIN)/python docs/make_figures.py fairness

scorecards: setup
	$(BIN)/python studies/scorecards.py
	TIDEGATE_BLESS=1 $(BIN)/python -m pytest -q -m 'not slow' tests/python/suite/test_scorecards.py

swarm: setup
	$(BIN)/python tests/python/swarm.py --seconds $(or $(SWARM_SECONDS),60) --out out/swarm

bench: setup
	PEERS="$(PEERS)" $(BIN)/python benches/run.py $(BENCH_ARGS)

docs: setup
	@$(NEEDS) docs > $(VENV)/docs.txt
	$(BIN)/python $(PIP) -r $(VENV)/docs.txt
	$(BIN)/python docs/gen_reference.py
	$(BIN)/mkdocs build --strict --quiet

wheel: $(VENV)/.tools
	@.ci/wheel

# what a release publishes, tried in plain Debian systems; a quarter of an hour
dist: $(VENV)/.tools
	@.ci/dist

clean:
	rm -rf $(VENV) target dist site out .cache fuzz/target page/engine page/node_modules python/tidegate/show/play/page.html
