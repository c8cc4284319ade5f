"""Losses of several right labels: their definitions, generic solvers, the multiclass losses."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from shortlist import losses
from shortlist._jit import njit
from shortlist.losses import kernels
from shortlist.losses.labels import label_rows
from shortlist.losses.registry import ENTRIES
from tests.instances import by_id
from tests.losses.extremes import ETAS, SCORES, STEP_SIZES
from tests.multilabel import (
    CASES,
    SMOOTH,
    Case,
    closed_value,
    conjugate,
    random_dual,
    solved_dual_step,
    solved_value,
)

PRECISIONS = [np.float64, np.float32]


def young_gap(loss, p, v, right):
    """L(p) + L*(v) - <p, v>, in double."""
    wide = v.astype(np.float64)
    return loss.value(p, right) + loss.conjugate(v, right) - (p * wide).sum(axis=-1)


@pytest.mark.parametrize("case", [c for c in CASES if c.name != "smooth_hinge"], ids=by_id)
def test_value_is_the_formula(case):
    f, right = case.scores(1, n=50), case.indicators(1, n=50)
    expected = [closed_value(case, *row) for row in zip(f, right, strict=True)]
    np.testing.assert_allclose(case.loss().value(f, right), expected, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_value_is_the_supremum_over_the_dual(case):
    for f, right in zip(case.scores(2, n=4), case.indicators(2, n=4), strict=True):
        expected = solved_value(case, f, right)
        assert case.loss().value(f, right) == pytest.approx(expected, rel=1e-7, abs=2e-7)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_dual_step_by_a_generic_solver(case):
    for f, right, eta in zip(
        case.scores(3, n=6), case.indicators(3, n=6), [0.02, 0.1, 0.3, 1.0, 5.0, 50.0], strict=True
    ):
        expected = solved_dual_step(case, f, right, eta)
        np.testing.assert_allclose(case.loss().dual_step(f, right, eta), expected, atol=3e-5)


@pytest.mark.parametrize("case", SMOOTH, ids=by_id)
def test_gradient_by_finite_differences(case):
    loss = case.loss()
    h = 1e-6
    for f, right in zip(case.scores(5, n=6), case.indicators(5, n=6), strict=True):
        steps = h * np.eye(case.m)
        every = np.tile(right, (case.m, 1))
        slope = (loss.value(f + steps, every) - loss.value(f - steps, every)) / (2 * h)
        curvature = 1.0 / case.smoothing if case.smoothing else 1.0
        np.testing.assert_allclose(loss.gradient(f, right), slope, atol=1e-7 + 1e-8 * curvature)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_subgradient_inequality_at_kinks(case):
    loss, rng = case.loss(), np.random.default_rng(case.m)
    f = rng.integers(-2, 3, size=(30, case.m)).astype(float)
    right = case.indicators(6, n=30)
    value, v = loss.value_and_gradient(f, right)
    for _ in range(20):
        other = rng.integers(-2, 3, size=f.shape) + rng.choice([0.0, 0.5]) * rng.normal(
            size=f.shape
        )
        assert (loss.value(other, right) >= value + (v * (other - f)).sum(axis=1) - 1e-12).all()
    np.testing.assert_allclose(young_gap(loss, f, v, right), 0.0, atol=1e-12)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_fenchel_young_at_the_step(case, eta, dtype):
    """v minimises iff it is a subgradient at p = q - eta v: over moderate, huge, tiny scores."""
    loss = case.loss()
    right = case.indicators(7, n=20)
    for scale in (2.0, 1e9, 1e5, 1e-30):
        q = case.scores(7, n=20, scale=scale).astype(dtype)
        q[0] = scale  # all tied
        v = loss.dual_step(q, right, eta)
        assert v.dtype == dtype
        wide = v.astype(np.float64)
        p = q.astype(np.float64) - eta * wide
        size = np.abs(q).max(axis=1) + eta * np.abs(wide).max(axis=1)
        unit = np.finfo(dtype).eps * (1 + case.smoothing + size) * case.m
        assert (np.abs(young_gap(loss, p, v, right)) <= 4 * unit).all()


@pytest.mark.parametrize("eta", ETAS)
@pytest.mark.parametrize("case", SMOOTH, ids=by_id)
def test_step_of_a_smooth_loss_is_the_gradient_where_it_leads(case, eta):
    """Sharper than the Fenchel-Young gap, which is of second order in the error."""
    loss = case.loss()
    q, right = case.scores(8, n=30), case.indicators(8, n=30)
    v = loss.dual_step(q, right, eta)
    p = q - eta * v
    # p is known to rounding. The gradient moves by at most m/gamma (or 1) times that: the
    # penalty does not see a z that is the same for all right labels, only the x that goes with it.
    rounding = np.finfo(float).eps * (1 + np.abs(q).max() + eta * np.abs(v).max())
    lipschitz = case.m / case.smoothing if case.smoothing else 4.0
    tolerance = 1e-13 * np.abs(v).max() + rounding * lipschitz
    np.testing.assert_allclose(v, loss.gradient(p, right), atol=tolerance)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_single_precision_is_double_precision_rounded(case):
    """To what rounding of the scores may do: the step has a Lipschitz constant."""
    loss = case.loss()
    q = case.scores(9, n=40).astype(np.float32)
    right = case.indicators(9, n=40)
    for eta in ETAS:
        if not case.smooth and eta < 0.03:
            continue  # a jump may fall between the two
        exact = loss.dual_step(q.astype(np.float64), right, eta)
        size = np.abs(exact).max(axis=1, keepdims=True)
        reach = 1 + np.abs(q).max(axis=1, keepdims=True)
        moved = reach / ((1.0 if case.entropic else case.smoothing) + eta)
        error = np.abs(loss.dual_step(q, right, eta) - exact)
        assert (error <= 4 * np.finfo(np.float32).eps * (size + moved)).all()


def exact_hinge_step(q, right, eta, gamma):
    """The step at k = 1 in rational numbers: the one set of active labels that satisfies KKT."""
    q, eta, gamma = [Fraction(float(a)) for a in q], Fraction(eta), Fraction(gamma)
    c = eta + gamma
    wanted = sorted(np.flatnonzero(right), key=lambda j: q[j])
    wrong = sorted(np.flatnonzero(1 - right), key=lambda j: -q[j])
    p = len(wanted)

    def price(s, active):  # derivative of the right labels' part in s
        return (c * s + sum(q[y] for y in active)) / len(active) - gamma * s / p

    for active in (wanted[: i + 1] for i in range(p)):
        for support in (wrong[:i] for i in range(len(wrong) + 1)):
            # c x_j = 1 + q_j - theta on the support, theta = price(s) unless s = 1
            r, heights = len(support), sum(1 + q[j] for j in support)
            slope = c / len(active) - gamma / p
            free = (heights - r * price(Fraction(0), active)) / (c + r * slope)
            for s in {min(free, Fraction(1)), Fraction(1)}:
                theta = (heights - c * s) / r if r else price(Fraction(0), active)
                tau = (c * s + sum(q[y] for y in active)) / len(active)
                v = [Fraction(0)] * len(q)
                for j in support:
                    v[j] = (1 + q[j] - theta) / c
                for y in active:
                    v[y] = -(tau - q[y]) / c
                if (
                    0 <= s <= 1
                    and all(v[j] >= 0 for j in support)
                    and all(1 + q[j] <= theta for j in wrong[r:])
                    and all(v[y] <= 0 for y in active)
                    and all(q[y] >= tau for y in wanted[len(active) :])
                    and (theta == price(s, active) or (s == 1 and theta >= price(s, active)))
                ):
                    return np.array([float(a) for a in v])
    raise AssertionError("no active set satisfies the optimality conditions")


@pytest.mark.parametrize("eta", ETAS[1:])
@pytest.mark.parametrize("gamma", [0.0, 0.25])
def test_dual_step_in_rational_arithmetic(gamma, eta):
    """Every digit, however large or small eta is."""
    case = Case("smooth_hinge", m=6, smoothing=gamma)
    q, right = case.scores(4, n=40, scale=0.5), case.indicators(4, n=40)
    expected = [exact_hinge_step(*row, eta, gamma) for row in zip(q, right, strict=True)]
    v = case.loss().dual_step(q, right, eta)
    # What the last digits of q may do.
    lost = np.finfo(float).eps * (1 + np.abs(q).max()) / (eta + gamma)
    np.testing.assert_allclose(v, expected, rtol=1e-13, atol=8 * lost)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_no_dual_point_does_better(case):
    loss, rng = case.loss(), np.random.default_rng(case.m)
    q, right = case.scores(10, n=6), case.indicators(10, n=6)
    for eta in (0.0, 0.5, 50.0):
        v = loss.dual_step(q, right, eta)
        for i in range(6):

            def objective(u, i=i, eta=eta):
                return loss.conjugate(u, right[i]) - q[i] @ u + 0.5 * eta * (u @ u)

            best = objective(v[i])
            for _ in range(20):
                other = random_dual(case, rng, right[i])
                between = v[i] + rng.choice([1.0, 1e-2, 1e-4]) * (other - v[i])
                assert objective(between) >= best - 1e-12


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_conjugate_inside_its_domain(case):
    loss, rng = case.loss(), np.random.default_rng(case.m)
    for right in case.indicators(11, n=30):
        v = random_dual(case, rng, right)
        expected = conjugate(case, v, right)
        assert loss.conjugate(v, right) == pytest.approx(expected, rel=1e-13, abs=1e-13)
        f = rng.normal(size=case.m) * 3
        assert loss.value(f, right) + expected >= f @ v - 1e-12
        assert loss.conjugate(v.astype(np.float32), right) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_conjugate_outside_its_domain(case):
    """One constraint broken at a time, by little and by much."""
    loss, rng = case.loss(), np.random.default_rng(case.m)
    for right in case.indicators(12, n=10):
        wanted = np.flatnonzero(right)
        wrong = np.flatnonzero(1 - right)
        v = random_dual(case, rng, right)
        for by in (1e-9, 0.1):
            unbalanced, negative, wrong_sign = v.copy(), v.copy(), v.copy()
            unbalanced[wanted[0]] += by
            negative[wanted[0]] += negative[wrong[0]] + by
            negative[wrong[0]] = -by
            broken = [unbalanced, negative]
            if case.entropic:
                if len(wanted) > 1:
                    wrong_sign[wanted[1]] += wrong_sign[wanted[0]] + 1 / len(wanted) + by
                    wrong_sign[wanted[0]] = -1 / len(wanted) - by
                    broken.append(wrong_sign)
            else:
                too_much = np.zeros(case.m)
                too_much[wrong] = (1 + by) / len(wrong)
                too_much[wanted] = -(1 + by) / len(wanted)
                broken.append(too_much)
                if len(wanted) > 1:
                    wrong_sign[wanted[1]] += wrong_sign[wanted[0]] - by
                    wrong_sign[wanted[0]] = by
                    broken.append(wrong_sign)
                if case.k > 1:
                    above_cap = np.zeros(case.m)
                    above_cap[wrong[: case.k]] = 0.5 / case.k
                    above_cap[wrong[0]] = 0.5 / case.k + by
                    if case.variant == "beta":
                        above_cap[wrong[0]] = 1.0 / case.k + by
                    above_cap[wanted[0]] = -above_cap.sum()
                    broken.append(above_cap)
            for u in broken:
                assert loss.conjugate(u, right) == np.inf
        assert np.isfinite(loss.conjugate(v, right))
        v[wrong[0]] = np.nan
        with pytest.raises(ValueError, match="finite"):
            loss.conjugate(v, right)


@pytest.mark.parametrize("dtype", PRECISIONS)
@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_one_label_each_is_the_multiclass_loss(case, dtype):
    several, one = case.loss(), case.loss(multilabel=False)
    y = np.arange(60) % case.m
    right = np.eye(case.m)[y]
    for scale in (2.0, 1e6, 1e-20):
        f = case.scores(13, n=60, scale=scale).astype(dtype)
        v = one.gradient(f, y)
        close = {"rtol": 8 * np.finfo(dtype).eps, "atol": np.finfo(dtype).eps}
        np.testing.assert_allclose(several.gradient(f, right), v, **close)
        np.testing.assert_allclose(
            several.value(f, right), one.value(f, y), rtol=32 * np.finfo(dtype).eps
        )
        np.testing.assert_allclose(several.conjugate(v, right), one.conjugate(v, y), **close)
        for eta in ETAS:
            step, expected = several.dual_step(f, right, eta), one.dual_step(f, y, eta)
            # Two different ways to one solution, which entropies know to the rounding of scores.
            size = np.abs(expected).max(axis=1, keepdims=True)
            if case.entropic:
                size = size * (4 + np.abs(f).max(axis=1, keepdims=True))
            assert (np.abs(step - expected) <= 32 * np.finfo(dtype).eps * size).all()


@pytest.mark.parametrize("eta", [1e-3, 1.0, 1e4, 1e8, 1e12])
def test_large_eta_leaves_the_digits_of_the_duals(eta):
    """v is of order 1/eta; a difference of shares of order 1 would have none of its digits."""
    q = np.array([0.3, -1.2, 0.7, 2.1, -0.4])
    right = np.array([0, 1, 0, 0, 1])
    anchor = right / 2

    def share(t):
        """pi with eta pi + log pi = t: Newton's method for log(eta pi), from above."""
        t += mpmath.log(eta)
        u = mpmath.log(t) if t > 1 else t
        for _ in range(12):
            u -= (mpmath.exp(u) + u - t) / (mpmath.exp(u) + 1)
        return mpmath.exp(u) / eta

    def duals(sigma):
        return [share(a - sigma + eta * b) - b for a, b in zip(q, anchor, strict=True)]

    with mpmath.workdps(60):
        low, high = mpmath.mpf(-10 - eta), mpmath.mpf(10 + eta)
        for _ in range(230):
            middle = (low + high) / 2
            low, high = (middle, high) if sum(duals(middle)) > 0 else (low, middle)
        expected = np.array([float(v) for v in duals(low)])
    v = losses.get("entropy", multilabel=True).dual_step(q, right, eta)
    np.testing.assert_allclose(v, expected, rtol=1e-13)
    single = losses.get("entropy", multilabel=True).dual_step(q.astype(np.float32), right, eta)
    np.testing.assert_allclose(single, expected, rtol=2e-6)


@njit
def _step_from(loss, q, y, eta, first, second, v):
    start = np.array([first, second])
    kernels.dual_step(loss, q, y, eta, start, v, np.empty((2, q.shape[0]), q.dtype))


@pytest.mark.parametrize("case", [CASES[6], CASES[9], CASES[10], CASES[13]], ids=by_id)
def test_the_step_does_not_depend_on_where_it_starts(case):
    """Any threshold, any number of active labels: the walk goes up or down to the same."""
    loss = case.loss()
    rng = np.random.default_rng(0)
    q, right = case.scores(14, n=40, scale=0.3), case.indicators(14, n=40)
    rows = label_rows(right)
    for eta in (0.01, 1.0, 30.0):
        cold = loss.dual_step(q, right, eta)
        for guess in (1.0, 2.0, 5.0, 1e3):
            v = np.empty_like(q)
            for i in range(len(q)):
                _step_from(loss.spec, q[i], rows[i], eta, rng.normal() * 10, guess, v[i])
            np.testing.assert_allclose(v, cold, atol=1e-13)


def test_the_walk_meets_every_number_of_active_labels():
    """So that the test above tests something."""
    case = Case("smooth_hinge", m=12, smoothing=1.0)
    right = np.tile(np.r_[np.ones(8), np.zeros(4)], (200, 1))
    v = case.loss().dual_step(case.scores(15, n=200, scale=0.3), right, 0.5)
    active = (v[:, :8] < 0).sum(axis=1)
    assert set(active[v.any(axis=1)]) >= {1, 2, 3, 4}


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_classes_have_no_order_and_scores_no_origin(case):
    loss = case.loss()
    f, right = case.scores(16, n=20), case.indicators(16, n=20)
    order = np.random.default_rng(case.m).permutation(case.m)
    for eta in (0.3, 10.0):
        step = loss.dual_step(f, right, eta)
        turned = loss.dual_step(f[:, order], right[:, order], eta)
        np.testing.assert_allclose(turned, step[:, order], atol=1e-13)
        np.testing.assert_allclose(loss.dual_step(f + 64.0, right, eta), step, atol=2e-12)


def test_the_hinges_bound_the_error_of_every_right_label():
    """At least 1 where k wrong labels are above some right one."""
    for variant in ("alpha", "beta"):
        case = Case("hinge", m=7, k=3, variant=variant)
        f, right = case.scores(17, n=300), case.indicators(17, n=300)
        wrong = np.sort(np.where(right, -np.inf, f), axis=1)[:, -3]
        missed = wrong > np.where(right, f, np.inf).min(axis=1)
        assert 0.1 < missed.mean() < 0.9
        assert (case.loss().value(f, right) >= missed).all()


@pytest.mark.parametrize("case", CASES, ids=by_id)
@given(data=st.data())
def test_fenchel_young_anywhere(case, data):
    loss = case.loss()
    f = np.array(data.draw(st.lists(SCORES, min_size=case.m, max_size=case.m)))
    count = data.draw(st.integers(1, case.m - case.k))
    right = np.zeros(case.m, int)
    right[data.draw(st.permutations(range(case.m)))[:count]] = 1
    eta = data.draw(STEP_SIZES)
    for dtype in PRECISIONS:
        q = f.astype(dtype)
        v = loss.dual_step(q, right, eta)
        p = q.astype(np.float64) - eta * v.astype(np.float64)
        size = np.abs(q).max() + eta * np.abs(v).max()
        unit = np.finfo(dtype).eps * (1 + case.smoothing + size) * case.m
        assert abs(young_gap(loss, p, v, right)) <= 8 * unit


def test_indicators_of_any_kind():
    loss = losses.get("smooth_hinge", k=2, multilabel=True)
    case = Case("smooth_hinge", m=6, k=2, smoothing=1.0)
    f, right = case.scores(18, n=9), case.indicators(18, n=9)
    expected = loss.gradient(f, right)
    for same in (right.astype(bool), right.astype(float), right.tolist(), sparse.csr_array(right)):
        np.testing.assert_array_equal(loss.gradient(f, same), expected)
    for i in range(9):
        np.testing.assert_array_equal(loss.gradient(f[i], right[i]), expected[i])
    assert loss.value(f[:0], right[:0]).shape == (0,)


def test_label_rows_of_dense_and_sparse_indicators():
    right = np.array([[0, 1, 0, 1], [0, 0, 0, 0], [1, 1, 1, 1], [0, 0, 1, 0]])
    expected = [[1, 3, -1, -1], [-1] * 4, [0, 1, 2, 3], [2, -1, -1, -1]]
    np.testing.assert_array_equal(label_rows(right), expected)
    unsorted = sparse.coo_array(right)
    unsorted.row, unsorted.col = unsorted.row[::-1].copy(), unsorted.col[::-1].copy()
    explicit_zero = sparse.csr_array(([1, 0, 1], ([0, 0, 1], [2, 0, 1])), shape=(2, 3))
    np.testing.assert_array_equal(label_rows(unsorted), expected)
    np.testing.assert_array_equal(label_rows(explicit_zero), [[2], [1]])
    assert label_rows(np.zeros((3, 2))).tolist() == [[-1]] * 3


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        ([1, 2], ValueError, r"indicator .* of the shape \(2, 4\) of scores; got shape \(2,\)"),
        (np.ones((2, 3)), ValueError, r"shape \(2, 4\) of scores; got shape \(2, 3\)"),
        ([[0, 2, 0, 0], [1, 0, 0, 0]], ValueError, r"0 and 1 only; got values from 0 to 2"),
        ([[0, 0.5, 0, 0], [1, 0, 0, 0]], ValueError, r"0 and 1 only"),
        ([[0, np.nan, 0, 0], [1, 0, 0, 0]], ValueError, r"0 and 1 only"),
        ([["a"] * 4] * 2, TypeError, r"holds 0 and 1; got dtype <U1"),
        ([[0, 0, 0, 0], [1, 0, 0, 0]], ValueError, r"from 1 to 2 right labels .* from 0 to 1"),
        ([[1, 1, 1, 0], [1, 0, 0, 0]], ValueError, r"from 1 to 2 right labels .* from 1 to 3"),
    ],
)
def test_bad_indicators(y, error, message):
    with pytest.raises(error, match=message):
        losses.get("hinge", k=2, multilabel=True).value(np.zeros((2, 4)), y)


@pytest.mark.parametrize("name", list(ENTRIES))
def test_the_table_says_which_losses_take_several_labels(name):
    cell = next(row["several labels"] for row in losses.table() if row["loss"] == name)
    for k in (1, 2):
        if cell == "yes" or (cell == "at k = 1" and k == 1):
            assert losses.get(name, k=k, multilabel=True).multilabel
        else:
            with pytest.raises(ValueError, match=r"one right label per example|at k=1 only"):
                losses.get(name, k=k, multilabel=True)
        assert not losses.get(name, k=k).multilabel


def test_softmax_is_the_entropy_also_here():
    assert losses.get("softmax", multilabel=True) == losses.get("entropy", multilabel=True)
