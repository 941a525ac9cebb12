# Every target sets up what it needs: a .venv with pinned, hashed requirements. Only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
# Code without I/O, clock or waiting: every branch of it is tested.
PURE := src/windlass/core/*,src/windlass/printable_text.py,src/windlass/kube/client/resources.py,src/windlass/kube/transport/retries.py,src/windlass/kube/transport/line_splitter.py,src/windlass/kube/client/objects.py,src/windlass/kube/decoding.py,src/windlass/kube/auth/proxies.py,src/windlass/kube/redactions.py,src/windlass/kube/api_errors.py
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet
E2E := $(BIN)/pytest -v -s -p no:randomly --timeout=600 --durations=10

# The tests start hundreds of processes: each would compile every module anew where the environment forbids to keep that.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test sim mutants fuzz audit check lint types imports coverage bench clients browser wheel lock clean e2e-build e2e e2e-up e2e-shell recordings

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

$(VENV)/ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(VENV)/ready ## a platform is raised, broken, mended, checked and lowered on an embedded cluster, in a minute
	$(BIN)/windlass demo

test: $(VENV)/ready ## the quick suite: all tests but those marked slow
	$(BIN)/pytest -n 4 -q -m "not slow"

sim: $(VENV)/ready ## ten thousand seeded runs with faults and crashes; SEED=n tells the story of one, SEEDS=n plays fewer, FIRST=n begins there
	$(BIN)/python -m tests.simulation $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),10000) --first $(or $(FIRST),0))

mutants: $(VENV)/ready ## one-line changes that break an invariant: its own test must see each of them
	$(BIN)/python -m tests.mutants

fuzz: $(VENV)/ready ## every decoder of foreign bytes on random changes of a kept corpus, for a minute; SECONDS=n, SEED=n
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0)

audit: $(VENV)/ready ## the pins against a database of advisories in ADVISORIES, offline; says so if there is none
	$(BIN)/python -m tests.advisories $(ADVISORIES)

check: lint types imports coverage ## everything a change must pass

lint: $(VENV)/ready ## ruff, and ruff's formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready ## mypy --strict
	$(BIN)/mypy

imports: $(VENV)/ready ## the import contracts: rows, pure core, who may write, one door to each library
	$(BIN)/lint-imports

# The contracts run the sandbox on a thread of its own, which is not traced: what is measured of it is less than what runs.
coverage: $(VENV)/ready ## all tests, slow ones too, with branch coverage: 100 % where code is pure, 97 % elsewhere, 80 % of the sandbox
	$(BIN)/coverage erase
	$(BIN)/pytest -n 5 -q --cov --cov-report=
	$(BIN)/coverage report --fail-under=97 --omit='src/windlass/sandbox/*'
	$(BIN)/coverage report --fail-under=80 --include='src/windlass/sandbox/*'
	$(BIN)/coverage report --fail-under=100 --include='$(PURE)'

bench: $(BENCH)/ready ## the client beside others, in one run; writes docs/benchmarks.md and docs/benchmarks.json
	$(BENCH)/bin/python -m benchmarks

bench-real: e2e-build $(BENCH)/ready ## deploy beside sync waves and kubectl on the test bed; writes docs/benchmarks-real.md
	$(BENCH)/bin/python -m benchmarks.real_clusters

clients: $(BENCH)/ready ## other Kubernetes clients on the sandbox: the official one and lightkube
	$(BENCH)/bin/pytest -q tests/sandbox/test_clients.py

browser: $(VENV)/ready ## a web page in Chromium and another user of the machine, both refused by the sandbox: root on Debian
	$(BIN)/python -m tests.sandbox.browsers
	$(BIN)/pytest -q tests/sandbox/test_strangers.py

$(BENCH)/ready: requirements/bench.txt pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/bench.txt
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

wheel: $(VENV)/ready ## builds the wheel and runs it on every Python 3.11 to 3.13 found here
	rm -rf dist
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -m tests.wheels dist

lock: $(VENV)/ready ## pins anew from pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(LOCK) --output-file requirements/run.txt
	$(LOCK) --group dev --constraint requirements/run.txt --output-file requirements/dev.txt
	$(LOCK) --group dev --group bench --constraint requirements/dev.txt --output-file requirements/bench.txt

e2e-build: $(VENV)/ready ## fill the cache of the test bed: real Kubernetes and Argo CD, as root on Debian
	$(BIN)/python -m tests.testbed build

e2e: e2e-build ## the tests on the test bed; beds that are killed first, the shared one after
	WINDLASS_KUBECTL_REQUIRED=1 $(BIN)/pytest -n 2 -q tests/sandbox/test_kubectl.py
	$(E2E) tests/e2e -m own_bed
	$(BIN)/python -m tests.testbed run sh -c '$(E2E) tests/e2e -m "not own_bed" && $(BIN)/pytest -n 2 -q tests/contracts'

e2e-up: $(VENV)/ready ## run a test bed in the foreground; tests use it with WINDLASS_TESTBED
	$(BIN)/python -m tests.testbed up --argocd

e2e-shell: $(VENV)/ready ## a shell with kubectl for the running test bed
	$(BIN)/python -m tests.testbed shell

recordings: e2e-build ## record anew what real controllers do, on a bed of its own; review reads the diff
	$(BIN)/python -m tests.testbed run $(BIN)/python -m tests.recordings record $(NAMES)

clean: ## forget the environment and all caches
	rm -rf $(VENV) $(BENCH) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
