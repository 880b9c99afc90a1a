# Everything sets itself up: the first target that needs the environment makes it, from the
# hash-locked list, with nothing but a Python >= 3.11 and make on the machine.

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

.DEFAULT_GOAL := help
.PHONY: help demo test check e2e bench lock clean

help:
	@echo "make demo    the main job on this machine, live, in about a minute (no cluster needed)"
	@echo "make test    every test that needs no engine, with branch coverage"
	@echo "make check   ruff, mypy, import contracts, documentation"
	@echo "make e2e     a real vLLM on the CPU (installed once into the user's cache, about 4 GB)"
	@echo "make bench   the benchmarks, as JSON"

# --- environment ---------------------------------------------------------------------------

$(STAMP): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "leadtime needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python3" >&2; exit 2; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(STAMP)

# --- what people run ------------------------------------------------------------------------

demo: $(STAMP)
	@$(BIN)/leadtime demo

test: $(STAMP)
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -q
	$(BIN)/coverage combine -q
	$(BIN)/coverage report --include='adapter/fleet/*,adapter/scaling/*,adapter/policy/*' --fail-under=100
	$(BIN)/coverage report --fail-under=90

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/architecture
	$(BIN)/leadtime lint policies

e2e: $(STAMP)
	$(BIN)/python -m pytest -q -m e2e tests/e2e

bench: $(STAMP)
	@$(BIN)/leadtime bench -o json

# --- maintenance ----------------------------------------------------------------------------

lock:  # needs uv: it resolves for every platform and writes hashes without addresses
	uv pip compile pyproject.toml --group dev --group build --universal --python-version 3.11 \
		--no-emit-index-url --generate-hashes --no-header -o requirements.lock

clean:
	rm -rf $(VENV) build dist htmlcov .coverage .coverage.* .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
