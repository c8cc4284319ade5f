"""Euclidean projections: in the set, optimal, stable, and what a generic solver finds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shortlist import projections
from tests.projections.sets import SETS, Set
from tests.projections.vectors import hard_vector, vectors

RHOS = [0.0, 0.3, 1.0, 50.0]


@pytest.mark.parametrize("name", SETS)
@given(
    a=vectors(),
    rho=st.sampled_from([*RHOS, 1e-9, 1e6]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_feasible_and_optimal(name, a, rho, dtype):
    chosen = SETS[name](len(a))
    a = a.astype(dtype)
    x = chosen.project(a, rho)
    assert x.dtype == dtype
    assert chosen.violation(x.astype(np.float64)) <= 4 * len(a) * np.finfo(dtype).eps
    assert chosen.gap(x, a, rho) <= 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", SETS)
def test_feasible_and_optimal_on_many_hard_vectors(name):
    rng = np.random.default_rng(0)
    for _ in range(300):
        m = int(rng.choice([1, 2, 3, 5, 12, 40]))
        chosen, a = SETS[name](m), hard_vector(rng, m)
        rho = float(rng.choice([0.0, rng.random(), 10.0 ** rng.uniform(-6, 6)]))
        for dtype in (np.float64, np.float32):
            given_vector = a.astype(dtype)
            x = chosen.project(given_vector, rho)
            assert chosen.violation(x.astype(np.float64)) <= 4 * m * np.finfo(dtype).eps
            assert chosen.gap(x, given_vector, rho) <= 4 * np.finfo(dtype).eps


@pytest.mark.parametrize("name", SETS)
def test_generic_solver(name):
    rng = np.random.default_rng(1)
    for m in (1, 2, 6):
        a = rng.normal(size=m) * 2
        for rho in (0.0, 0.7):
            chosen = SETS[name](m)
            np.testing.assert_allclose(
                chosen.project(a, rho), chosen.oracle(a, rho), atol=1e-6 * max(1.0, m)
            )


@pytest.mark.parametrize("name", SETS)
def test_variational_inequality(name):
    """<gradient at x, y - x> >= 0 for points y of the set, corners and mixtures of them."""
    rng = np.random.default_rng(2)
    for rho in RHOS:
        chosen = SETS[name](7)
        a = rng.normal(size=7) * 2
        x = chosen.project(a, rho)
        gradient = x - a + rho * x.sum()
        for _ in range(50):
            y = chosen.random_point(rng, 7)
            assert gradient @ (y - x) >= -1e-12 * (1 + rho)


@pytest.mark.parametrize("name", SETS)
@given(a=vectors())
def test_projecting_twice_is_projecting_once(name, a):
    chosen = SETS[name](len(a))
    once = chosen.project(a)
    size = chosen.radius if np.isfinite(chosen.radius) else max(once.sum(), 1e-300)
    np.testing.assert_allclose(chosen.project(once), once, atol=1e-14 * len(a) * size)


@pytest.mark.parametrize("name", SETS)
def test_rows_of_a_matrix(name):
    rng = np.random.default_rng(3)
    chosen, a = SETS[name](5), rng.normal(size=(8, 5))
    together = chosen.project(a)
    assert together.shape == a.shape
    for row, x in zip(a, together, strict=True):
        np.testing.assert_array_equal(chosen.project(row), x)


def test_known_solutions():
    np.testing.assert_allclose(projections.project_simplex([3.0, 0.0, 0.0]), [1.0, 0.0, 0.0])
    np.testing.assert_allclose(projections.project_simplex([-5.0, -5.0]), [0.5, 0.5])
    inside = np.array([0.2, 0.1, 0.3])
    np.testing.assert_allclose(projections.project_simplex(inside, equality=False), inside)
    np.testing.assert_allclose(projections.project_knapsack(inside, upper=0.25), [0.2, 0.1, 0.25])
    # Nothing but zero can have its largest entry at no more than half of a one-entry sum.
    np.testing.assert_allclose(
        projections.project_topk_simplex([1.0, -5.0], 2), [0.0, 0.0], atol=1e-15
    )
    np.testing.assert_allclose(projections.project_topk_cone([10.0, -1.0], 2), [4.5, 4.5])
    np.testing.assert_allclose(projections.project_topk_simplex([10.0, -1.0], 2), [0.5, 0.5])


def test_the_biased_form_pulls_the_sum_down():
    a = np.array([0.9, 0.4, 0.1])
    sums = [projections.project_simplex(a, rho=r, equality=False).sum() for r in (0, 1, 10, 1e6)]
    assert (np.diff(sums) < 0).all()
    # With equality the sum is fixed, and rho immaterial.
    np.testing.assert_array_equal(
        projections.project_simplex(a, rho=5.0), projections.project_simplex(a)
    )


@pytest.mark.parametrize("rho", RHOS)
def test_variants_and_special_cases_agree(rho):
    a = np.random.default_rng(4).normal(size=(30, 6)) * 2
    simplex = projections.project_simplex(a, rho=rho, equality=False)
    for variant in ("alpha", "beta"):
        one = projections.project_topk_simplex(a, 1, rho=rho, variant=variant)
        np.testing.assert_allclose(one, simplex, atol=1e-15)
    beta = projections.project_topk_simplex(a, 3, radius=2.0, rho=rho, variant="beta")
    knapsack = projections.project_knapsack(a, radius=2.0, upper=2.0 / 3.0, rho=rho)
    np.testing.assert_allclose(beta, knapsack, atol=1e-15)
    # k = m leaves only equal entries, of any size up to radius/m.
    equal = projections.project_topk_simplex(a, 6, rho=rho)
    expected = np.clip(a.mean(axis=1) / (1 + 6 * rho), 0.0, 1.0 / 6.0)
    np.testing.assert_allclose(equal, np.repeat(expected[:, None], 6, axis=1), atol=1e-15)


def test_outliers_leave_the_digits_of_the_others():
    """Capped entries may be as large as they like."""
    small = np.array([0.3, 0.1, -0.2])
    without = projections.project_knapsack(small, radius=0.3, upper=0.5)
    huge = np.concatenate([[1e15, 1e12], small])
    x = projections.project_knapsack(huge, radius=1.3, upper=0.5)
    # Subtracting the largest entry costs the others digits, but not their sum.
    np.testing.assert_allclose(x[:2], 0.5)
    assert x.sum() == pytest.approx(1.3, rel=1e-15)
    moderate = np.concatenate([[1e6, 1e3], small])
    x = projections.project_knapsack(moderate, radius=1.3, upper=0.5)
    np.testing.assert_allclose(x[2:], without, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: projections.project_simplex([]), ValueError, r"vector or a matrix.*shape \(0,\)"),
        (lambda: projections.project_simplex(1.0), ValueError, r"vector or a matrix"),
        (lambda: projections.project_simplex(np.zeros((1, 2, 3))), ValueError, r"row vectors"),
        (lambda: projections.project_simplex([1.0, np.nan]), ValueError, r"NaN or infinite"),
        (lambda: projections.project_simplex([1.0, np.inf]), ValueError, r"NaN or infinite"),
        (lambda: projections.project_simplex(["a"]), TypeError, r"real numbers"),
        (lambda: projections.project_simplex([1j]), TypeError, r"real numbers"),
        (lambda: projections.project_simplex([1.0], 0.0), ValueError, r"radius must be a positive"),
        (lambda: projections.project_simplex([1.0], rho=-1.0), ValueError, r"rho must be .* zero"),
        (lambda: projections.project_simplex([1.0], rho=np.nan), ValueError, r"rho must be"),
        (lambda: projections.project_knapsack([1.0], upper=-2), ValueError, r"upper must be a pos"),
        (
            lambda: projections.project_knapsack([1.0, 2.0], 3.0, equality=True),
            ValueError,
            r"radius must be at most upper \* 2 = 2 .* got 3",
        ),
        (
            lambda: projections.project_topk_simplex([1.0], 2),
            ValueError,
            r"k must lie between 1 and 1",
        ),
        (lambda: projections.project_topk_simplex([1.0], 0), ValueError, r"k must lie between"),
        (lambda: projections.project_topk_cone([1.0], 1.0), TypeError, r"k must be an integer"),
        (
            lambda: projections.project_topk_simplex([1.0], 1, variant="c"),
            ValueError,
            r"variant must be 'alpha', 'beta' or 'printed'; got 'c'",
        ),
        (
            lambda: projections.project_ordered_simplex([1.0, 2.0], [0.5, 0.6]),
            ValueError,
            r"weights must not increase .* got \[0.5, 0.6\]",
        ),
        (
            lambda: projections.project_ordered_simplex([1.0], [1.0, 0.5]),
            ValueError,
            r"weights must be at most 1, the number of entries; got 2",
        ),
        (
            lambda: projections.project_ordered_simplex([1.0], [0.0]),
            ValueError,
            r"weights must be finite, zero or larger and not all zero",
        ),
        (
            lambda: projections.project_ordered_simplex([1.0], "w"),
            ValueError,
            r"weights must be a list of numbers; got 'w'",
        ),
        (
            lambda: projections.project_ordered_simplex([1.0], [1.0], variant="printed"),
            ValueError,
            r"variant must be 'alpha' or 'beta'; got 'printed'",
        ),
    ],
)
def test_bad_input(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_layouts_and_types_of_input():
    a = np.random.default_rng(5).normal(size=(4, 6))
    expected = projections.project_topk_simplex(a, 2)
    frozen = a.copy()
    frozen.setflags(write=False)
    for same in (frozen, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2], a.tolist()):
        np.testing.assert_array_equal(projections.project_topk_simplex(same, 2), expected)
    whole = projections.project_simplex(np.array([3, 1, 2]))
    assert whole.dtype == np.float64
    np.testing.assert_array_equal(whole, [1.0, 0.0, 0.0])


def test_nothing_below_the_k_largest_when_they_stand_apart():
    """In single precision the next entry must not slip above zero by rounding."""
    a = np.array([0.29932219, 0.60240811, -1.00971258, 0.69811833], dtype=np.float32)
    x = projections.project_topk_cone(a, 3, rho=1254.697)
    assert x[2] == 0.0
    assert np.ptp(x[[0, 1, 3]]) <= 1e-9


def test_a_cone_is_a_set_without_bound():
    a = np.random.default_rng(6).normal(size=7) + 1.0
    far = Set(radius=1e6, k=3).project(a)
    np.testing.assert_allclose(projections.project_topk_cone(a, 3), far, atol=1e-14)
    doubled = projections.project_topk_cone(2.0 * a, 3)
    np.testing.assert_allclose(doubled, 2.0 * far, atol=1e-14)
