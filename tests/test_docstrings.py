"""The examples in docstrings give what they show."""

import doctest
import importlib
from pathlib import Path

import pytest

import shortlist

PACKAGE = Path(shortlist.__file__).parent


def modules_with_examples():
    for path in sorted(PACKAGE.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
            yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = list(modules_with_examples())


def test_there_are_examples_to_run():
    assert {"shortlist.estimators.linear", "shortlist.losses"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings(name):
    if name.startswith("shortlist.torch"):
        pytest.importorskip("torch")
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted > 0
    assert results.failed == 0
