"""Displays: what is drawn is what was computed, and matplotlib stays optional."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

from shortlist import TopKClassifierCV, losses
from shortlist.conformal import ConformalShortlist
from shortlist.metrics import topk_accuracy_curve
from shortlist.plots import (
    PALETTE,
    CirclePredictionsDisplay,
    ConformalDisplay,
    ConvergenceCurve,
    ConvergenceDisplay,
    LossDisplay,
    SearchDisplay,
    TopKCurveDisplay,
)
from shortlist.solvers import Evaluation, Result


@pytest.fixture(autouse=True)
def close_figures():
    yield
    plt.close("all")


def rendered_without_trouble(display) -> bool:
    display.figure_.canvas.draw()
    return np.asarray(display.figure_.canvas.buffer_rgba()).std() > 0


class TestTopKCurve:
    def test_from_estimator_draws_the_curve_of_the_metric(self):
        X, y = load_iris(return_X_y=True)
        names = np.array(["a", "b", "c"])[y]
        model = LogisticRegression(C=0.01).fit(X, names)
        display = TopKCurveDisplay.from_estimator(model, X, names)
        expected = topk_accuracy_curve(y, model.decision_function(X))
        np.testing.assert_array_equal(display.line_.get_ydata(), expected)
        np.testing.assert_array_equal(display.line_.get_xdata(), [1, 2, 3])
        assert display.ax_.get_legend().get_texts()[0].get_text() == "LogisticRegression"
        assert display.figure_ is display.ax_.figure
        assert rendered_without_trouble(display)

    def test_curves_share_axes_with_different_colours(self):
        scores = np.random.default_rng(0).standard_normal((50, 20))
        y = np.arange(50) % 20
        first = TopKCurveDisplay.from_predictions(y, scores, name="first")
        second = TopKCurveDisplay.from_predictions(y, -scores, name="second", ax=first.ax_)
        assert second.ax_ is first.ax_
        assert len(first.accuracy) == 10
        assert [line.get_label() for line in first.ax_.lines] == ["first", "second"]
        assert first.line_.get_color() == PALETTE[0]
        assert second.line_.get_color() == PALETTE[1]
        whole = TopKCurveDisplay.from_predictions(y, scores, max_k=20, color="red", linewidth=3)
        assert len(whole.accuracy) == 20
        assert whole.line_.get_color() == "red"
        assert whole.ax_.get_legend() is None

    def test_accuracy_must_be_a_vector(self):
        with pytest.raises(ValueError, match="accuracy must be a nonempty vector"):
            TopKCurveDisplay([[0.5]])


class TestConformal:
    @pytest.fixture
    def case(self):
        X, y = load_iris(return_X_y=True)
        X = X + np.random.default_rng(0).normal(scale=1.5, size=X.shape)
        model = LogisticRegression(C=0.1).fit(X[::3], y[::3])
        return ConformalShortlist(model, 0.8).conformalize(X[1::3], y[1::3]), X[2::3], y[2::3]

    def test_what_is_drawn_is_what_was_measured(self, case):
        sets, X, y = case
        display = ConformalDisplay.from_estimator(sets, X, y, confidence_levels=[0.6, 0.8])
        sizes = np.asarray(sets.predict_set(X).sum(axis=1))
        shares = [bar.get_height() for bar in display.bars_]
        np.testing.assert_allclose(shares, np.bincount(sizes) / len(y))
        curve = sets.coverage_curve(X, y, [0.6, 0.8])
        np.testing.assert_array_equal(display.line_.get_xdata(), curve["mean_length"])
        np.testing.assert_array_equal(display.line_.get_ydata(), curve["coverage"])
        fixed = display.axes_[1].lines[1]
        accuracy = topk_accuracy_curve(y, sets.model.decision_function(X))
        np.testing.assert_allclose(fixed.get_ydata(), accuracy[: len(fixed.get_ydata())])
        assert any("80%" in text.get_text() for text in display.axes_[1].texts)
        assert "mean length" in display.axes_[0].get_title()
        assert rendered_without_trouble(display)

    def test_own_axes_a_name_and_no_level(self, case):
        sets, X, y = case
        _, axes = plt.subplots(2)
        sized = ConformalShortlist(sets.model, average_size=2).conformalize(X, y)
        display = ConformalDisplay.from_estimator(sized, X, y, name="iris", axes=axes)
        assert display.axes_ == tuple(axes)
        assert "sets (iris)" in [t.get_text() for t in axes[1].get_legend().get_texts()]
        assert not any("wanted" in text.get_text() for text in axes[1].texts)
        with pytest.raises(ValueError, match="axes must be a pair, got 1"):
            display.plot(axes[:1])


def history(rate: float, n_epochs: int = 5) -> list[dict[str, float]]:
    return [
        {"epoch": e, "seconds": 0.1 * e, "primal": 1 + 10 ** (-rate * e), "dual": 1.0}
        for e in range(1, n_epochs + 1)
    ]


class TestConvergence:
    def test_gap_is_computed_from_primal_and_dual_and_drawn_on_a_log_axis(self):
        display = ConvergenceDisplay.from_results({"fast": history(1), "slow": history(0.5)})
        for line, rate in zip(display.lines_, (1, 0.5), strict=True):
            excess = 10 ** (-rate * np.arange(1.0, 6))
            np.testing.assert_allclose(line.get_ydata(), excess / (1 + excess))
            np.testing.assert_allclose(line.get_xdata(), 0.1 * np.arange(1, 6))
        assert [line.get_label() for line in display.lines_] == ["fast", "slow"]
        assert display.ax_.get_yscale() == "log"
        assert display.ax_.get_xlabel() == "Time (seconds)"
        assert rendered_without_trouble(display)

    def test_recorded_gap_wins_and_objects_serve_as_records(self):
        records = [
            SimpleNamespace(epoch=1, relative_gap=0.5),
            SimpleNamespace(epoch=2, relative_gap=0.0),
        ]
        result = SimpleNamespace(history=records)
        display = ConvergenceDisplay.from_results(result, x="epoch", tol=1e-3)
        drawn = display.lines_[0].get_ydata()
        assert drawn[0] == 0.5
        assert 0 < drawn[1] < 1e-10  # a closed gap stays visible on the logarithmic axis
        assert display.ax_.get_xlabel() == "Epochs"
        assert any("0.001" in text.get_text() for text in display.ax_.texts)
        assert rendered_without_trouble(display)

    def test_accuracy_on_a_linear_axis_skips_records_without_it(self):
        run = history(1)
        run[1]["accuracy"], run[3]["accuracy"] = 0.25, 0.75
        display = ConvergenceDisplay.from_results([run], y="accuracy")
        assert display.lines_[0].get_ydata().tolist() == [0.25, 0.75]
        assert display.ax_.get_yscale() == "linear"
        assert display.lines_[0].get_label() == "run 1"

    def test_from_estimator_uses_its_result(self):
        estimator = SimpleNamespace(result_=SimpleNamespace(history=history(1)))
        display = ConvergenceDisplay.from_estimator(estimator, name="softmax")
        assert display.lines_[0].get_label() == "softmax"
        with pytest.raises(TypeError, match="has no result_"):
            ConvergenceDisplay.from_estimator(LogisticRegression())

    def test_one_history_and_mapping_results_are_understood(self):
        bare = ConvergenceDisplay.from_results(history(1))
        wrapped = ConvergenceDisplay.from_results({"history": history(1)})
        several = ConvergenceDisplay.from_results([{"history": history(1)}, history(2)])
        assert (len(bare.lines_), len(wrapped.lines_), len(several.lines_)) == (1, 1, 2)

    def test_results_of_the_solvers_are_understood(self):
        evaluations = (
            Evaluation(epoch=1, seconds=0.5, primal=2.0, dual=1.0),
            Evaluation(epoch=2, seconds=1.0, primal=1.5, dual=1.2, accuracy=0.9),
        )
        result = Result(1.5, 1.2, 2, 1.0, "max_epochs", "sdca", evaluations)
        for form in (result, result.to_dict()):
            display = ConvergenceDisplay.from_results({"run": form})
            np.testing.assert_allclose(display.lines_[0].get_ydata(), [0.5, 0.2])
        display = ConvergenceDisplay.from_results(result, x="epoch", y="accuracy")
        assert display.lines_[0].get_xdata().tolist() == [2]

    def test_run_without_a_dual_has_no_gap_but_an_objective(self):
        evaluations = (Evaluation(epoch=1, seconds=0.5, primal=2.0, dual=np.nan),)
        result = Result(2.0, np.nan, 1, 0.5, "converged", "lbfgs", evaluations)
        with pytest.raises(ValueError, match=r"no 'relative_gap'; it has epoch, primal, seconds$"):
            ConvergenceDisplay.from_results(result)
        assert ConvergenceDisplay.from_results(result, y="primal").ax_.get_yscale() == "linear"

    def test_bad_input_is_named(self):
        with pytest.raises(ValueError, match=r"no 'accuracy'; it has dual, epoch, primal, seconds"):
            ConvergenceDisplay.from_results({"run": history(1)}, y="accuracy")
        with pytest.raises(ValueError, match="curves is empty"):
            ConvergenceDisplay([])
        with pytest.raises(ValueError, match="history of 'x' is empty"):
            ConvergenceDisplay([ConvergenceCurve("x", ())])
        with pytest.raises(TypeError, match="must have a history"):
            ConvergenceDisplay.from_results(3.0)


class Hinge:
    """A stand-in loss: max(0, 1 + the largest other score - the true label's)."""

    def value(self, scores, y):
        rows = np.arange(len(y))
        others = scores.copy()
        others[rows, y] = -np.inf
        return np.maximum(0, 1 + others.max(axis=1) - scores[rows, y])

    def __str__(self):
        return "stand-in hinge"


class TestLoss:
    def test_default_slice_moves_the_true_label(self):
        display = LossDisplay.from_losses(Hinge(), error_ks=(1, 3), limits=(-1, 4), n_points=11)
        # The best of the other classes has score 3, the third best 0.5.
        np.testing.assert_allclose(display.values["stand-in hinge"], np.maximum(0, 4 - display.t))
        np.testing.assert_array_equal(display.errors[1], display.t < 3)
        np.testing.assert_array_equal(display.errors[3], display.t < 0.5)
        assert [line.get_label() for line in display.ax_.lines] == [
            "stand-in hinge",
            "top-1 error",
            "top-3 error",
        ]
        assert display.ax_.get_xlabel() == "Score of the true label"
        assert rendered_without_trouble(display)

    def test_losses_of_the_library_are_named_in_words(self):
        display = LossDisplay.from_losses(
            [
                "softmax",
                losses.get("hinge"),
                losses.get("smooth_hinge", k=3, variant="beta"),
                losses.get("ova_logistic"),
            ],
            n_points=5,
        )
        assert list(display.values) == [
            "softmax",
            "hinge",
            "top-3 smooth hinge (beta, smoothing 1)",
            "one-vs-all logistic",
        ]
        scores = np.r_[display.t[0], 3, np.linspace(1, -2.5, 8)]
        assert display.values["softmax"][0] == pytest.approx(
            np.log(np.exp(scores - scores[0]).sum())
        )

    def test_any_slice(self):
        display = LossDisplay.from_losses(
            {"h": Hinge()}, y=1, base=[0, 1, 0], direction=[1, 0, 0], limits=(0, 2), n_points=3
        )
        np.testing.assert_allclose(display.lines_[0].get_ydata(), [0, 1, 2])
        assert display.ax_.get_xlabel() == "t"

    def test_bad_input_is_named(self):
        with pytest.raises(ValueError, match=r"base must be a vector with an entry for y=3"):
            LossDisplay.from_losses(Hinge(), y=3, base=[0, 1, 2])
        with pytest.raises(ValueError, match=r"direction has shape \(2,\), base has \(3,\)"):
            LossDisplay.from_losses(Hinge(), base=[0, 1, 2], direction=[0, 1])
        with pytest.raises(ValueError, match="values is empty"):
            LossDisplay([0, 1], {})
        with pytest.raises(ValueError, match=r"values of 'a' have shape \(1,\)"):
            LossDisplay([0, 1], {"a": [1]})


def circle_points(n: int) -> np.ndarray:
    angles = np.linspace(0, 2 * np.pi, n, endpoint=False)
    return np.column_stack([np.cos(angles), np.sin(angles)])


class TestCircle:
    def test_rings_are_coloured_by_the_ranked_classes(self):
        X = circle_points(90)
        y = np.arange(90) // 30
        model = LogisticRegression(C=100).fit(X, y)
        display = CirclePredictionsDisplay.from_estimator(model, X, y)
        assert len(display.rings_) == 2
        rng = np.random.default_rng(0)
        for angle in rng.uniform(0, 2 * np.pi, 50):
            point = np.array([[np.cos(angle), np.sin(angle)]])
            ranking = np.argsort(-model.decision_function(point)[0])
            for rank, ring in enumerate(display.rings_):
                here = [w for w in ring if within(np.degrees(angle), w.theta1, w.theta2)]
                assert [to_hex(w.get_facecolor()).upper() for w in here] == [PALETTE[ranking[rank]]]
        for ring in display.rings_:
            assert sum(wedge.theta2 - wedge.theta1 for wedge in ring) == pytest.approx(360)
        assert rendered_without_trouble(display)

    def test_samples_lie_inside_at_their_angle_and_classes_apart(self):
        X = circle_points(12)
        y = np.array(["a", "b", "c"] * 4)
        display = CirclePredictionsDisplay.from_predictions(
            X, y, [0.0, 3.0], np.eye(3)[:2], classes=["a", "b", "c"], title="twelve points"
        )
        radii = []
        for label, samples in zip("abc", display.samples_, strict=True):
            drawn = np.asarray(samples.get_offsets())
            radius = np.hypot(*drawn.T)
            np.testing.assert_allclose(drawn / radius[:, None], X[y == label], atol=1e-12)
            assert np.ptp(radius) < 1e-12
            radii.append(radius[0])
        assert max(radii) < 1
        assert len(set(np.round(radii, 6))) == 3
        assert display.ax_.get_title() == "twelve points"
        assert display.ax_.get_aspect() == 1

    def test_one_class_everywhere_is_a_full_ring(self):
        scores = np.tile([1.0, 0.0], (8, 1))
        angles = np.linspace(0, 6, 8)
        display = CirclePredictionsDisplay.from_predictions(
            circle_points(4), [0, 0, 1, 1], angles, scores, classes=[0, 1], k=1
        )
        ((ring,),) = display.rings_
        assert (ring.theta1, ring.theta2) == (0, 360)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"X": [[2.0, 0.0]] * 2}, "unit circle"),
            ({"X": [[1.0, 0.0, 0.0]] * 2}, r"X must have shape \(n_samples, 2\)"),
            ({"y": [0]}, r"y must have shape \(2,\)"),
            ({"angles": [1.0, 0.0]}, "increasing"),
            ({"angles": [0.0, 7.0]}, "within one turn"),
            ({"scores": np.eye(3)}, "scores must have 2 columns"),
            ({"scores": [[1, 2]]}, r"ranking must have shape \(2, k\)"),
            ({"k": 3}, "k must lie between 1 and 2"),
        ],
    )
    def test_bad_input_is_named(self, changes, message):
        arguments = {
            "X": [[1.0, 0.0], [0.0, 1.0]],
            "y": [0, 1],
            "angles": [0.0, 1.0],
            "scores": np.eye(2),
            "classes": [0, 1],
        }
        with pytest.raises(ValueError, match=message):
            CirclePredictionsDisplay.from_predictions(**(arguments | changes))

    def test_too_many_classes_for_the_palette(self):
        with pytest.raises(ValueError, match="at most 8 classes"):
            CirclePredictionsDisplay.from_predictions(
                circle_points(9), np.arange(9), [0.0, 1.0], np.eye(9)[:2], classes=np.arange(9)
            )


@pytest.fixture(scope="module")
def search():
    X, y = load_iris(return_X_y=True)
    families = ["entropy", {"loss": "smooth_hinge", "k": 2}]
    return TopKClassifierCV(
        losses=families, Cs=[0.01, 0.1, 1.0], ks=(1, 2), cv=3, max_extensions=0
    ).fit(X, y)


class TestSearchDisplay:
    def test_curves_are_the_table_of_the_chosen_family(self, search):
        display = SearchDisplay.from_estimator(search)
        assert rendered_without_trouble(display)
        assert display.ax_.get_xscale() == "log"
        table = search.cv_results_
        for k in (1, 2):
            own = table["loss"] == search.losses_[k]["loss"]
            np.testing.assert_array_equal(display.lines_[k].get_xdata(), table["C"][own])
            np.testing.assert_array_equal(display.lines_[k].get_ydata(), table[f"mean_top{k}"][own])
            assert display.marks_[k].get_xdata().tolist() == [search.C_[k]]
            assert f"top-{k} ({search.losses_[k]['loss']}" in display.lines_[k].get_label()
        spread = [k for k in (1, 2) if table[f"std_top{k}"].any()]
        assert len(display.ax_.collections) == len(spread) > 0

    def test_families_that_differ_in_class_weights_alone(self):
        X, y = load_iris(return_X_y=True)
        X, y = X[:120], y[:120]  # 50, 50 and 20 of a class
        families = [{"class_weight": None}, {"class_weight": "balanced"}]
        search = TopKClassifierCV(losses=families, Cs=[0.01, 0.1], ks=(1, 2), cv=3)
        search.fit(X, y)
        display = SearchDisplay.from_estimator(search)
        for k in (1, 2):
            own = search.rows_by_family()[search.cv_results_["family"][search.chosen_row(k)]]
            accuracies = search.cv_results_[f"mean_top{k}"]
            np.testing.assert_array_equal(display.lines_[k].get_ydata(), accuracies[own])
            assert display.marks_[k].get_ydata().tolist() == [accuracies[search.chosen_row(k)]]
            weights = search.losses_[k]["class_weight"]
            assert f"class_weight={weights}" in display.lines_[k].get_label()

    def test_some_ks_into_given_axes(self, search):
        _, ax = plt.subplots()
        display = SearchDisplay.from_estimator(search, ks=[2], ax=ax)
        assert display.ax_ is ax
        assert list(display.lines_) == [2]
        with pytest.raises(ValueError, match="not for 3"):
            SearchDisplay.from_estimator(search, ks=[3])


def within(angle: float, start: float, stop: float) -> bool:
    return any(start <= angle + turn < stop for turn in (-360, 0, 360))


def test_import_does_not_load_matplotlib():
    code = "import sys, shortlist.plots; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "display",
    [
        TopKCurveDisplay([0.5, 1.0]),
        ConvergenceDisplay([ConvergenceCurve("run", history(1))]),
        LossDisplay([0, 1], {"loss": [1, 0]}),
        SearchDisplay({}, {}),
        CirclePredictionsDisplay(
            circle_points(2), [0, 1], [0.0, 1.0], [[0, 1], [1, 0]], classes=[0, 1]
        ),
    ],
    ids=lambda display: type(display).__name__,
)
def test_missing_matplotlib_names_the_extra(display, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match=rf"{type(display).__name__}.*shortlist\[plot\]"):
        display.plot()
