# Each target installs what it needs into .venv first; later runs skip the installation.

PYTHON ?= python3
BIN := .venv/bin
PACKAGES := seq2seq_memattn experiments data_prep examples docs/extensions
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

# Without bytecode files, every test process would compile TensorFlow's Python sources again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-all check docs links format

demo: .venv/.installed
	$(BIN)/python -m experiments.demo --run_dir=runs/demo

test: check
	$(PYTEST) -m "not slow"

test-all: check
	$(PYTEST)

check: .venv/.installed_dev
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy $(PACKAGES)

docs: .venv/.installed_dev
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build

links: .venv/.installed_dev
	$(BIN)/python -m sphinx -b linkcheck docs docs/_build/links

format: .venv/.installed_dev
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# venv writes pip last: without pip, the environment is missing or incomplete. An environment of an
# older Python, which pip refused, is made again.
USABLE := $(BIN)/python -c "import sys; sys.exit(sys.version_info < (3, 11))"
VENV := { test -x $(BIN)/pip && $(USABLE); } || $(PYTHON) -m venv --clear .venv
# --no-compile saves time: Python compiles modules at import, and only a few are ever imported.
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check --no-compile -c constraints.txt

.venv/.installed: pyproject.toml constraints.txt
	$(VENV)
	$(INSTALL) -e ".[all]"
	touch $@

.venv/.installed_dev: pyproject.toml constraints.txt
	$(VENV)
	$(INSTALL) -e ".[dev]"
	touch .venv/.installed $@
