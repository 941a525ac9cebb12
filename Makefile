# Every target sets up what it needs: a .venv with pinned, hashed requirements. Only Python 3.11+ and make are assumed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LOCK := $(BIN)/uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --quiet

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types imports coverage bench wheel lock clean

help: ## this list
	@sed -n 's/^\([a-z0-9-]*\):.*## /\1\t/p' Makefile | expand -t 12

$(VENV)/ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

test: $(VENV)/ready ## the quick suite
	$(BIN)/pytest -n 2 -q

check: lint types imports coverage ## everything a change must pass

lint: $(VENV)/ready ## ruff, and ruff's formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/ready ## mypy --strict
	$(BIN)/mypy

imports: $(VENV)/ready ## the import contracts: rows, pure core, two HTTP doors, readers that cannot write
	$(BIN)/lint-imports

clean: ## forget the environment and all caches
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage*
