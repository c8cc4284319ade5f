"""Entropic steps: an independent solution, optimality conditions, and the search for the caps."""

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist._jit import njit
from shortlist.projections import prox_entropy
from shortlist.projections.entropic import entropic_step, kind_of
from shortlist.projections.threshold import shift_to_maximum
from tests.projections import entropic_reference as reference
from tests.projections.vectors import ENTRIES, hard_vector

SETS = [
    pytest.param(m, k, variant, id=f"m{m}-k{k}-{variant}")
    for m, k, variant in [
        (1, 1, "alpha"),
        (2, 1, "beta"),
        (8, 1, "alpha"),
        (2, 2, "alpha"),
        (2, 2, "beta"),
        (5, 2, "alpha"),
        (5, 2, "beta"),
        (9, 8, "alpha"),
        (9, 8, "beta"),
        (6, 6, "alpha"),
        (6, 6, "beta"),
        (24, 7, "alpha"),
        (24, 7, "beta"),
    ]
]
ETAS = [0.0, 1e-12, 1e-4, 0.3, 1.0, 40.0, 1e6, 1e12]


def _violation(x, k, variant):
    s = x.sum()
    cap = np.inf if k == 1 else s / k if variant == "alpha" else 1.0 / k
    return max(-x.min(), s - 1.0, (x - cap).max())


@pytest.mark.parametrize(("m", "k", "variant"), SETS)
def test_nested_bisection(m, k, variant):
    """Moderate vectors: every eta, to nearly all digits, in both precisions."""
    rng = np.random.default_rng(m + k)
    a = rng.normal(size=(6, m)) * rng.choice([0.1, 2.0, 8.0], size=(6, 1))
    a[:2] = np.round(a[:2])  # ties
    rows = np.repeat(a, len(ETAS), axis=0)
    etas = np.tile(ETAS, len(a))
    for dtype in (np.float64, np.float32):
        given_rows = rows.astype(dtype)
        expected = reference.solve(given_rows.astype(np.float64), etas, k, variant)
        for row, eta, solution in zip(given_rows, etas, expected, strict=True):
            x = prox_entropy(row, eta, k, variant)
            assert x.dtype == dtype
            assert _violation(x.astype(np.float64), k, variant) <= 4 * m * np.finfo(dtype).eps
            size = solution.sum() * (1 + np.abs(row).max())
            assert np.abs(x - solution).max() <= 16 * np.finfo(dtype).eps * size


@pytest.mark.parametrize(("m", "k", "variant"), SETS)
def test_hard_vectors(m, k, variant):
    """Ties, outliers, 1e9: to the rounding errors of the vector."""
    rng = np.random.default_rng(7 * m + k)
    rows = np.stack([hard_vector(rng, m) for _ in range(60)]).astype(np.float32)
    etas = np.where(rng.random(60) < 0.2, 0.0, 10.0 ** rng.uniform(-9, 9, size=60))
    exact = rows.astype(np.float64)
    expected = reference.solve(exact, etas, k, variant)
    for dtype in (np.float64, np.float32):
        for row, eta, solution in zip(exact, etas, expected, strict=True):
            x = prox_entropy(row.astype(dtype), eta, k, variant)
            assert np.isfinite(x).all()
            assert _violation(x.astype(np.float64), k, variant) <= 4 * m * np.finfo(dtype).eps
            # The reference's own bisection is no better than the rounding of a and eta.
            rounding = np.finfo(np.float64).eps * (np.abs(row).max() + eta)
            rounding += np.finfo(dtype).eps * (1 + np.ptp(row))
            assert np.abs(x - solution).max() <= 16 * max(solution.sum(), 1e-37) * rounding


@njit
def _step_from(b, eta, k, kind, omega, u, x):
    z = np.empty_like(b)
    top = shift_to_maximum(b, z)
    start = np.array([omega, np.float64(u)])
    value, s = entropic_step(z, top, eta, k, kind, b.shape[0], start, x)
    return value, s, start


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_start_leads_to_the_same_solution(dtype):
    """The warm start is a guess of omega and of how many entries are capped; it may be absurd."""
    rng = np.random.default_rng(0)
    for _ in range(1500):
        m = int(rng.choice([2, 3, 5, 12, 40]))
        k = int(rng.integers(1, m + 1))
        variant = str(rng.choice(["alpha", "beta"]))
        b = hard_vector(rng, m).astype(dtype)
        eta = float(rng.choice([0.0, 10.0 ** rng.uniform(-12, 12), 10.0 ** rng.uniform(-2, 3)]))
        cold = prox_entropy(b, eta, k, variant)
        x = np.empty(m, dtype)
        omega = rng.normal() * 10.0 ** rng.uniform(-1, 10)
        _, s, start = _step_from(b, eta, k, kind_of(k, variant), omega, rng.integers(0, k + 3), x)
        eps = float(np.finfo(dtype).eps)
        tolerance = 16 * eps * (1 + float(np.ptp(b))) * max(float(cold.sum()), 1e-37)
        assert np.abs(x - cold).max() <= tolerance
        assert s == pytest.approx(x.astype(np.float64).sum(), rel=8 * m * eps)
        again = np.empty(m, dtype)
        _step_from(b, eta, k, kind_of(k, variant), start[0], start[1], again)
        assert np.abs(again - x).max() <= tolerance


@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("variant", ["alpha", "beta"])
def test_optimality_conditions(k, variant):
    """Free entries share one sigma; capped ones have multipliers that are not negative."""
    rng = np.random.default_rng(k)
    for eta in (0.0, 0.5, 30.0):
        for a in rng.normal(size=(40, 7)) * 4:
            x = prox_entropy(a, eta, k, variant)
            s = x.sum()
            cap = s / k if variant == "alpha" else 1.0 / k
            capped = x >= cap * (1 - 1e-9)
            level = a - eta * x - np.log(x)
            sigma = level[~capped][0]
            np.testing.assert_allclose(level[~capped], sigma, atol=1e-9)
            assert (level[capped] >= sigma - 1e-9).all()
            multipliers = (level[capped] - sigma).sum() if variant == "alpha" else 0.0
            assert sigma + multipliers / k == pytest.approx(eta * s - np.log1p(-s), abs=1e-8)


@pytest.mark.parametrize(("k", "variant"), [(1, "alpha"), (3, "alpha"), (3, "beta")])
def test_generic_solver(k, variant):
    rng = np.random.default_rng(5)
    for eta in (0.0, 2.0):
        a = rng.normal(size=6) * 2
        x = cp.Variable(6)
        s = cp.sum(x)
        cap = s / k if variant == "alpha" else 1.0 / k
        quadratic = 0.5 * eta * (cp.sum_squares(x) + cp.square(s))
        objective = -cp.sum(cp.entr(x)) - cp.entr(1 - s) - a @ x + quadratic
        problem = cp.Problem(cp.Minimize(objective), [x <= cap, s <= 1])
        problem.solve(solver=cp.CLARABEL, tol_gap_abs=1e-10, tol_gap_rel=1e-10)
        np.testing.assert_allclose(prox_entropy(a, eta, k, variant), x.value, atol=1e-5)


@given(
    a=st.lists(ENTRIES, min_size=1, max_size=9).map(np.array),
    eta=st.one_of(st.just(0.0), st.floats(-15.0, 15.0).map(lambda e: 10.0**e)),
    variant=st.sampled_from(["alpha", "beta"]),
    dtype=st.sampled_from([np.float64, np.float32]),
    data=st.data(),
)
def test_feasible_for_anything(a, eta, variant, dtype, data):
    k = data.draw(st.integers(1, len(a)))
    x = prox_entropy(a.astype(dtype), eta, k, variant)
    assert _violation(x.astype(np.float64), k, variant) <= 4 * len(a) * np.finfo(dtype).eps
    order = np.argsort(a.astype(dtype), kind="stable")
    assert (np.diff(x[order]) >= -4 * np.finfo(dtype).eps * x.max()).all()  # larger a, larger x


def test_limits_in_eta():
    a = np.array([0.5, -1.0, 2.0, 0.0])
    softmax = np.exp(a) / (1 + np.exp(a).sum())
    np.testing.assert_allclose(prox_entropy(a, 0.0), softmax, rtol=1e-15)
    np.testing.assert_allclose(prox_entropy(a, 1e-17), softmax, rtol=1e-15)
    np.testing.assert_allclose(prox_entropy(a, 1e-10), softmax, rtol=1e-9)
    assert prox_entropy(a, 1e12).max() < 1e-10
    sums = [prox_entropy(a, eta).sum() for eta in (0.0, 0.1, 1.0, 10.0, 1e3)]
    assert (np.diff(sums) < 0).all()


@pytest.mark.parametrize("k", [2, 5, 100])
def test_many_capped_far_below_zero(k):
    """The true label ahead by far, and all of the k best tied: s is tiny but not lost."""
    a = np.full(k + 2, -0.2)
    a[k:] = -50.0
    for shift in (0.0, 40.0, 300.0):
        x = prox_entropy(a - shift, 0.0, k, "alpha")
        odds = k * np.exp(-0.2 - shift) + 2 * np.exp(-50.0 - shift)
        assert x.sum() == pytest.approx(odds / (1 + odds), rel=1e-6)
        np.testing.assert_allclose(x[:k], x[0], rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ties_at_the_cap_do_not_turn_the_search_back(dtype):
    """Two entries exactly at s/2, and an eta that makes the edge uncertain by many units."""
    for top in (671.35836036507, 300.0):
        for eta in (24177942.360346265, 1e4, 1e9):
            x = prox_entropy(np.array([-2 * top, top, top], dtype), eta, 2)
            assert x[1] == pytest.approx(x[2], rel=8 * float(np.finfo(dtype).eps))
            assert x[0] < 1e-30
            # log x - log(1-s) + eta (x + s) = a at x = s/2
            share = float(x[1])
            residual = np.log(share) - np.log1p(-2.0 * share) + 3.0 * eta * share - dtype(top)
            assert abs(residual) <= 16 * np.finfo(dtype).eps * (20 + top)


def test_rows_and_input():
    a = np.random.default_rng(8).normal(size=(5, 4))
    together = prox_entropy(a, 0.7, 2)
    for row, x in zip(a, together, strict=True):
        np.testing.assert_array_equal(prox_entropy(row, 0.7, 2), x)
    with pytest.raises(ValueError, match=r"eta must be a number, zero or larger; got -1"):
        prox_entropy(a, -1.0)
    with pytest.raises(ValueError, match=r"eta must be"):
        prox_entropy(a, np.nan)
    with pytest.raises(ValueError, match=r"k must lie between 1 and 4"):
        prox_entropy(a, 1.0, 5)
    with pytest.raises(ValueError, match="variant"):
        prox_entropy(a, 1.0, 2, "delta")
    with pytest.raises(ValueError, match="NaN or infinite"):
        prox_entropy([np.nan], 1.0)
