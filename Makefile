# The commands of development. `make` lists them.
#
#   PYTHON=python3.13   the interpreter of the environment .venv (3.11 or newer)
#   ARGS="..."          further arguments for pytest, the demo, the benchmark or nox

PYTHON ?= python3
ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready

# Interpreters of pyenv, for nox: in front of pyenv's shims, which exist also where nothing stands
# behind them.
empty :=
space := $(empty) $(empty)
PYENV := $(wildcard $(HOME)/.pyenv/versions/3.1[123]*/bin)
MATRIX_PATH := $(subst $(space),:,$(PYENV) $(PATH))

.DEFAULT_GOAL := help
.PHONY: help environment test test-quick chaos fuzz lint format demo docs reference screenshots messages benchmark \
  benchmark-peers matrix wheel clean

help:
	@echo "make test         the whole suite, on SQLite and on PostgreSQL"
	@echo "make test-quick   what is quick of it, on SQLite"
	@echo "make chaos        break what can break under load; ARGS=--full, ARGS=--kill-matrix"
	@echo "make fuzz         ask every operation of the API a thousand times what is and is not allowed"
	@echo "make lint         ruff and mypy"
	@echo "make format       let ruff format the code"
	@echo 'make demo         see it work; ARGS=--exit ends by itself, ARGS="--exit --postgres"'
	@echo "make docs         the documentation as a site, in build/site; a warning fails it"
	@echo "make reference    write the parts of the documentation that the code tells"
	@echo "make screenshots  pictures of every page of the admin; ARGS=folder to keep them there"
	@echo "make messages     find the texts to translate, and compile the translations"
	@echo "make benchmark    measure it against the raw database"
	@echo "make benchmark-peers  measure it beside other task queues; ARGS=\"--docs docs\" keeps it"
	@echo "make matrix       the suite on every supported Python and Django"
	@echo "make wheel        build the wheel and look whether all is in it"
	@echo "make clean        remove what these commands have made"

environment: $(READY)

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  found=$$($(PYTHON) --version 2>/dev/null) || found=missing; \
	  echo "taskqueue needs Python 3.11 or newer, and $(PYTHON) is $$found." \
	    "Name another one: make $(MAKECMDGOALS) PYTHON=python3.13" >&2; \
	  exit 1; }
	@echo "Preparing $(VENV) with $$($(PYTHON) --version) ..."
	@$(RUN) -m pip --version >/dev/null 2>&1 || rm -rf $(VENV)
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
	@$(RUN) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

# Both databases are run side by side, and so are the shares of the suite. A program starts them,
# for what a shell starts with & ignores SIGINT, and Ctrl-C would leave it behind.
test: $(READY)
	@$(RUN) -m tests.side_by_side $(ARGS)

test-quick: $(READY)
	@$(RUN) -m tests.side_by_side --quick $(ARGS)

chaos: $(READY)
	@$(RUN) -m tests.chaos $(ARGS)

fuzz: $(READY)
	@for database in sqlite postgresql; do \
	  TASKQUEUE_FULL=1 TASKQUEUE_TEST_DATABASE=$$database \
	    $(RUN) -m pytest -s -o faulthandler_timeout=0 -o timeout=0 tests/api/test_schemathesis.py $(ARGS) || exit 1; \
	done

lint: $(READY)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy --strict -p taskqueue

format: $(READY)
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

demo: $(READY)
	@DJANGO_SETTINGS_MODULE=project.settings $(RUN) manage.py demo $(ARGS)

docs: $(READY)
	@rm -rf build/site
	@$(RUN) -m sphinx --quiet --fail-on-warning --keep-going --builder html \
	  --doctree-dir build/doctrees $(ARGS) docs build/site
	@echo "The first page is build/site/index.html"

reference: $(READY)
	@$(RUN) -m docs.generate

screenshots: $(READY)
	@$(RUN) -m tests.browser.screenshots $(ARGS)

# Needs gettext's own programs. What is new stands in the catalogue empty or fuzzy afterwards, and
# tests/test_languages.py fails until somebody has translated it and run this again.
messages: $(READY)
	cd taskqueue && ../$(RUN) -m django makemessages --locale zh_Hans --no-location --no-obsolete
	cd taskqueue && ../$(RUN) -m django compilemessages --locale zh_Hans

benchmark: $(READY)
	@$(RUN) -m benchmarks $(ARGS)

benchmark-peers: $(READY)
	@$(RUN) -m benchmarks.peers $(ARGS)

matrix: $(READY)
	@PATH="$(MATRIX_PATH)" $(RUN) -m nox $(ARGS)

wheel: $(READY)
	rm -rf dist
	$(RUN) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(RUN) .ci/check_wheel.py dist

clean:
	@# Where root may not keep PostgreSQL's data here, links lead to where they are.
	@for link in .demo/*; do \
	  case "$$(readlink "$$link")" in */taskqueue-data-*) rm -rf "$$(readlink "$$link")";; esac; \
	done
	rm -rf $(VENV) .peers .nox .pytest_cache .mypy_cache .ruff_cache .hypothesis .demo build dist
	rm -f db.sqlite3 db.sqlite3-wal db.sqlite3-shm
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
