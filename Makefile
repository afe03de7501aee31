# make demo: from nothing to a report.   make test: every check of the code.   make help: all targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c

# cpu (default), cuda (several GB) or system (a torch that this Python already has)
TORCH ?= cpu
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CRATE := $(CURDIR)/.venv-crate
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
LOCKS := requirements
# Only asked where the default index has no CPU build of torch.
TORCH_CPU_INDEX ?= https://download.pytorch.org/whl/cpu
STUDY ?= config/demo.yaml
FUZZ_SECONDS ?= 3600
# Tests that measure hold the device's lock, whatever runs beside them.
PYTEST_WORKERS ?= 2

BASE := $(VENV)/.base-$(TORCH)
DEV := $(VENV)/.dev

.PHONY: fuzz help install demo envs test test-slurm test-crate format lint type bench docs clean

help: ## this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  \1\t/' | expand -t 12

$(BASE): $(LOCKS)/base.lock $(LOCKS)/torch-$(TORCH).lock pyproject.toml | $(VENV)/bin/python
	@echo "Installing into $(VENV) from $(LOCKS)/base.lock (torch: $(TORCH)) ..."
	$(PIP) install --quiet --require-hashes --no-deps -r $(LOCKS)/base.lock
	@scripts/install-torch $(TORCH) $(BIN)/python $(LOCKS) $(TORCH_CPU_INDEX)
	$(PIP) install --quiet --no-deps --no-build-isolation --no-index --editable .
	@rm -f $(VENV)/.base-*; touch $@

$(DEV): $(LOCKS)/dev.lock $(BASE)
	@echo "Installing the checks and tests from $(LOCKS)/dev.lock ..."
	$(PIP) install --quiet --require-hashes --no-deps -r $(LOCKS)/dev.lock
	@touch $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(if $(filter system,$(TORCH)),--system-site-packages) $(VENV)

install: $(BASE) ## make .venv with the tracelock command

demo: $(BASE) ## run the demo study and open the way to its report
	@$(BIN)/tracelock study run $(STUDY)

envs: $(BASE) ## build the environments of STUDY with conda, each once, before anything runs
	@$(BIN)/python scripts/prepare_envs.py -- --config study=$(STUDY)

test: $(DEV) ## run every test
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist loadfile

test-slurm: $(DEV) ## run studies on a real SLURM, brought up here for the test (root, Debian's packages)
	$(BIN)/python -m pytest -q tests/slurm

test-crate: $(DEV) ## check the metadata of archives with RO-Crate's validator, in an environment of its own
	test -x $(CRATE)/bin/rocrate-validator || { $(PYTHON) -m venv $(CRATE) && \
	  $(CRATE)/bin/python -m pip install --quiet --require-hashes --no-deps -r tests/crate/requirements.txt; }
	TRACELOCK_ROCRATE=$(CRATE)/bin/rocrate-validator PYTHONPATH=tests/bundle $(BIN)/python -m pytest -q tests/crate

format: $(DEV) ## rewrite the code in the house format
	$(BIN)/ruff check --quiet --fix-only . && $(BIN)/ruff format --quiet .
	$(BIN)/snakefmt Snakefile workflow

lint: $(DEV) ## check format, style, workflow and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint
	$(BIN)/lint-imports

type: $(DEV) ## strict type check
	$(BIN)/mypy

bench: $(DEV) ## measure speed and memory against other tools
	$(BIN)/python -m tests.bench

fuzz: $(DEV) ## fuzz the readers of foreign files, FUZZ_SECONDS each (an hour); findings and corpus in build/fuzz
	$(PIP) install --quiet --require-hashes --no-deps -r tests/fuzz/requirements.txt
	for target in study bundle environment trace; do \
	  mkdir -p build/fuzz/$$target && cp -n tests/data/results-1.zip build/fuzz/bundle/ 2>/dev/null || true; \
	  PYTHONPATH=scripts $(BIN)/python -m tests.fuzz $$target build/fuzz/$$target -max_total_time=$(FUZZ_SECONDS) \
	    -timeout=30 -rss_limit_mb=2048 -artifact_prefix=build/fuzz/$$target-; \
	done

docs: $(DEV) ## write the generated parts of docs/, and the site to build/site; its links are checked
	$(BIN)/tracelock docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "The site: build/site/index.html; with search: $(BIN)/python -m http.server -d build/site"

clean: ## take away everything that was made
	rm -rf $(VENV) .venv-* results data .snakemake build .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis \
	  scripts/*.egg-info .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
