"""Precision, extreme scores, ties, and every memory layout a user may bring."""

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist.losses.base import _value_gradient_rows
from tests.instances import DUAL, INSTANCES, Instance, by_id
from tests.losses.extremes import SCORES, STEP_SIZES
from tests.solvers import exact as fifty_digits

ETAS = [0.0, 1e-12, 1e-3, 1.0, 1e3, 1e12]


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_single_precision_agrees_with_double(row):
    loss = row.loss()
    f = row.scores(20, n=20).astype(np.float32)
    y = row.labels(20, n=20)
    value, gradient = loss.value_and_gradient(f, y)
    exact_value, exact_gradient = loss.value_and_gradient(f.astype(np.float64), y)
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(value, exact_value, rtol=5e-6, atol=2e-6)
    # A kink within rounding of f would need a smoothing as small as that; 0.01 is not.
    tolerance = 2e-6 / min(row.smoothing or 1.0, 1.0)
    np.testing.assert_allclose(gradient, exact_gradient, atol=tolerance)
    if row.has_dual_step:
        conjugate = loss.conjugate(gradient, y)
        exact = loss.conjugate(exact_gradient, y)
        np.testing.assert_allclose(conjugate, exact, rtol=5e-6, atol=1e-5 * (1 + row.smoothing))


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_dual_step_in_single_precision(row):
    loss = row.loss()
    q = row.scores(21, n=20).astype(np.float32)
    y = row.labels(21, n=20)
    for eta in (1e-2, 1.0, 100.0, 1e6):
        v = loss.dual_step(q, y, eta)
        exact = loss.dual_step(q.astype(np.float64), y, eta)
        assert v.dtype == np.float32
        assert np.isfinite(loss.conjugate(v, y)).all()
        # What rounding q by one unit in the last place may do to the solution.
        size = np.abs(exact).max(axis=1, keepdims=True)
        reach = np.abs(q).max(axis=1, keepdims=True)
        moved = reach * size if row.entropic else reach / (row.smoothing + eta)
        assert (np.abs(v - exact) <= 4 * np.finfo(np.float32).eps * (size + moved)).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("scale", [1e9, 1e5, 1e-5, 1e-30])
@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_extreme_scores(row, scale, dtype):
    """Nothing overflows, and Fenchel-Young holds to the rounding of the scores."""
    loss = row.loss()
    f = (row.scores(22, n=10, scale=1.0) * scale).astype(dtype)
    f[0, :] = scale  # all tied
    f[1, 0] = -scale
    y = row.labels(22, n=10)
    value, v = loss.value_and_gradient(f, y)
    assert np.isfinite(value).all()
    assert np.isfinite(v).all()
    assert (value >= 0).all()
    if row.has_dual_step:
        exact = f.astype(np.float64)
        gap = value + loss.conjugate(v, y) - (exact * v.astype(np.float64)).sum(axis=1)
        unit = np.finfo(dtype).eps * (1 + row.smoothing + np.abs(exact).max(axis=1)) * row.m
        assert (np.abs(gap) <= 8 * unit).all()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_extreme_dual_steps(row, dtype):
    loss = row.loss()
    y = row.labels(23, n=8)
    for scale in (1e9, 1.0, 1e-30):
        q = (row.scores(23, n=8, scale=1.0) * scale).astype(dtype)
        q[0, :] = scale
        for eta in ETAS:
            v = loss.dual_step(q, y, eta)
            conjugate = loss.conjugate(v, y)
            assert np.isfinite(conjugate).all()  # finite entries, in the domain
            # A subgradient at p = q - eta v, to the rounding of q and of eta v.
            wide = v.astype(np.float64)
            p = q.astype(np.float64) - eta * wide
            gap = loss.value(p, y) + conjugate - (p * wide).sum(axis=1)
            size = np.abs(q).max(axis=1) + eta * np.abs(wide).max(axis=1)
            unit = np.finfo(dtype).eps * (1 + row.smoothing + size) * row.m
            assert (np.abs(gap) <= 8 * unit).all()


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_scores_of_1e_minus_300(row):
    loss = row.loss()
    f = row.scores(24, n=5) * 1e-300
    y = row.labels(24, n=5)
    at_zero = loss.value(np.zeros((5, row.m)), y)
    np.testing.assert_allclose(loss.value(f, y), at_zero, rtol=1e-14, atol=1e-14)
    assert np.isfinite(loss.gradient(f, y)).all()
    if row.has_dual_step:
        assert np.isfinite(loss.conjugate(loss.dual_step(f, y, 1.0), y)).all()


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_batch_is_the_loop_of_singles(row):
    loss = row.loss()
    f, y = row.scores(25, n=6), row.labels(25, n=6)
    values, gradients = loss.value_and_gradient(f, y)
    assert values.shape == (6,)
    assert gradients.shape == f.shape
    for i in range(6):
        assert loss.value(f[i], y[i]) == values[i]
        assert np.ndim(loss.value(f[i], int(y[i]))) == 0
        np.testing.assert_array_equal(loss.gradient(f[i], y[i]), gradients[i])
        if row.has_dual_step:
            together = loss.conjugate(gradients, y)
            assert loss.conjugate(gradients[i], y[i]) == together[i]
    assert loss.value(f[:0], y[:0]).shape == (0,)
    assert loss.gradient(f[:0], y[:0]).shape == (0, row.m)


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_any_layout_and_type_of_input(row):
    loss = row.loss()
    f, y = row.scores(26, n=4), row.labels(26, n=4)
    expected = loss.gradient(f, y)
    frozen = f.copy()
    frozen.setflags(write=False)
    strided = np.zeros((8, 2 * row.m))[::2, ::2]
    strided[:] = f
    for same in (frozen, np.asfortranarray(f), strided, f[::-1][::-1], f.tolist()):
        np.testing.assert_array_equal(loss.gradient(same, y), expected)
        if row.has_dual_step:
            np.testing.assert_array_equal(loss.dual_step(same, y, 0.5), loss.dual_step(f, y, 0.5))
    for labels in (y.tolist(), y.astype(np.int8), y.astype(np.uint64), y.astype(float)):
        np.testing.assert_array_equal(loss.gradient(f, labels), expected)
    frozen_after = frozen.copy()
    loss.dual_step(frozen, y, 1.0) if row.has_dual_step else loss.value(frozen, y)
    np.testing.assert_array_equal(frozen, frozen_after)
    whole = np.round(f * 3).astype(np.int64)
    np.testing.assert_array_equal(loss.gradient(whole, y), loss.gradient(whole.astype(float), y))
    half = loss.gradient(f.astype(np.float16), y)
    assert half.dtype == np.float32


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_shift_and_permutation(row):
    """A constant added to all scores changes nothing; classes have no order."""
    loss = row.loss()
    f, y = row.scores(27)[0], int(row.labels(27)[0])
    if loss.labels_alike:
        order = np.random.default_rng(row.m).permutation(row.m)
        turned = loss.gradient(f[order], int(np.flatnonzero(order == y)[0]))
        np.testing.assert_allclose(turned, loss.gradient(f, y)[order], atol=1e-14)
    if not row.one_vs_all:
        value, gradient = loss.value_and_gradient(f, y)
        shifted_value, shifted = loss.value_and_gradient(f + 64.0, y)
        assert shifted_value == pytest.approx(value, abs=1e-12)
        np.testing.assert_allclose(shifted, gradient, atol=1e-12 / (row.smoothing or 1.0))


@pytest.mark.parametrize("row", INSTANCES, ids=by_id)
def test_ties_share_alike_where_the_gradient_is_unique(row):
    loss = row.loss()
    if not loss.labels_alike:
        return
    v = loss.gradient(np.zeros(row.m), 0)
    if row.smooth:
        assert np.ptp(v[1:]) <= 1e-15
    if row.has_dual_step:
        step = loss.dual_step(np.zeros(row.m), 0, 1.0)
        assert np.ptp(step[1:]) <= 1e-15


@pytest.mark.parametrize("excess", [10.0, 1e3, 1e6])
def test_outliers_do_not_blur_what_the_truncated_entropy_keeps(excess):
    """Its purpose is to drop the highest wrong labels, however high they are."""
    loss = next(row for row in INSTANCES if row.id == "truncated_entropy-m6-k3").loss()
    f = np.array([0.0, 0.5, -1.0, 0.25, 0.0, 0.0], dtype=np.float32)
    f[4:] = excess, 2 * excess
    kept = np.array([0.5, -1.0, 0.25])
    assert loss.value(f, 0) == pytest.approx(np.log1p(np.exp(kept).sum()), rel=1e-6)


@pytest.mark.parametrize("row", DUAL, ids=by_id)
@given(data=st.data())
def test_fenchel_young_anywhere(row, data):
    loss = row.loss()
    f = np.array(data.draw(st.lists(SCORES, min_size=row.m, max_size=row.m)))
    y = data.draw(st.integers(0, row.m - 1))
    eta = data.draw(STEP_SIZES)
    for dtype in (np.float64, np.float32):
        q = f.astype(dtype)
        v = loss.dual_step(q, y, eta)
        wide = v.astype(np.float64)
        p = q.astype(np.float64) - eta * wide
        gap = loss.value(p, y) + loss.conjugate(v, y) - p @ wide
        size = np.abs(q).max() + eta * np.abs(wide).max()
        assert abs(gap) <= 8 * np.finfo(dtype).eps * (1 + row.smoothing + size) * row.m


def test_no_layout_is_compiled_twice():
    """To numba a read-only array is another type; users must not wait for that."""
    row = INSTANCES[0]
    f, y = row.scores(28, n=3), row.labels(28, n=3)
    row.loss().value(f, y)
    before = len(_value_gradient_rows.signatures)
    f.setflags(write=False)
    unaligned = np.frombuffer(b"\0" + f.tobytes(), dtype=np.uint8)[1:].view(f.dtype)
    for same in (f, f.T.copy().T, unaligned.reshape(f.shape), f.astype(">f8")):
        np.testing.assert_array_equal(row.loss().value(same, y), row.loss().value(f.copy(), y))
    assert len(_value_gradient_rows.signatures) == before


@pytest.mark.parametrize(
    "row",
    [
        Instance("entropy", m=4),
        Instance("entropy", m=4, k=2, variant="alpha"),
        Instance("entropy", m=4, k=2, variant="beta"),
        Instance("ova_logistic", m=4),
    ],
    ids=by_id,
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_conjugates_of_tiny_and_of_large_duals_keep_their_digits(row, dtype):
    """An example of weight 1e12 has duals of 1e-12: of log(1 - s) no digit may be lost."""
    loss = row.loss()
    for size in (1e-30, 1e-12, 1e-8, 1e-4, 0.1, 0.3):
        v = (size * np.array([-1.0, 0.5, 0.25, 0.25])).astype(dtype)
        if row.one_vs_all:
            v[0] = -1.0 if size == 0.3 else -size
        wide = fifty_digits.exactly(v[None].astype(np.float64))[0]
        with mpmath.workdps(fifty_digits.DIGITS):
            expected = float(fifty_digits.conjugate(row, wide, 0))
        eps = float(np.finfo(dtype).eps)
        assert loss.conjugate(v, 0) == pytest.approx(expected, rel=8 * eps), size
