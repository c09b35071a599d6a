# Everything a newcomer needs: `make demo`, `make test`. Both do their own set-up; both can be run again.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
export PYTHONHASHSEED := 0

.PHONY: help setup demo test test-long lint types test-gpu test-postgres corpus corpus-sample corpus-mutants clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(STAMP): pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt torch
	@if $(BIN)/python -c 'import importlib.util as u; raise SystemExit(u.find_spec("triton") is not None)' && [ "$$(uname -s)" = Linux ]; then \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check 'triton==3.9.0'; fi
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

setup: $(STAMP)  ## virtual environment in .venv with Tilewright installed

demo: setup  ## the main job on examples/: a wrong kernel found, a right one accepted, an audit
	@sh tools/demo.sh $(BIN)/tilewright

test: setup  ## all tests that need no GPU
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder

test-long: setup  ## runs of minutes: the scripts of benchmarks/search from end to end, every call of an operator compiled
	TILEWRIGHT_LONG=1 $(BIN)/python -m pytest -n 0 tests/search/test_benchmark_native.py tests/search/test_benchmark_h200.py \
		tests/ops/test_hazards.py

lint: setup  ## ruff (lint, format) and the import contract
	$(BIN)/ruff check src tests tools benchmarks
	$(BIN)/ruff format --check -q src tests tools benchmarks
	$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports

types: setup  ## mypy on src
	$(BIN)/mypy

corpus: setup  ## grade the verifier on all of corpus/, in both modes (half an hour or more on two cores)
	$(BIN)/tilewright corpus corpus --jobs 2

corpus-sample: setup  ## the same on every 31st kernel and a few mutants, as CI does: one fixed seed, a ledger of its own
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT INT TERM && export TILEWRIGHT_LEDGER=$$folder/ledger.sqlite && \
		$(BIN)/tilewright corpus corpus --only softmax/rows --mutants 2 --mutants-only --jobs 2 --seed 1 && \
		$(BIN)/tilewright corpus corpus --jobs 2 --every 31 --seed 1

corpus-mutants: setup  ## check mechanical mutants of right kernels, one of each kind, in a dozen families
	$(BIN)/tilewright corpus corpus --jobs 2 --every 8 --mutants 8 --mutants-only --seed 1

test-gpu: setup  ## tests that need a CUDA device
	$(BIN)/python -m pytest tests/gpu tests/ir/test_ir_device.py

test-postgres: setup  ## the ledger's law on a real PostgreSQL server (Debian's package)
	sh tools/postgres_tests.sh $(BIN)/python

clean:  ## remove the virtual environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
