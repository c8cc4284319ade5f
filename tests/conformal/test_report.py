"""Reports count what they say they count."""

import numpy as np
import pytest
from scipy.stats import binomtest

from shortlist.conformal import ConformalShortlist, CoverageReport
from shortlist.conformal._report import exact_interval, expected_interval, make_report
from tests.conformal.models import GivenScores, Overlapping


@pytest.fixture(scope="module")
def case():
    data = Overlapping(seed=7)
    (X, y), (X_new, y_new) = data.draw(400), data.draw(500)
    sets = ConformalShortlist(GivenScores(6), 0.85).conformalize(X, y)
    return sets.coverage_report(X_new, y_new), sets.predict_set(X_new).toarray(), y_new


def test_totals(case):
    report, sets, y = case
    sizes, hits = sets.sum(axis=1), sets[np.arange(len(y)), y]
    assert isinstance(report, dict)
    assert report["coverage"] == hits.mean()
    assert report["coverage_standard_error"] == pytest.approx(hits.std() / np.sqrt(len(y)))
    assert report["mean_length"] == sizes.mean()
    assert report["median_length"] == np.median(sizes)
    assert report["share_empty"] == (sizes == 0).mean()
    assert report["share_singletons"] == (sizes == 1).mean()
    np.testing.assert_array_equal(report["size_counts"], np.bincount(sizes, minlength=7))
    assert (report["n_samples"], report["n_calibration"]) == (500, 400)
    assert (report["score"], report["method"]) == ("margin", "marginal")
    assert report["confidence_level"] == 0.85


def test_by_class(case):
    report, sets, y = case
    table = report["per_class"]
    for label, n, coverage, size in zip(*table.values(), strict=True):
        mine = y == label
        assert n == mine.sum()
        assert coverage == pytest.approx(sets[mine, label].mean())
        assert size == pytest.approx(sets[mine].sum(axis=1).mean())
    worst = [entry["coverage"] for entry in report["worst_classes"]]
    assert worst == sorted(table["coverage"])
    assert report["mean_class_coverage"] == pytest.approx(np.mean(worst))


def test_by_size(case):
    report, sets, y = case
    sizes, hits = sets.sum(axis=1), sets[np.arange(len(y)), y]
    table = report["by_size"]
    assert table["n_samples"].sum() == len(y)
    for low, high, n, coverage in zip(*table.values(), strict=True):
        mine = (sizes >= low) & (sizes <= high)
        assert n == mine.sum()
        assert coverage == pytest.approx(hits[mine].mean())
    assert report["size_stratified_coverage"] == table["coverage"].min()


def test_strata_double_in_width():
    sizes = np.arange(10)
    table = make_report(
        sizes, sizes > 0, np.zeros(10, np.intp), np.array(["a"] * 12), confidence_level=0.9
    )["by_size"]
    assert table["smallest"].tolist() == [0, 1, 2, 4, 8]
    assert table["largest"].tolist() == [0, 1, 3, 7, 9]


@pytest.mark.parametrize(("hits", "n"), [(0, 10), (10, 10), (7, 10), (450, 500)])
def test_the_interval_is_clopper_and_pearsons(hits, n):
    expected = binomtest(hits, n).proportion_ci(method="exact")
    assert exact_interval(hits, n) == pytest.approx((expected.low, expected.high))


def test_expected_interval_holds_95_per_cent_of_simulated_coverages():
    random = np.random.default_rng(0)
    thresholds = np.sort(random.uniform(size=(4000, 99)), axis=1)[:, 89]  # rank 90 of 99
    coverages = (random.uniform(size=(4000, 200)) <= thresholds[:, None]).mean(axis=1)
    low, high = expected_interval(200, 99, 90)
    assert 0.94 < ((coverages >= low) & (coverages <= high)).mean() < 0.97


def test_as_text(case):
    report, _, _ = case
    text = str(report)
    assert isinstance(report, CoverageReport)
    assert f"coverage       {report['coverage']:.4f} (95% interval" in text
    assert "wanted         0.85" in text
    assert "examples       500 (calibrated on 400)" in text
    sized = CoverageReport(report, confidence_level=None, average_size=2)
    assert "wanted         no level: average size" in str(sized)
