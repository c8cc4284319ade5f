"""Values: the definitions, the conjugate's supremum, special cases, limits and bounds."""

import numpy as np
import pytest

from shortlist import losses
from tests import references
from tests.instances import CONVEX, INSTANCES, Instance, by_id
from tests.losses import oracles


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_value_is_the_definition(row):
    loss = row.loss()
    for f, y in zip(row.scores(1, n=3), row.labels(1, n=3), strict=True):
        assert loss.value(f, y) == pytest.approx(references.value(row, f, y), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("row", CONVEX, ids=by_id)
def test_value_is_the_supremum_over_the_dual(row):
    f, y = row.scores(2)[0], row.labels(2)[0]
    assert row.loss().value(f, y) == pytest.approx(oracles.value(row, f, y), rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("m", [2, 3, 7])
def test_k_one_is_hinge_and_softmax_exactly(m, variant):
    rng = np.random.default_rng(m)
    f, y = rng.normal(size=(20, m)) * 3, rng.integers(0, m, size=20)
    u = f - f[np.arange(20), y][:, None]
    u[np.arange(20), y] = -np.inf
    hinge = losses.get("hinge", k=1, variant=variant).value(f, y)
    np.testing.assert_array_max_ulp(hinge, np.maximum(0.0, 1.0 + u.max(axis=1)), 2)
    softmax = losses.get("entropy", k=1, variant=variant).value(f, y)
    reference = np.log1p(np.exp(u).sum(axis=1))
    np.testing.assert_allclose(softmax, reference, rtol=1e-15, atol=1e-15)
    truncated = losses.get("truncated_entropy", k=1)
    np.testing.assert_array_equal(truncated.value(f, y), softmax)
    np.testing.assert_array_equal(losses.get("softmax").value(f, y), softmax)


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("k", [1, 2, 5])
def test_smoothing_to_zero_approaches_the_hinge(k, variant):
    rng = np.random.default_rng(k)
    f, y = rng.normal(size=(30, 6)), rng.integers(0, 6, size=30)
    hinge = losses.get("hinge", k=k, variant=variant).value(f, y)
    for gamma in (1.0, 1e-2, 1e-4, 1e-8, 1e-12):
        smooth = losses.get("smooth_hinge", k=k, variant=variant, smoothing=gamma).value(f, y)
        # The envelope takes off at most gamma/2 |x|^2 <= gamma/2.
        assert (smooth <= hinge + 1e-12).all()
        assert (smooth >= hinge - gamma / 2 - 1e-12).all()
    nothing = losses.get("smooth_hinge", k=k, variant=variant, smoothing=0.0)
    np.testing.assert_array_equal(nothing.value(f, y), hinge)
    assert not nothing.smooth


def test_smoothing_of_one_vs_all_to_zero():
    row = Instance("ova_hinge", m=5)
    f, y = row.scores(3, n=10), row.labels(3, n=10)
    hinge = row.loss().value(f, y)
    for gamma in (1e-2, 1e-6, 1e-12):
        smooth = losses.get("ova_smooth_hinge", smoothing=gamma).value(f, y)
        assert (smooth <= hinge + 1e-12).all()
        assert (smooth >= hinge - 5 * gamma / 2 - 1e-12).all()


@pytest.mark.parametrize(("m", "k"), [(2, 1), (4, 3), (9, 4)])
def test_hinges_bound_the_error_and_the_sets_nest(m, k):
    rng = np.random.default_rng(m)
    f = np.round(rng.normal(size=(300, m)) * 2, 1)  # rounded, so that ties occur
    y = rng.integers(0, m, size=300)
    own = f[np.arange(300), y]
    error = np.sort(f, axis=1)[:, -k] > own
    assert 0.1 < error.mean() < 0.9

    def value(name: str, variant: str, k: int) -> np.ndarray:
        return losses.get(name, k=k, variant=variant).value(f, y)

    for name in ("hinge", "smooth_hinge", "entropy"):
        alpha, beta, one = value(name, "alpha", k), value(name, "beta", k), value(name, "alpha", 1)
        assert (alpha <= beta + 1e-12).all()
        assert (beta <= one + 1e-12).all()
        if name == "hinge":
            assert (alpha >= error).all()
            assert (beta >= error).all()
    assert (losses.get("truncated_entropy", k=k).value(f, y) <= one + 1e-12).all()


def test_larger_k_means_a_smaller_loss():
    f, y = Instance("entropy", m=8).scores(4, n=20), Instance("entropy", m=8).labels(4, n=20)
    for name in ("hinge", "smooth_hinge", "entropy", "truncated_entropy"):
        for variant in ("alpha", "beta"):
            values = [losses.get(name, k=k, variant=variant).value(f, y) for k in range(1, 8)]
            assert (np.diff(values, axis=0) <= 1e-12).all()
