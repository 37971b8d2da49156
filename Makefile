# make install    deepwork with all plugins, to stay; make uninstall takes it away
# make demo       watch an agent work through a real server
# make test       what has to be right before every commit: lint, types, tests
# make test-all   the tests that take longer or need other programs, besides
# make help       the rest

IS_NEW := -c 'import sys; sys.exit(sys.version_info < (3, 11))'
PYTHON ?= $(shell python3 $(IS_NEW) 2> /dev/null && echo python3 \
	|| uv python find --system '>=3.11' 2> /dev/null || echo python3)
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/core
READY := $(VENV)/ready
CHECK = $(PYTHON) $(IS_NEW) \
	|| { echo "deepwork needs Python 3.11 or newer: make PYTHON=/path/to/python3.11, or first: uv python install"; exit 1; }

.DEFAULT_GOAL := help
.PHONY: help install uninstall setup demo pictures test test-all test-load lint types lock newest docs release figures reference bench wheels clean

help:  ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

install:  ## Install deepwork with all plugins, to stay: the command deepwork
	@$(CHECK)
	@$(PYTHON) tools/environment.py install

uninstall:  ## Take deepwork out of all clients, and remove it; with DATA=1 your data, too
	@$(CHECK)
	@$(PYTHON) tools/environment.py uninstall $(if $(DATA),--data)

setup: $(READY)  ## Make .venv with the core and everything that developers need

$(CORE): pyproject.toml
	@$(CHECK)
	@echo "Preparing $(VENV); the first time this takes some time."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python tools/install.py --core
	@touch $@

$(READY): $(CORE) requirements.lock tools/install.py $(wildcard plugins/deepwork_*/pyproject.toml)
	@$(BIN)/python tools/install.py
	@touch $@

demo: $(CORE)  ## Watch an agent work through a real server
	@$(BIN)/deepwork demo

pictures: $(READY)  ## Draw the pictures in the docs: from what the demo and real clients print, and of the dashboard
	$(BIN)/python tools/pictures.py

test: lint types  ## Lint, types and the tests, in some minutes
	$(BIN)/python -m pytest -m 'not slow and not external'

test-all: $(READY)  ## The long tests besides: torture, PostgreSQL, installed plugins, clients from npm
	$(BIN)/python -m pytest -m 'slow or external'

test-load: $(READY)  ## The tests that watch processes, five times on a machine that is busy
	$(BIN)/python tools/under_load.py

lint: $(READY)  ## Style, mistakes, and whether each distribution declares what it imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@for project in . plugins/deepwork_*; do \
		(cd $$project && $(CURDIR)/$(BIN)/deptry --no-ansi src 2>&1) > $(VENV)/deptry || { cat $(VENV)/deptry; exit 1; }; \
	done

types: $(READY)  ## Types
	$(BIN)/mypy

lock: $(READY)  ## Write requirements.lock anew: the newest libraries that are allowed
	$(BIN)/python tools/lock.py

newest: $(READY)  ## The tests that notice what a new library has changed, with the newest libraries
	$(BIN)/tox -e newest -- -m "not slow and not external" tests/server tests/builtin/http plugins/deepwork_sql/tests

docs: $(READY)  ## Make a site of the docs in dist/site, and check every link between pages
	$(BIN)/python -m sphinx -W --keep-going -q -n -c tools/site . dist/site
	@echo "dist/site/docs/README.html"

release: $(READY)  ## Rehearse the release VERSION=1.2.3; with WRITE=1 commit and tag it
	$(BIN)/python tools/release.py $(or $(VERSION),"") $(if $(WRITE),--write)

figures: $(READY)  ## Measure what the docs promise
	$(BIN)/python -m bench --figures tokens,orchestration,authoring
	$(BIN)/python tools/torture runs cuts

reference: $(READY)  ## Write what is derived: signatures and rules into docs/reference, the extras of the core
	$(BIN)/python tools/signatures.py
	$(BIN)/python tools/job_rules.py
	$(BIN)/python tools/distribution.py
	$(BIN)/python tools/marketplace.py

bench: $(READY)  ## Measure the server against a bare FastMCP server, and write docs/benchmarks.md
	$(BIN)/python -m bench --check --release 0.9.3 --report docs/benchmarks.md

wheels: $(READY)  ## Build and check wheels and sdists of the core and all plugins
	$(BIN)/python tools/wheels.py

clean:  ## Remove everything that make has made
	rm -rf $(VENV) .clients .mirror dist .tox .mypy_cache .ruff_cache .pytest_cache .hypothesis
