# make demo   watch an agent work through a real server
# make test   everything that has to be right: lint, types, tests
# make help   the rest

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types figures bench wheels clean

help:  ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST)

setup: $(READY)  ## Make .venv with the core and everything that developers need

$(READY): pyproject.toml $(wildcard plugins/deepwork_*/pyproject.toml)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "deepwork needs Python 3.11 or newer: make PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]' \
		--editable plugins/deepwork_claude_runner --editable plugins/deepwork_review
	@touch $@

demo: $(READY)  ## Watch an agent work through a real server
	@$(BIN)/python tools/demo.py

test: lint types  ## Lint, types and all tests
	$(BIN)/python -m pytest

lint: $(READY)  ## Style and mistakes
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)  ## Types
	$(BIN)/mypy

figures: $(READY)  ## Measure what the docs promise
	$(BIN)/python tools/figures.py all

bench: $(READY)  ## Measure the server against a bare FastMCP server, and write docs/benchmarks.md
	$(BIN)/python -m bench --report docs/benchmarks.md

wheels: $(READY)  ## Build and check wheels and sdists of the core and all plugins
	$(BIN)/python tools/wheels.py

clean:  ## Remove everything that make has made
	rm -rf $(VENV) dist .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis
