# Each target sets up what it needs in .venv: Python 3.11+ and make are all you bring.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# Two test processes suit a small machine; set WORKERS=0 to run in one.
WORKERS ?= 2

.PHONY: demo test lint bench docs clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Shortlist needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]" --group dev
	touch $@

demo: $(VENV)/.runtime
	$(BIN)/shortlist reproduce letter --output results/letter

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

docs: $(VENV)/.dev
	$(BIN)/python docs/build.py

clean:
	rm -rf $(VENV) results build dist .pytest_cache .mypy_cache .ruff_cache
