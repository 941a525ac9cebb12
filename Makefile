# Every target sets up what it needs: a .venv with pinned, hashed requirements. Only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
BENCH := .venv-bench
IMAGE := dist/windlass-image.tar
# Code without I/O, clock or waiting: every branch of it is tested.
PURE := src/windlass/core/*,src/windlass/printable_text.py,src/windlass/kube/client/resources.py,src/windlass/kube/transport/retries.py,src/windlass/kube/transport/line_splitter.py,src/windlass/kube/client/objects.py,src/windlass/kube/decoding.py,src/windlass/kube/auth/proxies.py,src/windlass/kube/redactions.py,src/windlass/kube/api_errors.py
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet
E2E := $(BIN)/pytest -v -s -p no:randomly --timeout=600 --durations=10

# The tests start hundreds of processes: each would compile every module anew where the environment forbids to keep that.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test sim mutants fuzz audit check lint types imports coverage bench clients browser wheel image image-run-demo image-push image-test lock clean e2e-build e2e e2e-up e2e-shell recordings transcript

help: ## list all targets
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

$(VENV)/ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(VENV)/ready ## deploy, break, fix, check and remove a platform on an embedded cluster; about a minute
	$(BIN)/windlass demo

test: $(VENV)/ready ## run the quick suite, without slow tests
	$(BIN)/pytest -n 4 -q -m "not slow"

sim: $(VENV)/ready ## simulate ten thousand seeded runs with faults and crashes; SEED=n shows one run, SEEDS=n sets the number, FIRST=n the first
	$(BIN)/python -m tests.simulation $(if $(SEED),$(SEED),--seeds $(or $(SEEDS),10000) --first $(or $(FIRST),0))

mutants: $(VENV)/ready ## apply one-line changes that break an invariant; the test of the invariant must fail
	$(BIN)/python -m tests.mutants

fuzz: $(VENV)/ready ## fuzz every decoder of external input for a minute; SECONDS=n, SEED=n
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),60) --seed $(or $(SEED),0)

audit: $(VENV)/ready ## check the pinned requirements against an advisory database in ADVISORIES, offline
	$(BIN)/python -m tests.advisories $(ADVISORIES)

check: lint types imports coverage ## run everything that a change must pass

lint: $(VENV)/ready ## run ruff, and check the formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready ## run mypy --strict
	$(BIN)/mypy

imports: $(VENV)/ready ## check the import contracts: layers, pure core, write access, one module for each library
	$(BIN)/lint-imports

# The contracts run the sandbox on a thread of its own, which is not traced: what is measured of it is less than what runs.
coverage: $(VENV)/ready ## run all tests with branch coverage: 100 % of pure code, 80 % of the sandbox, 97 % of the rest
	$(BIN)/coverage erase
	$(BIN)/pytest -n 5 -q --cov --cov-report=
	$(BIN)/coverage report --fail-under=97 --omit='src/windlass/sandbox/*'
	$(BIN)/coverage report --fail-under=80 --include='src/windlass/sandbox/*'
	$(BIN)/coverage report --fail-under=100 --include='$(PURE)'

bench: $(BENCH)/ready ## benchmark the client beside others; writes docs/benchmarks.md and docs/benchmarks.json
	$(BENCH)/bin/python -m benchmarks

bench-real: e2e-build $(BENCH)/ready ## benchmark deploy beside sync waves and kubectl on the test bed; writes docs/benchmarks-real.md
	$(BENCH)/bin/python -m benchmarks.real_clusters

clients: $(BENCH)/ready ## run the official Python client and lightkube on the sandbox
	$(BENCH)/bin/pytest -q tests/sandbox/test_clients.py

browser: $(VENV)/ready ## attack the sandbox from a web page in Chromium and as another user; root on Debian
	$(BIN)/python -m tests.sandbox.browsers
	$(BIN)/pytest -q tests/sandbox/test_strangers.py

$(BENCH)/ready: requirements/bench.txt pyproject.toml
	$(PYTHON) -m venv $(BENCH)
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r requirements/bench.txt
	$(BENCH)/bin/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

wheel: $(VENV)/ready ## build the wheel and run it on every installed Python from 3.11 to 3.13
	rm -rf dist
	$(BIN)/pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir dist .
	$(BIN)/python -m tests.wheels dist

image: $(VENV)/ready ## build the container image dist/windlass-image.tar without a container daemon: root on Debian
	PYTHON=$(BIN)/python image/build $(IMAGE)

image-run-demo: ## run the demo in the image, without a network, with a read-only root file system
	image/run $(IMAGE) demo --out /tmp/windlass-demo

image-push: ## push the image; REGISTRY=registry.example.org/platform
	image/push $(IMAGE) $(REGISTRY)

image-test: image ## test the image: its content, the Containerfile, a push to a registry on loopback
	$(BIN)/pytest -v -p no:randomly --timeout=1200 tests/image

lock: $(VENV)/ready ## update the pinned requirements from pyproject.toml
	$(BIN)/pip install --quiet --disable-pip-version-check uv
	$(LOCK) --output-file requirements/run.txt
	$(LOCK) --group dev --constraint requirements/run.txt --output-file requirements/dev.txt
	$(LOCK) --group dev --group bench --constraint requirements/dev.txt --output-file requirements/bench.txt

e2e-build: $(VENV)/ready ## build real Kubernetes and Argo CD for the test bed; root on Debian
	$(BIN)/python -m tests.testbed build

e2e: e2e-build ## run the tests on the test bed
	WINDLASS_KUBECTL_REQUIRED=1 $(BIN)/pytest -n 2 -q tests/sandbox/test_kubectl.py
	$(E2E) tests/e2e -m own_bed
	$(BIN)/python -m tests.testbed run sh -c '$(E2E) tests/e2e -m "not own_bed" && $(BIN)/pytest -n 2 -q tests/contracts'

e2e-up: $(VENV)/ready ## run a test bed in the foreground; tests use it with WINDLASS_TESTBED
	$(BIN)/python -m tests.testbed up --argocd

e2e-shell: $(VENV)/ready ## open a shell with kubectl for the running test bed
	$(BIN)/python -m tests.testbed shell

transcript: $(VENV)/ready ## record docs/transcript.md: a first use on the sandbox
	$(BIN)/python -m tests.transcript

recordings: e2e-build ## record what real controllers do, on a separate test bed; review the difference
	$(BIN)/python -m tests.testbed run $(BIN)/python -m tests.recordings record $(NAMES)

clean: ## delete the environment and all caches
	rm -rf $(VENV) $(BENCH) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
