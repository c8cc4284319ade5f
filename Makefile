# Each target sets up what it needs in .venv: Python 3.11+ and make are all you bring.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
# Three test processes suit two cores, as some tests wait for others' processes: the suite takes 7 min
# 20 s, and 8 min 13 s with two. Set WORKERS=0 to run in one.
WORKERS ?= 3
# Exact versions for development: make test LOCK=requirements/dev.lock
LOCK ?=
# Images of containers often set this. Tests start a hundred processes, each of which would compile
# the package's sources anew: an eighth of the time of such tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test pytest test-slow lint bench docs dist lock test-lowest audit clean
.DEFAULT_GOAL := demo

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Shortlist needs Python 3.11 or newer; set PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"

$(VENV)/.runtime: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]"
	touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[plot]" --group dev $(if $(LOCK),--constraint $(LOCK))
	touch $@

demo: $(VENV)/.runtime
	$(BIN)/shortlist reproduce letter --output results/letter

# The linters run beside the tests, which they leave time for.
test: $(VENV)/.dev
	$(MAKE) --jobs=2 lint pytest

pytest: $(VENV)/.dev
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

# What takes too long for every run: clusters, and kernels compiled anew.
test-slow: $(VENV)/.dev
	$(BIN)/python -m pytest --slow -m slow -n $(WORKERS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# Runs the examples that have changed since the last build.
docs: $(VENV)/.dev
	$(BIN)/python docs/build.py

# Wheel and sdist, each tried in a clean environment, and a bill of materials of the wheel's.
dist: $(BIN)/python
	rm -rf dist
	$(BIN)/python requirements/release.py versions
	$(BIN)/python -m pip install --quiet build twine
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python requirements/release.py packages dist/*

# Of what is installed now: run it after a change of pyproject.toml, with all extras installed.
lock: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable ".[all]"
	$(BIN)/python requirements/supply_chain.py lock > requirements/dev.lock.new
	mv requirements/dev.lock.new requirements/dev.lock

# The tests of files, estimators and the command, with the lowest versions that are allowed.
LOWEST_TESTS = tests/persistence tests/datasets tests/estimators/test_linear.py \
	tests/estimators/test_checkpoints.py tests/test_metrics.py tests/cli/test_train.py \
	tests/cli/test_predict.py tests/test_plots.py
test-lowest: $(VENV)/.dev
	$(BIN)/python requirements/supply_chain.py lowest > $(VENV)/lowest.txt
	$(PYTHON) -m venv $(VENV)/lowest
	$(VENV)/lowest/bin/pip install --quiet --editable ".[plot,data]" pytest pytest-xdist hypothesis \
		mpmath polars --constraint $(VENV)/lowest.txt
	$(VENV)/lowest/bin/python -m pytest -n $(WORKERS) $(LOWEST_TESTS)

# Asks a public database for known weaknesses of the locked versions: it needs a connection.
audit: $(BIN)/python
	$(BIN)/python -m pip install --quiet pip-audit
	$(BIN)/pip-audit --no-deps --disable-pip --requirement requirements/dev.lock

clean:
	rm -rf $(VENV) results build dist docs/_build docs/gallery .pytest_cache .mypy_cache .ruff_cache
