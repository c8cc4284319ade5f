"""The table of losses says what the losses do."""

import numpy as np
import pytest

from shortlist import losses
from shortlist.losses.registry import ENTRIES, in_words, taking, with_probabilities
from tests.instances import INSTANCES

COLUMNS = [
    "loss",
    "what",
    "formula",
    "convex",
    "smooth",
    "top-k calibrated",
    "SDCA",
    "several labels",
    "torch",
]


def _row(name: str) -> dict[str, str]:
    return next(row for row in losses.table() if row["loss"] == name)


@pytest.mark.parametrize("k", [1, 3])
def test_losses_with_probabilities_are_those_whose_classifier_has_predict_proba(k):
    from shortlist import TopKClassifier

    able = [name for name in ENTRIES if hasattr(TopKClassifier(name, k=k), "predict_proba")]
    assert able
    assert with_probabilities(k) == able


def test_a_loss_in_words_tells_losses_apart():
    words = [in_words(losses.get(name)) for name in ENTRIES]
    assert len(set(words)) == len(ENTRIES)
    assert not any("_" in each for each in words)


def test_losses_taking_margins_are_those_that_accept_them():
    accepting = []
    for name in ENTRIES:
        try:
            losses.get(name, margins=[1.0, 2.0, 3.0])
        except ValueError:
            continue
        accepting.append(name)
    assert taking("margins") == accepting


def test_table_is_complete():
    rows = losses.table()
    assert [row["loss"] for row in rows] == list(ENTRIES)
    assert set(losses.names()) == {*ENTRIES, "softmax"}
    for row in rows:
        assert list(row) == COLUMNS
        assert all(isinstance(cell, str) and cell for cell in row.values())
    assert {row.name for row in INSTANCES} == set(ENTRIES)


@pytest.mark.parametrize("name", list(ENTRIES))
def test_flags_are_behaviour(name):
    """At k = 2, where the losses are what the table names them."""
    loss = losses.get(name, k=2)
    row = _row(name)
    assert row["convex"] == ("yes" if loss.convex else "no")
    assert row["smooth"] == ("yes" if loss.smooth else "no")
    if row["SDCA"] == "yes":
        assert np.isfinite(loss.dual_step(np.zeros(4), 0, 1.0)).all()
    else:
        with pytest.raises(TypeError, match="no dual step"):
            loss.dual_step(np.zeros(4), 0, 1.0)


@pytest.mark.parametrize("name", ENTRIES)
def test_all_but_separable_losses_depend_on_differences_of_scores(name):
    loss, scores = losses.get(name, k=2), np.array([0.3, -1.2, 0.9, 0.1, 2.0])
    changes = loss.value(scores + 0.5, 1) != pytest.approx(loss.value(scores, 1), rel=1e-12)
    assert changes == loss.separable


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if entry.smooth])
def test_smooth_losses_have_continuous_gradients(name):
    loss = losses.get(name, k=2)
    f = np.random.default_rng(0).normal(size=(200, 5)) * 2
    y = np.zeros(200, dtype=int)
    f[::2] = np.round(f[::2])  # on the kinks of the losses that have some
    near = f + 1e-7 * np.random.default_rng(1).normal(size=f.shape)
    assert np.abs(loss.gradient(near, y) - loss.gradient(f, y)).max() < 1e-5


@pytest.mark.parametrize("name", [name for name, entry in ENTRIES.items() if not entry.smooth])
def test_the_others_do_not(name):
    loss = losses.get(name, k=2)
    rng = np.random.default_rng(0)
    f = rng.integers(-2, 3, size=(200, 5)).astype(float)
    y = np.zeros(200, dtype=int)
    jump = loss.gradient(f + 1e-7 * rng.normal(size=f.shape), y) - loss.gradient(f, y)
    assert np.abs(jump).max() > 0.1


@pytest.mark.parametrize("name", list(ENTRIES))
def test_calibration_cells(name):
    """The verdicts of docs/calibration.md, propositions as the paper's long version counts."""
    expected = {
        "hinge": ("no for k <= m - 2", "3"),
        "smooth_hinge": ("yes (theorem)", None),
        "entropy": ("yes (theorem", "4"),
        "truncated_entropy": ("yes", "10"),
        "mixed_smooth_hinge": ("yes (theorem), from the smallest j", None),
        "mixed_entropy": ("yes (theorem), from the smallest j", None),
        "ova_hinge": ("no", "1"),
        "ova_smooth_hinge": ("yes", "5"),
        "ova_logistic": ("yes", "2"),
    }
    verdict, proposition = expected[name]
    cell = _row(name)["top-k calibrated"]
    assert cell.startswith(verdict)
    assert (f"Prop. {proposition})" in cell) == (proposition is not None)


@pytest.mark.parametrize("name", list(ENTRIES))
def test_parameters_a_loss_ignores_change_nothing(name):
    """``uses`` lists what matters: k, variant, smoothing."""
    f, y = np.random.default_rng(3).normal(size=(20, 6)) * 2, np.arange(20) % 6
    base = {"k": 2, "variant": "alpha", "smoothing": 0.5}
    for parameter, other in (("k", 3), ("variant", "beta"), ("smoothing", 2.0)):
        changed = {**base, parameter: other}
        same = np.array_equal(
            losses.get(name, **base).gradient(f, y), losses.get(name, **changed).gradient(f, y)
        )
        assert same == (parameter not in ENTRIES[name].uses), parameter


def test_the_torch_modules_exist():
    torch_losses = pytest.importorskip("shortlist.torch")
    for row in losses.table():
        assert (row["torch"] == "none") == row["loss"].startswith("mixed_")
        assert row["torch"] == "none" or hasattr(torch_losses, row["torch"])
