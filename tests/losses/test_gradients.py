"""Gradients: finite differences, Fenchel-Young equality, subgradients at kinks."""

import numpy as np
import pytest

from tests.instances import CONVEX, DUAL, INSTANCES, Instance, by_id


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_gradient_by_finite_differences(row):
    loss = row.loss()
    h = 1e-6
    for f, y in zip(row.scores(5, n=4), row.labels(5, n=4), strict=True):
        steps = h * np.eye(row.m)
        up = loss.value(f + steps, np.full(row.m, y))
        down = loss.value(f - steps, np.full(row.m, y))
        # The second derivative is at most 1/gamma; otherwise 1.
        tolerance = 1e-7 + 1e-8 / row.smoothing if row.smoothing else 1e-7
        np.testing.assert_allclose(
            loss.gradient(f, y), (up - down) / (2 * h), rtol=1e-6, atol=tolerance
        )


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_value_and_gradient_are_those_of_the_single_calls(row):
    loss = row.loss()
    f, y = row.scores(6, n=3), row.labels(6, n=3)
    value, gradient = loss.value_and_gradient(f, y)
    np.testing.assert_array_equal(value, loss.value(f, y))
    np.testing.assert_array_equal(gradient, loss.gradient(f, y))


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_gradient_sums_to_zero_unless_one_vs_all(row):
    total = row.loss().gradient(row.scores(7, n=5), row.labels(7, n=5)).sum(axis=1)
    if row.one_vs_all:
        assert np.abs(total).max() > 1e-3
    else:
        np.testing.assert_allclose(total, 0.0, atol=1e-15)


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_fenchel_young_holds_with_equality_at_the_gradient(row):
    loss = row.loss()
    f, y = row.scores(8, n=20), row.labels(8, n=20)
    v = loss.gradient(f, y)
    gap = loss.value(f, y) + loss.conjugate(v, y) - (f * v).sum(axis=1)
    np.testing.assert_allclose(gap, 0.0, atol=1e-13 * (1 + np.abs(f).max()))


@pytest.mark.parametrize("row", CONVEX, ids=by_id)
def test_subgradient_inequality_at_kinks(row):
    """Small integers put scores on every kink and tie: v must still be a subgradient."""
    loss = row.loss()
    rng = np.random.default_rng(row.m)
    f = rng.integers(-2, 3, size=(30, row.m)).astype(float)
    y = rng.integers(0, row.m, size=30)
    value, v = loss.value_and_gradient(f, y)
    for _ in range(20):
        off_the_kinks = rng.choice([0.0, 0.5]) * rng.normal(size=f.shape)
        other = rng.integers(-2, 3, size=f.shape) + off_the_kinks
        linear = value + (v * (other - f)).sum(axis=1)
        assert (loss.value(other, y) >= linear - 1e-12).all()
    if row.has_dual_step:
        gap = value + loss.conjugate(v, y) - (f * v).sum(axis=1)
        np.testing.assert_allclose(gap, 0.0, atol=1e-12)


def test_truncated_entropy_is_not_convex():
    loss = Instance("truncated_entropy", m=4, k=2).loss()
    a, b = np.array([0.0, 4.0, 0.0, -9.0]), np.array([0.0, 0.0, 4.0, -9.0])
    assert loss.value((a + b) / 2, 0) > (loss.value(a, 0) + loss.value(b, 0)) / 2 + 0.1
