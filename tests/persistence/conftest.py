"""A small model, and a file of it."""

import numpy as np
import pytest

from shortlist import persistence
from shortlist.persistence import save
from tests.persistence.fake import Fake


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(persistence._REGISTERED, "Fake", Fake.__module__)


@pytest.fixture
def model():
    coef = np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4)))
    return Fake({"coef_": coef}, {"C": 1.0, "classes_": np.array(["a", "b", "ü"])})


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.shortlist"
    save(model, path)
    return path
