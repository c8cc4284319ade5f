"""Pictures of calibration: the regret curves, the simplex of three classes, the docs' figures."""

import importlib.util
import re
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest

from shortlist import losses
from shortlist.calibration import is_topk_calibrated, regret_bound
from shortlist.plots import CalibrationSimplexDisplay, RegretBoundDisplay

DOCS = Path(__file__).parent.parent / "docs"
QUICK = {"n_random": 0, "n_descents": 0}


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


class TestRegretBound:
    def test_curves_are_the_bounds(self):
        entropy = losses.get("entropy", k=2)
        display = RegretBoundDisplay.from_losses(
            ["softmax", entropy], epsilons=[0.2, 0.5], n_classes=3, **QUICK
        )
        assert list(display.values) == ["softmax", "top-2 entropy (alpha)"]
        for line, loss in zip(display.lines_, ("softmax", entropy), strict=True):
            expected = [regret_bound(loss, e, n_classes=3, **QUICK).value for e in (0.2, 0.5)]
            assert line.get_ydata().tolist() == expected
        assert display.ax_.get_ylim()[0] == 0
        assert display.ax_.get_legend() is not None

    def test_smoothings_on_a_logarithmic_axis(self):
        display = RegretBoundDisplay.from_smoothings(
            (1, 2), smoothings=[0.5, 1.0, 4.0], epsilon=0.2, n_classes=3, **QUICK
        )
        assert list(display.values) == ["k = 1", "k = 2"]
        assert np.argmax(display.values["k = 1"]) == 1
        assert display.ax_.get_xscale() == "log"

    def test_bad_input_is_named(self):
        with pytest.raises(ValueError, match="values is empty"):
            RegretBoundDisplay([0.1], {})
        with pytest.raises(ValueError, match=r"values of 'a' have shape \(2,\), x has \(1,\)"):
            RegretBoundDisplay([0.1], {"a": [1, 2]})


class TestSimplex:
    def test_the_multiclass_hinge_fails_where_no_label_has_a_majority(self):
        display = CalibrationSimplexDisplay.from_loss("hinge", n_steps=12)
        centres = display.triangles.mean(axis=1)
        assert len(centres) == 144
        np.testing.assert_allclose(centres.sum(axis=1), 1)
        np.testing.assert_array_equal(display.failures, centres.max(axis=1) < 0.5)
        assert len(display.failures_.get_paths()) == display.failures.sum()
        assert any("not calibrated (25%)" in text.get_text() for text in display.ax_.texts)
        display.figure_.canvas.draw()

    def test_colours_are_the_gaps_of_the_check(self):
        loss = losses.get("smooth_hinge", k=2, variant="beta")
        display = CalibrationSimplexDisplay.from_loss(loss, n_steps=5, title="smooth", most=0.5)
        assert not display.failures.any()
        p = display.triangles[3].mean(axis=0)
        beside = np.zeros(3)
        beside[[np.argmax(p), np.argmin(p)]] = 0.002, -0.002
        assert display.gaps[3] == pytest.approx(is_topk_calibrated(loss, p + beside).gap)
        np.testing.assert_array_equal(display.mesh_.get_array(), display.gaps)
        assert display.mesh_.get_clim() == (0, 0.5)
        assert display.ax_.get_title() == "smooth"

    def test_bad_input_is_named(self):
        with pytest.raises(ValueError, match=r"triangles must have shape \(n, 3, 3\)"):
            CalibrationSimplexDisplay(np.ones((2, 3)), [0, 0], [False, False])
        with pytest.raises(ValueError, match=r"must have shape \(1,\)"):
            CalibrationSimplexDisplay(np.ones((1, 3, 3)), [0, 0], [False])
        with pytest.raises(ValueError, match="n_steps must be 1 or larger"):
            CalibrationSimplexDisplay.from_loss("softmax", n_steps=0)


@pytest.mark.parametrize(
    "display",
    [
        RegretBoundDisplay([0.1], {"loss": [0.2]}),
        CalibrationSimplexDisplay(np.full((1, 3, 3), 1 / 3), [0.1], [False]),
    ],
    ids=lambda display: type(display).__name__,
)
def test_missing_matplotlib_names_the_extra(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"{type(display).__name__}.*shortlist\[plot\]"):
        display.plot()


def test_the_figures_of_the_documentation_can_be_drawn_anew(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    spec = importlib.util.spec_from_file_location("figures", DOCS / "figures.py")
    figures = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(figures)
    drawn = {path.name for path in figures.draw_all(tmp_path, quick=True)}
    assert all((DOCS / "_static" / name).is_file() for name in drawn)
    pages = [DOCS / f"{name}.md" for name in ("calibration", "engine", "mathematics")]
    pages.append(DOCS.parent / "README.md")
    text = "".join(page.read_text("utf-8") for page in pages)
    shown = re.findall(r"\((?:docs/)?_static/([\w.-]+)\)", text)
    assert sorted(shown) == sorted(drawn)
