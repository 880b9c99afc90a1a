# What people and CI run. Needs make and Python 3.11 or newer with venv, and nothing else:
# each command below sets up .venv first, from the hash-locked packages in requirements.lock.

PYTHON ?=
VENV := .venv
BIN := $(VENV)/bin
PURE := adapter/fleet/*,adapter/scaling/*,adapter/policy/*

.PHONY: help setup demo test check e2e bench lock clean
.DEFAULT_GOAL := help

help:
	@echo "make demo    the main job on simulated engines, in a minute; no cluster, no GPU"
	@echo "make test    every test but e2e, with branch coverage"
	@echo "make check   format, lint, types, layers, documents"
	@echo "make e2e     a real vLLM on the CPU, and a real kube-apiserver with its HPA (7 GB of disk, once)"
	@echo "make bench   parsing, scraping, serving and deciding, measured here; JSON"
	@echo "make lock    pin the dependencies again (maintainers; needs uv)"
	@echo "make clean   remove .venv and what the tools left"

demo: setup
	@$(BIN)/leadtime demo

test: setup
	$(BIN)/pytest --cov --cov-report= --ignore=tests/e2e --ignore=tests/controlplane
	$(BIN)/coverage report --include='$(PURE)' --fail-under=100
	$(BIN)/coverage report --fail-under=90

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -q tests/architecture

e2e: setup
	$(BIN)/pytest -m e2e tests/e2e tests/controlplane

RECORDED := $(wildcard $(or $(LEADTIME_SHARED),../shared)/fixtures/vllm-0.32.0-real_cpu-under_load_1.prom)
bench: setup
	@$(BIN)/leadtime bench -o json $(addprefix --exposition ,$(RECORDED))

# Neither lock names a registry: pip takes the one that this machine is set up with.
LOCK := uv pip compile --quiet --no-header --no-emit-index-url --generate-hashes --python-version 3.11
lock:
	$(LOCK) --universal --group dev --group build pyproject.toml -o requirements.lock
	cd tests/e2e && $(LOCK) --no-annotate --python-platform x86_64-manylinux_2_28 \
	  --overrides vllm.overrides vllm.in -o vllm.lock

clean:
	rm -rf $(VENV) build dist htmlcov .coverage* .hypothesis .mypy_cache .pytest_cache \
	  .ruff_cache .import_linter_cache

# The environment is made anew when what it was made from has changed, the place included
# (scripts name it), or when its Python is gone; .venv/made-from says what that was.
MADE_FROM := { pwd; cat requirements.lock pyproject.toml; }
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input
setup:
	@$(BIN)/python -c '' 2>/dev/null && $(MADE_FROM) | cmp -s - $(VENV)/made-from || { \
	  set -e; \
	  for python in $(or $(PYTHON),python3.13 python3.12 python3.11 python3); do \
	    "$$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' \
	      2>/dev/null && break; \
	    python=; \
	  done; \
	  test -n "$$python" || { \
	    echo "make: no Python 3.11 or newer with venv among" \
	      "$(or $(PYTHON),python3.13 python3.12 python3.11 python3);" \
	      "install one (Debian: python3-venv), or name it: make PYTHON=/path/to/python3" >&2; \
	    exit 1; \
	  }; \
	  echo "make: setting up $(VENV) with $$python, once; takes about half a minute" >&2; \
	  "$$python" -m venv --clear $(VENV); \
	  $(PIP) --no-deps --require-hashes --requirement requirements.lock; \
	  $(PIP) --no-deps --no-build-isolation --editable .; \
	  $(MADE_FROM) > $(VENV)/made-from; \
	}
