"""``memory_limit``: the same model as without, and the limit kept."""

import json
import subprocess
import sys

import numpy as np
import pytest

from shortlist import TopKClassifier
from shortlist.datasets import read_dataset
from shortlist.estimators import limited
from shortlist.solvers.placing import Placing
from tests.solvers.problems import make_data


@pytest.fixture(scope="module")
def mapped(tmp_path_factory):
    path = tmp_path_factory.mktemp("mapped") / "x.npy"
    X, y = make_data()
    np.save(path, X)
    return np.load(path, mmap_mode="r"), y


def small_pieces(monkeypatch, duals):
    """As if the limit left room for seven rows of five doubles."""
    monkeypatch.setattr(limited, "place", lambda *_: Placing(7 * 5 * 8, duals, None))


@pytest.mark.parametrize("duals", ["memory", "mapped", "none"])
def test_same_model_as_in_memory(mapped, monkeypatch, duals):
    X, y = mapped
    small_pieces(monkeypatch, duals)
    model = TopKClassifier(tol=1e-6, class_weight="balanced", memory_limit="1GB", random_state=0)
    weights = np.linspace(0.5, 1.5, len(y))
    model.fit(X, y, weights)
    whole = TopKClassifier(tol=1e-6, class_weight="balanced", random_state=0)
    whole.fit(np.asarray(X), y, weights)
    assert model.result_.status == "converged"
    assert model.result_.primal == pytest.approx(whole.result_.primal, rel=2e-6)
    np.testing.assert_allclose(model.coef_, whole.coef_, atol=0.02)
    assert model.memory_plan_.startswith("rows in 6 pieces")


def two_files(folder, X):
    for name, rows in (("a.npy", X[:15]), ("b.npy", X[15:])):
        np.save(folder / name, rows)
        yield folder / name


def test_rows_on_disk(tmp_path, monkeypatch):
    X, y = make_data()
    np.savez(tmp_path / "data.npz", X=X.astype(np.float64), y=y)
    small_pieces(monkeypatch, "memory")
    X_there, y_there = read_dataset(tmp_path / "data.npz", on_disk=True)
    limited = TopKClassifier(memory_limit=10**9, random_state=0).fit(X_there, y_there)
    assert "6 pieces" in limited.memory_plan_
    # Without a limit they are simply read.
    assert TopKClassifier(random_state=0).fit(X_there, y_there).score(X, y) > 0.5
    shards = [np.load(path, mmap_mode="r") for path in two_files(tmp_path, X)]
    sharded = TopKClassifier(memory_limit=10**9, random_state=0, normalize="l2").fit(shards, y)
    whole = TopKClassifier(random_state=0, normalize="l2").fit(X, y)
    assert sharded.result_.primal == pytest.approx(whole.result_.primal, rel=1e-3)
    path = TopKClassifier(memory_limit=10**9, random_state=0).fit_path(X_there, y_there, [0.1, 1])
    assert [model.result_.status for model in path] == ["converged", "converged"]


def test_data_that_fits_is_trained_as_usual(mapped):
    X, y = mapped
    model = TopKClassifier(memory_limit="100GB", random_state=0).fit(X, y)
    plain = TopKClassifier(random_state=0).fit(np.asarray(X), y)
    np.testing.assert_array_equal(model.coef_, plain.coef_)
    assert model.memory_plan_ == "rows and duals in memory"
    broken = np.array(X)
    broken[3, 2] = np.nan
    np.save(X.filename.with_name("nan.npy"), broken)
    with pytest.raises(ValueError, match="NaN"):
        model.fit(np.load(X.filename.with_name("nan.npy"), mmap_mode="r"), y)


@pytest.mark.parametrize("limit", ["4 bananas", -1, 0, 1.5, True])
def test_limits_that_make_no_sense(mapped, limit):
    with pytest.raises(ValueError, match="memory_limit must be"):
        TopKClassifier(memory_limit=limit).fit(*mapped)


def test_a_limit_below_what_is_taken_already(mapped):
    with pytest.raises(MemoryError, match="takes at least"):
        TopKClassifier(memory_limit="10MB").fit(*mapped)


SCRIPT = """
import json, re, sys
from pathlib import Path
import numpy as np
from shortlist import TopKClassifier

X = np.load(sys.argv[1], mmap_mode="r")
y = np.arange(len(X)) % 4
model = TopKClassifier("softmax", max_epochs=1, memory_limit=sys.argv[2], random_state=0)
model.fit(X, y)
# Unlike getrusage, this does not count what the process that started this one used.
status = Path("/proc/self/status").read_text()
peak = 1024 * int(re.search(r"VmHWM:\\s+([0-9]+)", status)[1])
print(json.dumps({"peak": peak, "plan": model.memory_plan_, "gap": model.result_.relative_gap}))
"""


def test_the_resident_set_stays_below_the_limit(tmp_path):
    shape = (120_000, 1000)  # 458 MiB
    X = np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, shape)
    block = np.random.default_rng(0).normal(size=(4000, 1000)).astype(np.float32)
    for begin in range(0, len(X), len(block)):
        X[begin : begin + len(block)] = block
    del X
    limit = 900 << 20
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT, str(tmp_path / "x.npy"), str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    found = json.loads(done.stdout)
    assert "pieces" in found["plan"]
    assert found["peak"] < limit
    assert 0 <= found["gap"] < 1
