"""Units on disk: found again only if everything they depend on is the same, never half-written."""

import json

import numpy as np
import pytest
from scipy import sparse

from shortlist.experiments import store as store_module
from shortlist.experiments.store import Unit, UnitStore, fingerprint


def double(parameters, payload, tick):
    return {"value": 2 * parameters["x"]}


def triple(parameters, payload, tick):
    return {"value": 3 * parameters["x"]}


@pytest.fixture
def store(tmp_path):
    return UnitStore(tmp_path / "units")


def test_what_is_put_is_found_again(store):
    unit = Unit("letter, top-3 SVM", {"x": 1, "ks": (1, 3)}, double)
    assert store.get(unit) is None
    assert store.put(unit, {"value": np.float64(2.5), "row": (1, 2)}) == {
        "value": 2.5,
        "row": [1, 2],
    }
    assert store.get(unit) == {"value": 2.5, "row": [1, 2]}
    # A tuple and a list are the same parameters: JSON knows no difference.
    assert store.get(Unit("letter, top-3 SVM", {"ks": [1, 3], "x": 1}, double)) is not None


@pytest.mark.parametrize(
    "other",
    [
        Unit("a", {"x": 2}, double),
        Unit("a", {"x": 1, "seed": 0}, double),
        Unit("a", {"x": 1}, triple),
    ],
)
def test_other_parameters_or_work_are_another_unit(store, other):
    unit = Unit("a", {"x": 1}, double)
    store.put(unit, {"value": 2})
    assert other.key != unit.key
    assert store.get(other) is None


def test_other_code_is_another_unit(store, monkeypatch):
    unit = Unit("a", {"x": 1}, double)
    store.put(unit, {"value": 2})
    monkeypatch.setattr(store_module, "_code_hash", lambda module: "another")
    assert store.get(Unit("a", {"x": 1}, double)) is None


@pytest.mark.parametrize("damage", ["", "{", '{"unit": 1}', "[]", '{"unit": {}, "result": {}}'])
def test_a_damaged_file_counts_as_none(store, damage):
    unit = Unit("a", {"x": 1}, double)
    store.put(unit, {"value": 2})
    store.path(unit).write_text(damage)
    assert store.get(unit) is None


def test_a_failed_write_leaves_the_old_result(store, monkeypatch):
    unit = Unit("a", {"x": 1}, double)
    store.put(unit, {"value": 2})

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        store.put(unit, {"value": 3})
    monkeypatch.undo()
    assert store.get(unit) == {"value": 2}
    assert [path.name for path in store.folder.iterdir()] == [store.path(unit).name]


def test_key_is_a_readable_file_name():
    key = Unit("letter, top-3 SVM (α)", {"x": 1}, double).key
    assert key.startswith("letter-top-3-svm-")
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_nan_survives(store):
    unit = Unit("a", {"x": 1}, double)
    stored = store.put(unit, {"gap": float("nan")})
    assert np.isnan(stored["gap"])
    assert np.isnan(store.get(unit)["gap"])


def test_fingerprint_sees_values_shapes_and_types():
    X = np.arange(6.0).reshape(2, 3)
    assert fingerprint(X) == fingerprint(X.copy())
    assert fingerprint(X) == fingerprint(np.asfortranarray(X))
    others = [X.reshape(3, 2), X.astype(np.float32), X + 1e-9]
    assert len({fingerprint(X), *map(fingerprint, others)}) == 4
    csr = sparse.csr_matrix(X)
    assert fingerprint(csr) == fingerprint(csr.copy()) != fingerprint(X)
    assert fingerprint(np.array(["a", "b"], dtype=object)) != fingerprint(
        np.array(["a", "c"], dtype=object)
    )


def test_stored_file_is_json_with_its_parameters(store):
    unit = Unit("a", {"x": 1}, double)
    store.put(unit, {"value": 2})
    text = json.loads(store.path(unit).read_text())
    assert text["unit"]["parameters"] == {"x": 1}
    assert text["result"] == {"value": 2}
