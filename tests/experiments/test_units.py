"""Units on disk: found again only if everything they depend on is the same, never half-written."""

import json
import shutil
from dataclasses import dataclass

import numpy as np
import pytest
from scipy import sparse

from shortlist.experiments import units as units_module
from shortlist.experiments.lambert import LambertTask
from shortlist.experiments.training_curves import TrainingTask
from shortlist.experiments.units import PACKAGE, Task, Unit, UnitStore, code_hash, fingerprint


@dataclass(frozen=True)
class Part:
    row: tuple[int, ...]
    gap: float


@dataclass(frozen=True)
class Result:
    value: float
    parts: dict[int, Part]
    note: str | None = None


@dataclass(frozen=True)
class Double(Task):
    x: int
    ks: tuple[int, ...] = (1, 3)

    def run(self, payload=None) -> Result:
        return Result(2.0 * self.x, {})


class Triple(Double):
    def run(self, payload=None) -> Result:
        return Result(3.0 * self.x, {})


RESULT = Result(2.5, {1: Part((1, 2), 0.25), 10: Part((), 1.0)})


@pytest.fixture
def store(tmp_path):
    return UnitStore(tmp_path / "units")


def test_what_is_put_is_found_again(store):
    unit = Unit("letter, top-3 SVM", Double(1))
    assert store.get(unit) is None
    assert store.put(unit, RESULT) == RESULT
    assert store.get(unit) == RESULT
    assert store.get(Unit("letter, top-3 SVM", Double(1, (1, 3)))) == RESULT
    # Whole numbers of NumPy, and those that JSON writes without a point, keep their type.
    kept = store.put(unit, Result(np.float64(2), {np.int64(3): Part((np.int32(1),), 1)}))
    assert kept == Result(2.0, {3: Part((1,), 1.0)})
    assert isinstance(kept.value, float)
    assert isinstance(kept.parts[3].row[0], int)


@pytest.mark.parametrize("task", [Double(2), Double(1, (1,)), Triple(1)])
def test_other_parameters_or_work_are_another_unit(store, task):
    unit, other = Unit("a", Double(1)), Unit("a", task)
    store.put(unit, RESULT)
    assert other.key != unit.key
    assert store.get(other) is None


@dataclass(frozen=True)
class TimedDouble(Double):
    timed = True


def test_times_of_another_processor_are_another_unit(store, monkeypatch):
    store.put(Unit("a", TimedDouble(1)), RESULT)
    store.put(Unit("a", Double(1)), RESULT)
    assert store.get(Unit("a", TimedDouble(1))) == RESULT
    monkeypatch.setattr(units_module, "processor_name", lambda: "another")
    assert store.get(Unit("a", TimedDouble(1))) is None
    assert store.get(Unit("a", Double(1))) == RESULT


@pytest.mark.parametrize("task", [TrainingTask, LambertTask])
def test_what_measures_times_says_so(task):
    assert task.timed


def test_other_code_or_packages_are_another_unit(store, monkeypatch):
    store.put(Unit("a", Double(1)), RESULT)
    with monkeypatch.context() as changed:
        changed.setattr(units_module, "_code_of", lambda task: "another")
        assert store.get(Unit("a", Double(1))) is None
    with monkeypatch.context() as changed:
        changed.setattr(units_module, "_versions", lambda with_torch: {"numpy": "99.9"})
        assert store.get(Unit("a", Double(1))) is None
    assert store.get(Unit("a", Double(1))) == RESULT


@pytest.fixture
def copied(tmp_path):
    """The package's sources, to be edited."""
    package = tmp_path / "shortlist"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    return package


def edit(path):
    assert path.exists(), path
    path.write_text(path.read_text(encoding="utf-8") + "\n# edited\n", encoding="utf-8")


@pytest.mark.parametrize(
    "source",
    [
        "experiments/descents.py",
        "experiments/protocol.py",
        "experiments/paper_accuracy.csv",
        "datasets/circle.py",
        "losses/hinge.py",
        "estimators/linear.py",
        "metrics/_topk.py",
        "special.py",
    ],
)
def test_any_code_that_can_change_a_number_changes_the_key(copied, source):
    before = code_hash(copied, with_torch=False)
    assert before == code_hash(PACKAGE, with_torch=False)
    edit(copied / source)
    assert code_hash(copied, with_torch=False) != before


@pytest.mark.parametrize(
    "source",
    ["cli/reproduce.py", "plots/charts.py", "experiments/report/folder.py", "_progress.py"],
)
def test_code_that_only_shows_results_does_not(copied, source):
    before = code_hash(copied, with_torch=True)
    edit(copied / source)
    assert code_hash(copied, with_torch=True) == before


def test_torch_counts_only_where_it_is_used(copied):
    plain, with_torch = (code_hash(copied, with_torch=each) for each in (False, True))
    edit(copied / "torch/modules.py")
    assert code_hash(copied, with_torch=False) == plain
    assert code_hash(copied, with_torch=True) != with_torch
    pytest.importorskip("torch")
    from shortlist.experiments.finetune import FineTuningTask

    assert "torch" not in Unit("a", Double(1)).identity["packages"]
    assert "torch" in Unit("a", FineTuningTask("", (), (), 0)).identity["packages"]


def test_a_file_renamed_or_moved_changes_the_key(copied):
    before = code_hash(copied, with_torch=False)
    (copied / "special.py").rename(copied / "specials.py")
    assert code_hash(copied, with_torch=False) != before


@pytest.mark.parametrize(
    "damage", ["", "{", '{"unit": 1}', "[]", '{"unit": {}, "result": {}}', "fields", "types"]
)
def test_a_damaged_file_counts_as_none(store, damage):
    unit = Unit("a", Double(1))
    store.put(unit, RESULT)
    stored = json.loads(store.path(unit).read_text())
    if damage == "fields":
        del stored["result"]["value"]
        damage = json.dumps(stored)
    elif damage == "types":
        stored["result"]["parts"] = [1, 2]
        damage = json.dumps(stored)
    store.path(unit).write_text(damage)
    assert store.get(unit) is None


def test_a_failed_write_leaves_the_old_result(store, monkeypatch):
    unit = Unit("a", Double(1))
    store.put(unit, RESULT)

    def fail(*args, **kwargs):
        raise OSError("disk full")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        store.put(unit, Result(3.0, {}))
    monkeypatch.undo()
    assert store.get(unit) == RESULT
    assert [path.name for path in store.folder.iterdir()] == [store.path(unit).name]


def test_key_is_a_readable_file_name():
    key = Unit("letter, top-3 SVM (α)", Double(1)).key
    assert key.startswith("letter-top-3-svm-")
    assert set(key) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


def test_nan_survives(store):
    unit = Unit("a", Double(1))
    stored = store.put(unit, Result(float("nan"), {}))
    assert np.isnan(stored.value)
    assert np.isnan(store.get(unit).value)


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
    unit = Unit("a", Double(1))
    store.put(unit, RESULT)
    text = json.loads(store.path(unit).read_text())
    assert text["unit"]["parameters"] == {"x": 1, "ks": [1, 3]}
    assert text["result"]["parts"]["1"] == {"row": [1, 2], "gap": 0.25}
