"""A visit of SDCA keeps the duals in the domain and never lowers the dual objective.

The steps of some losses are approximate. The objectives are compared in double, by the formulas.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from mpmath import mp

from shortlist import losses
from shortlist._jit import njit
from shortlist.losses.kernels import ascend, ascend_exactly
from shortlist.losses.softmax_visit import (
    _MAX_RESIDUAL,
    _MAX_SCALE,
    _MIN_RESIDUAL,
    _STEP_ERROR,
    _divergence_of,
    _moved,
    _moved_with_gain,
)
from tests import references
from tests.instances import DUAL, Instance, by_id

PRECISIONS = pytest.mark.parametrize("dtype", [np.float32, np.float64])
ETAS = [1e-8, 1e-4, 1e-2, 1.0, 30.0, 1e4, 1e8]
KAPPA = 4.0  # |x_i|^2
N = 4
# One instance per family of kernels, to be visited with numbers of classes not in the list.
FAMILIES = [
    Instance("hinge", m=0),
    Instance("smooth_hinge", m=0, k=3, smoothing=0.5),
    Instance("entropy", m=0),
    Instance("entropy", m=0, k=3, variant="beta"),
    Instance("ova_smooth_hinge", m=0, smoothing=0.5),
    Instance("ova_logistic", m=0),
]


@njit
def visit_rows(loss, s, y, cost, kappa, stands_for, guess, v, delta, shares):
    work = np.empty((2, s.shape[1]), s.dtype)
    for i in range(s.shape[0]):
        start = np.array([guess, 0.0])
        step = (s[i], y[i], cost[i], kappa[i], start, stands_for, v[i], delta[i], work)
        shares[i] = ascend(loss, *step)


@njit
def visit_rows_exactly(loss, s, y, cost, kappa, stands_for, guess, v, delta, shares):
    work = np.empty((2, s.shape[1]), s.dtype)
    for i in range(s.shape[0]):
        start = np.array([guess, 0.0])
        step = (s[i], y[i], cost[i], kappa[i], start, stands_for, v[i], delta[i], work)
        shares[i] = ascend_exactly(loss, *step)


def visit(loss, s, y, eta, v, stands_for=1, exactly=False, first=False):
    """New duals, changes of the weights, shares of the gap; nothing given is changed.

    Before a first visit an example's ``start`` is zero.
    """
    n = len(y)
    new, delta, shares = v.copy(), np.empty_like(v), np.empty(n)
    cost, kappa = np.full(n, eta / KAPPA), np.full(n, KAPPA)
    guess = 0.0 if first else 0.5
    kernel = visit_rows_exactly if exactly else visit_rows
    kernel(loss.spec, s.copy(), y, cost, kappa, stands_for, guess, new, delta, shares)
    return new, delta, shares


def starts(row, rng, scale, dtype):
    """Scores, labels and duals: any feasible ones, and ones that suit the scores or nearly so."""
    y = rng.integers(0, row.m, size=3 * N)
    s = scale * rng.normal(size=(3 * N, row.m))
    s[::3] = scale * rng.integers(-1, 2, size=s[::3].shape)  # ties
    s[0] = scale
    s = s.astype(dtype)
    v = np.stack([references.random_dual(row, rng, label) for label in y]).astype(dtype)
    suited = s + rng.choice([0.01, 0.1, 0.5], size=(3 * N, 1)) * rng.normal(size=s.shape)
    v[N:] = row.loss().gradient(suited.astype(dtype), y)[N:]
    return s, y, v


def raised(row, s, y, eta, before, after):
    """By how much a visit raised the dual objective of one example, over C_i."""
    change = after - before
    conjugates = references.conjugate(row, before, y) - references.conjugate(row, after, y)
    return conjugates + s @ change - 0.5 * eta * float(change @ change)


def allowance(row, s, eta, before, after, dtype):
    """What rounding may lower the objective by: that of scores, of eta v, and of m duals' sum."""
    eps = float(np.finfo(dtype).eps)
    reach = float(np.abs(s).max())
    mass = float(np.abs(before).sum() + np.abs(after).sum())
    moved = eps * (reach + eta * max(np.abs(before).max(), np.abs(after).max()))
    squared = row.m * moved**2 / max(eta, 1e-300)
    return (8 + row.m) * eps * (1 + row.smoothing + reach) * (1 + mass) + 4 * min(
        moved * mass, squared
    )


def check(row, dtype, scales, etas):
    loss = row.loss()
    rng = np.random.default_rng([row.m, row.k])
    for scale in scales:
        s, y, v = starts(row, rng, scale, dtype)
        for eta, first in itertools.product(etas, (False, True)):
            new, delta, shares = visit(loss, s, y, eta, v, first=first)
            where = f"scale {scale:g}, eta {eta:g}, first {first}"
            assert np.isfinite(loss.conjugate(new, y)).all(), where  # finite, in the domain
            assert (np.isfinite(shares) & (shares >= 0)).all(), where
            before, after = v.astype(np.float64), new.astype(np.float64)
            expected = eta / KAPPA * (before - after)
            size = eta / KAPPA * np.abs([before, after]).max()
            np.testing.assert_allclose(
                delta, expected, atol=4 * np.finfo(dtype).eps * size, err_msg=where
            )
            wide = s.astype(np.float64)
            for i, label in enumerate(y):
                gain = raised(row, wide[i], label, eta, before[i], after[i])
                least = -allowance(row, wide[i], eta, before[i], after[i], dtype)
                assert gain >= least, f"{where}, row {i}"


@PRECISIONS
@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_no_visit_lowers_the_dual(row, dtype):
    check(row, dtype, [1e-6, 1.0, 10.0, 1e3, 1e6], ETAS)


@PRECISIONS
@pytest.mark.parametrize("m", [2, 17, 1000])
@pytest.mark.parametrize("row", FAMILIES, ids=by_id)
def test_no_visit_lowers_the_dual_of_few_or_many_classes(row, m, dtype):
    check(replace(row, m=m, k=min(row.k, m - 1)), dtype, [1.0, 1e4], [1e-4, 1.0, 1e4])


@PRECISIONS
def test_softmax_visits_in_a_row_reach_the_exact_step(dtype):
    """Approximate visits with the same scores, W following, end where the exact step does."""
    row = Instance("entropy", m=26)
    loss = row.loss()
    rng = np.random.default_rng(0)
    s, y, v = starts(row, rng, 2.0, dtype)
    for eta in (0.1, 1.0, 30.0):
        exact = visit(loss, s, y, eta, v, exactly=True)[0]
        found, scores = v, s
        for _ in range(12):
            new = visit(loss, scores, y, eta, found)[0]
            scores = (scores + eta * (found - new)).astype(dtype)
            found = new
        np.testing.assert_allclose(found, exact, atol=50 * np.finfo(dtype).eps * (1 + eta))


def test_the_bound_on_the_divergence_holds_and_is_close():
    """Against the divergence itself, in digits to spare, from d = -x to a million times x."""
    h = np.concatenate([-np.logspace(-9, 0, 60), np.logspace(-9, 6, 200)])
    with mp.workdps(60):
        exact = [(1 + mp.mpf(each)) * mp.log1p(mp.mpf(each)) - mp.mpf(each) for each in h[h > -1]]
        exact = np.array([*map(float, exact)])
    for x in (1e-30, 1e-3, 1.0):
        bound = np.array([bound_on_divergence(each * x, x) for each in h]) / x
        assert bound[h == -1.0] == 1.0
        bound = bound[h > -1.0]
        assert np.all(bound >= exact * (1 - 1e-15))
        near = np.abs(h[h > -1.0]) < 0.5
        assert np.all(bound[near] <= 1.1 * exact[near])


def test_the_step_of_fourth_order_leaves_no_more_of_its_equation_than_is_said():
    """eta z + log z = eta x + log x + d, in digits to spare, and the gain that is said of it."""
    found = []
    for d in np.linspace(_MIN_RESIDUAL, _MAX_RESIDUAL, 60):
        for x, eta in itertools.product([1e-6, 0.3, 1.0], np.r_[0.0, np.logspace(-3, 9, 49)]):
            z, gain = step_with_gain(x, d, eta)
            assert z == pytest.approx(float(step(x, d, eta)), rel=1e-14)
            with mp.workdps(40):
                wide, change = mp.mpf(float(z)), mp.mpf(float(z)) - mp.mpf(x)
                left = mp.mpf(eta) * change + mp.log(wide / mp.mpf(x)) - mp.mpf(d)
                # The digits that z itself has lost.
                lost = 4e-16 * (1 + eta * x)
                found.append((float(left) - lost) / d**4)
                exact = d * change - wide * mp.log(wide / mp.mpf(x)) + change
                exact -= mp.mpf(eta) / 2 * change**2
            assert gain <= float(exact) + 1e-15 * x * (1 + eta * x)
    assert 0.9 * _STEP_ERROR / _MAX_SCALE < max(found) <= _STEP_ERROR / _MAX_SCALE


@njit
def step(x, d, eta):
    return _moved(x, d, eta, 1.0, 0.5, 2 / 3)


@njit
def step_with_gain(x, d, eta):
    return _moved_with_gain(x, d, 1.0 / (1.0 + eta * x), 0.5 * eta, 1.0, 0.5, 2 / 3, _STEP_ERROR)


@njit
def bound_on_divergence(d, x):
    return _divergence_of(d, x, 1.0, 0.5, 1 / 3)


def gains(row, s, y, eta, before, *afters):
    """What each of some visits gained, a row an example."""
    each = zip(s.astype(float), y, before.astype(float), zip(*afters, strict=True), strict=True)
    return np.array(
        [[raised(row, f, label, eta, old, new) for new in both] for f, label, old, both in each]
    )


@PRECISIONS
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize("eta", [0.1, 1.0, 3.0])
def test_softmax_visits_are_not_exact_but_close(dtype, first, eta):
    """Else the tests above would say nothing of the approximation."""
    row = Instance("entropy", m=26)
    loss = row.loss()
    rng = np.random.default_rng(1)
    s = rng.normal(size=(50, 26)).astype(dtype)
    y = rng.integers(0, 26, size=50)
    v = loss.gradient((s + 0.3 * rng.normal(size=s.shape)).astype(dtype), y)
    if first:
        v[::2] = 0
    new = visit(loss, s, y, eta, v, first=first)[0]
    exact = visit(loss, s, y, eta, v, exactly=True)[0]
    assert (new != exact).any(axis=1).mean() > 0.5
    found = gains(row, s, y, eta, v, new, exact)
    assert (found[:, 0] > 0.9 * found[:, 1]).all()


@PRECISIONS
@pytest.mark.parametrize("m", [2, 26, 1000])
def test_first_softmax_visits_gain_what_exact_ones_do(m, dtype):
    """However long the step, as long as the scores tell the wrong labels little apart."""
    row = Instance("entropy", m=m)
    loss = row.loss()
    rng = np.random.default_rng(4)
    s = (0.3 * rng.normal(size=(20, m))).astype(dtype)
    y = rng.integers(0, m, size=20)
    v = np.zeros_like(s)
    for eta in (0.01, 1.0, 100.0, 1e4):
        new = visit(loss, s, y, eta, v, first=True)[0]
        exact = visit(loss, s, y, eta, v, exactly=True)[0]
        found = gains(row, s, y, eta, v, new, exact)
        assert (found[:, 0] > 0.999 * found[:, 1]).all(), f"eta {eta:g}"


@PRECISIONS
@pytest.mark.parametrize("eta", [0.1, 1.0, 30.0])
def test_softmax_visits_bring_back_a_class_that_was_next_to_nothing(dtype, eta):
    row = Instance("entropy", m=26)
    loss = row.loss()
    rng = np.random.default_rng(2)
    s = rng.normal(size=(1, 26)).astype(dtype)
    y = np.zeros(1, np.int64)
    s[0, 1] = -120.0
    v = loss.gradient(s, y)
    s[0, 1] = 3.0
    new, exact = (visit(loss, s, y, eta, v, exactly=exactly)[0] for exactly in (False, True))
    np.testing.assert_allclose(new, exact, atol=0.05)


@pytest.mark.parametrize("row", FAMILIES, ids=by_id)
def test_shares_of_the_gap(row):
    """C_i [L(s) + L*(v) - <s, v>], to second order where the step is approximate."""
    row = replace(row, m=17)
    loss = row.loss()
    rng = np.random.default_rng(2)
    s = rng.normal(size=(30, 17))
    y = rng.integers(0, 17, size=30)
    v = loss.gradient(s + 0.05 * rng.normal(size=s.shape), y)
    shares = visit(loss, s, y, 2.0, v)[2]
    exact = 2.0 / KAPPA * (loss.value(s, y) + loss.conjugate(v, y) - (s * v).sum(axis=1))
    np.testing.assert_allclose(shares, exact, rtol=0.2, atol=1e-14)
    assert shares.sum() == pytest.approx(exact.sum(), rel=0.05, abs=1e-12)
    # A first visit may bound it from below.
    first = visit(loss, s, y, 2.0, v, first=True)[2]
    assert (first <= exact + 1e-13).all()
    none = np.zeros_like(v)
    np.testing.assert_allclose(
        visit(loss, s, y, 2.0, none, first=True)[2], 2.0 / KAPPA * loss.value(s, y)
    )


def test_a_visit_stands_for_others_or_is_not_measured():
    loss = losses.get("smooth_hinge", k=3, smoothing=0.5)
    rng = np.random.default_rng(3)
    s, y, v = starts(Instance("smooth_hinge", m=17, k=3, smoothing=0.5), rng, 1.0, np.float64)
    one = visit(loss, s, y, 1.0, v)[2]
    assert one.sum() > 0
    np.testing.assert_allclose(visit(loss, s, y, 1.0, v, stands_for=8)[2], 8 * one, rtol=1e-13)
    assert not visit(loss, s, y, 1.0, v, stands_for=0)[2].any()


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize(("k", "variant"), [(1, "alpha"), (3, "alpha"), (7, "alpha"), (3, "beta")])
@PRECISIONS
def test_a_hinge_ends_at_the_same_dual_whatever_it_starts_from(k, variant, smoothing, dtype):
    """What visits keep of an example only says where to look first."""
    m = 70
    name = "smooth_hinge" if smoothing else "hinge"
    row = Instance(name, m=m, k=k, variant=variant, smoothing=smoothing)
    spec = row.loss().spec
    rng = np.random.default_rng(k)
    work = np.empty((2, m), dtype)
    zeros = 0
    for scale, eta in itertools.product([0.05, 1.0, 30.0], [0.1, 3.0]):
        for _ in range(40):
            # The label's score leads, so that some duals are zero.
            s, y = (scale * rng.normal(size=m)).astype(dtype), int(rng.integers(m))
            s[y] += dtype(rng.choice([0.0, 1.0, 2.0, 4.0]) * scale)
            v = references.random_dual(row, rng, y).astype(dtype) * dtype(rng.random() < 0.5)
            reached = []
            near = None
            for start in ([0.0, 0.0], None, [0.0, 1.0], [-9.0, 0.1], [9.0, 0.01], [0.3, 0.0]):
                kept = np.array(near if start is None else start)
                new, delta = v.copy(), np.empty(m, dtype)
                ascend(spec, s.copy(), y, eta / KAPPA, KAPPA, kept, 1, new, delta, work)
                reached.append(new)
                near = kept if near is None else near
            zeros += not reached[0].any()
            for other in reached[1:]:
                tolerance = 64 * np.finfo(dtype).eps * (1 + scale / (eta + smoothing))
                np.testing.assert_allclose(other, reached[0], atol=tolerance)
    assert 0 < zeros < 200
