"""Calibration: Lemma 1 by enumeration, closed forms by minimisation, each proposition a test."""

from fractions import Fraction
from itertools import combinations, permutations

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize, minimize_scalar

from shortlist import losses
from shortlist.calibration import (
    bayes_optimal_scores,
    bayes_risk,
    bayes_topk_error,
    calibration_table,
    expected_loss,
    find_counterexample,
    is_bayes_optimal,
    is_topk_calibrated,
    optimal_shortlists,
    worst_topk_error,
)
from shortlist.calibration._check import nearest_wrong_shortlists
from shortlist.calibration._minimise import minimise, risk_and_gradient
from shortlist.calibration._pooling import logistic_infimum, truncated_infimum

# Few distinct weights: probabilities tie at the cut as often as not.
DISTRIBUTIONS = (
    st.lists(st.integers(0, 4), min_size=2, max_size=6)
    .filter(any)
    .map(lambda weights: np.array(weights) / sum(weights))
)


def shortlists(n_classes: int, k: int) -> list[np.ndarray]:
    masks = []
    for labels in combinations(range(n_classes), k):
        mask = np.zeros(n_classes, dtype=bool)
        mask[list(labels)] = True
        masks.append(mask)
    return masks


class TestLemma1:
    @given(p=DISTRIBUTIONS, data=st.data())
    @settings(max_examples=80, deadline=None)
    def test_error_and_optimal_shortlists_by_enumeration(self, p, data):
        k = data.draw(st.integers(1, len(p)))
        errors = [(1 - p[mask].sum(), mask) for mask in shortlists(len(p), k)]
        smallest = min(error for error, _ in errors)
        assert bayes_topk_error(p, k) == pytest.approx(smallest, abs=1e-14)
        optimal = optimal_shortlists(p, k)
        for error, mask in errors:
            described = (mask >= optimal.required).all() and (mask <= optimal.allowed).all()
            assert described == (error < smallest + 1e-9)

    @given(p=DISTRIBUTIONS, data=st.data())
    @settings(max_examples=80, deadline=None)
    def test_worst_error_by_breaking_ties_in_every_order(self, p, data):
        k = data.draw(st.integers(1, len(p)))
        scores = data.draw(
            st.lists(st.sampled_from([-np.inf, 0, 1, 2, np.inf]), min_size=len(p), max_size=len(p))
        )
        errors = []
        for priority in permutations(range(len(p))):
            ranking = sorted(range(len(p)), key=lambda j: (-scores[j], priority[j]))
            errors.append(1 - p[ranking[:k]].sum())
        assert worst_topk_error(scores, p, k) == pytest.approx(max(errors), abs=1e-14)
        assert is_bayes_optimal(scores, p, k) == (max(errors) < bayes_topk_error(p, k) + 1e-9)

    def test_many_distributions_at_once(self):
        P = np.random.default_rng(0).dirichlet(np.ones(6), 20)
        each = [bayes_topk_error(p, 2) for p in P]
        np.testing.assert_array_equal(bayes_topk_error(P, 2), each)
        assert bayes_topk_error(P[0], 6) == 0

    def test_constant_scores_are_not_optimal_unless_p_is(self):
        assert not is_bayes_optimal([0, 0, 0], [0.4, 0.3, 0.3], 1)
        assert is_bayes_optimal([0, 0, 0], [1 / 3, 1 / 3, 1 / 3], 2)
        assert is_bayes_optimal([0, 0, 0], [0.4, 0.3, 0.3], 3)

    def test_lemma_as_stated_does_not_suffice_where_the_cut_is_tied(self):
        # All three labels satisfy p_y >= the second largest, yet {1, 2} leaves out label 0.
        p = [0.5, 0.25, 0.25]
        assert optimal_shortlists(p, 2).allowed.all()
        assert not is_bayes_optimal([0, 1, 1], p, 2)
        assert is_bayes_optimal([1, 0, 0], p, 2)

    def test_tolerance_on_scores(self):
        assert is_bayes_optimal([1e-9, 0.0], [0.6, 0.4], 1)
        assert not is_bayes_optimal([1e-9, 0.0], [0.6, 0.4], 1, atol=1e-8)
        assert is_bayes_optimal([0.1, 0.3], [0.1 + 0.2, 0.7], 1)


RANDOM_P = [
    np.random.default_rng(seed).dirichlet(np.full(m, concentration))
    for seed, (m, concentration) in enumerate([(3, 1), (4, 5), (5, 1), (5, 30), (6, 2)])
]


class TestClosedForms:
    @pytest.mark.parametrize("smoothing", [0.1, 0.7, 1.0, 1.3, 2.0, 5.0])
    @pytest.mark.parametrize("p", [0.01, 0.3, 0.5, 0.55, 0.8, 0.99])
    def test_ova_smooth_hinge(self, p, smoothing):
        loss = losses.get("ova_smooth_hinge", smoothing=smoothing)

        def binary_risk(f):
            hinge = [
                1 - t - smoothing / 2 if t < 1 - smoothing else max(0, 1 - t) ** 2 / (2 * smoothing)
                for t in (f, -f)
            ]
            return p * hinge[0] + (1 - p) * hinge[1]

        best = minimize_scalar(binary_risk, bounds=(-2, 2), options={"xatol": 1e-10})
        f = bayes_optimal_scores(loss, [p, 1 - p])[0]
        assert binary_risk(f) == pytest.approx(best.fun, abs=1e-12)
        if p != 0.5 or smoothing >= 1:  # the minimiser is an interval there
            assert f == pytest.approx(best.x, abs=1e-5)

    @pytest.mark.parametrize(
        "loss",
        [
            losses.get("ova_hinge"),
            losses.get("ova_smooth_hinge", smoothing=0.5),
            losses.get("ova_smooth_hinge", smoothing=2.5),
            losses.get("ova_logistic"),
            losses.get("hinge"),
            losses.get("softmax"),
        ],
        ids=lambda loss: f"{loss.name}-{loss.smoothing}",
    )
    @pytest.mark.parametrize("p", [*RANDOM_P, np.array([0.6, 0.3, 0.1])], ids=str)
    def test_closed_form_equals_numerical_minimum(self, loss, p):
        scores = bayes_optimal_scores(loss, p)
        numerical = minimise(loss, p)
        assert expected_loss(loss, scores, p) == pytest.approx(numerical.risk, abs=1e-11)
        assert bayes_risk(loss, p) == pytest.approx(numerical.risk, abs=1e-11)
        if loss.smooth:
            shift = 0 if loss.name.startswith("ova") else scores.mean()
            np.testing.assert_allclose(scores - shift, numerical.scores, atol=1e-6)

    def test_zero_probabilities_lie_at_infinity(self):
        p = [0.5, 0.5, 0.0]
        assert bayes_optimal_scores("softmax", p).tolist() == [np.log(0.5), np.log(0.5), -np.inf]
        assert bayes_optimal_scores("ova_logistic", [1.0, 0.0]).tolist() == [np.inf, -np.inf]
        assert bayes_optimal_scores("ova_smooth_hinge", [1.0, 0.0]).tolist() == [1, -1]
        assert bayes_risk("softmax", p) == pytest.approx(np.log(2))
        assert bayes_risk("ova_logistic", [1.0, 0.0]) == 0

    @pytest.mark.parametrize("k", [1, 2, 3])
    @pytest.mark.parametrize("p", RANDOM_P[1:], ids=str)
    def test_truncated_entropy(self, p, k):
        loss = losses.get("truncated_entropy", k=k)
        scores = bayes_optimal_scores(loss, p)
        infimum = bayes_risk(loss, p)
        # Finite scores approach the infimum ...
        finite = np.where(np.isinf(scores), 40.0, scores)
        assert expected_loss(loss, finite, p) == pytest.approx(infimum, abs=1e-12)
        # ... and descent from anywhere never gets below it.
        rng = np.random.default_rng(k)
        for _ in range(5):
            found = minimize(
                lambda g: risk_and_gradient(loss, g, p),
                3 * rng.standard_normal(len(p)),
                jac=True,
                method="L-BFGS-B",
            )
            assert found.fun >= infimum - 1e-12
        assert set(np.argsort(-p)[: k - 1]) == set(np.flatnonzero(np.isinf(scores)))


def oracle_risk(loss, p: np.ndarray, shortlist: np.ndarray | None = None) -> float:
    """The least expected loss by a conic solver, from formulas of its own."""
    m, k, gamma = len(p), loss.k, loss.smoothing
    g = cp.Variable(m)
    constraints = [cp.sum(g) == 0]
    total = 0
    for y in range(m):
        u = cp.hstack([g[j] - g[y] for j in range(m) if j != y])
        if loss.name == "entropy":
            # The caps x_j <= s/k (alpha) or 1/k (beta) have multipliers mu.
            mu = cp.Variable(m - 1, nonneg=True)
            lifted = u - mu + (cp.sum(mu) / k if loss.variant == "alpha" else 0)
            value = cp.log_sum_exp(cp.hstack([0, lifted]))
            value += 0 if loss.variant == "alpha" else cp.sum(mu) / k
        else:
            margins = 1 + u
            centre = cp.Variable(m - 1) if gamma > 0 else margins
            largest = (lambda z: cp.sum(z)) if k == m - 1 else (lambda z: cp.sum_largest(z, k))
            if loss.variant == "alpha":
                value = cp.pos(largest(centre) / k)
            else:
                value = largest(cp.pos(centre)) / k
            if gamma > 0:
                value += cp.sum_squares(margins - centre) / (2 * gamma)
        total += p[y] * value
    if shortlist is not None:
        constraints += [
            g[i] >= g[j] for i in np.flatnonzero(shortlist) for j in np.flatnonzero(~shortlist)
        ]
    return cp.Problem(cp.Minimize(total), constraints).solve(solver=cp.CLARABEL)


TOP_K_LOSSES = [
    losses.get(name, k=k, variant=variant, smoothing=smoothing)
    for name, smoothing in [
        ("hinge", 0.0),
        ("smooth_hinge", 0.2),
        ("smooth_hinge", 2.0),
        ("entropy", 0.0),
    ]
    for k in (2, 3)
    for variant in ("alpha", "beta")
]


def describe(loss) -> str:
    return f"{loss.name}-{loss.variant}-k{loss.k}-{loss.smoothing}"


class TestNumericalMinimum:
    @pytest.mark.parametrize("loss", TOP_K_LOSSES, ids=describe)
    @pytest.mark.parametrize("p", [RANDOM_P[1], RANDOM_P[2]], ids=str)
    def test_against_a_conic_solver(self, loss, p):
        assert expected_loss(loss, bayes_optimal_scores(loss, p), p) == pytest.approx(
            oracle_risk(loss, p), abs=1e-6
        )
        (shortlist,) = nearest_wrong_shortlists(p, loss.k)
        optimum = minimise(loss, p, shortlist)
        assert optimum.risk == pytest.approx(oracle_risk(loss, p, shortlist), abs=1e-6)
        assert optimum.scores[shortlist].min() >= optimum.scores[~shortlist].max()

    @pytest.mark.parametrize("k", [1, 2, 3])
    @pytest.mark.parametrize("p", [RANDOM_P[1], np.array([0.4, 0.2, 0.2, 0.2])], ids=str)
    def test_pooling_equals_minimisation(self, p, k):
        for shortlist in shortlists(len(p), k):
            softmax = minimise(losses.get("softmax"), p, shortlist)
            pooled = truncated_infimum(p, 1, shortlist)
            assert pooled.risk == pytest.approx(softmax.risk, abs=1e-11)
            logistic = minimise(losses.get("ova_logistic"), p, shortlist)
            assert logistic_infimum(p, shortlist).risk == pytest.approx(logistic.risk, abs=1e-11)

    @pytest.mark.parametrize("shortlist_size", [1, 2, 3])
    def test_truncated_infimum_with_a_shortlist_by_brute_force(self, shortlist_size):
        p = np.array([0.35, 0.3, 0.2, 0.15])
        loss = losses.get("truncated_entropy", k=2)
        rng = np.random.default_rng(0)
        for shortlist in shortlists(4, shortlist_size):
            infimum = truncated_infimum(p, 2, shortlist).risk
            scores = truncated_infimum(p, 2, shortlist).scores
            finite = np.where(np.isinf(scores), 40.0, scores)
            assert finite[shortlist].min() >= finite[~shortlist].max()
            assert expected_loss(loss, finite, p) == pytest.approx(infimum, abs=1e-12)
            for _ in range(200):
                g = np.sort(rng.normal(0, 4, 4))[::-1]
                inside = np.empty(4)
                inside[shortlist] = rng.permutation(g[:shortlist_size])
                inside[~shortlist] = rng.permutation(g[shortlist_size:])
                assert expected_loss(loss, inside, p) >= infimum - 1e-12

    @pytest.mark.parametrize(
        "loss",
        [
            losses.get("ova_hinge"),
            losses.get("ova_logistic"),
            losses.get("hinge", k=2, variant="beta"),
            losses.get("smooth_hinge", k=2),
            losses.get("entropy", k=2),
        ],
        ids=describe,
    )
    @pytest.mark.parametrize(
        "p",
        [(0.4, 0.3, 0.2, 0.1), (0.1, 0.3, 0.3, 0.3), (0.2, 0.2, 0.2, 0.4), (0.3, 0.2, 0.3, 0.2)],
        ids=str,
    )
    def test_nearest_wrong_shortlists_stand_for_all(self, loss, p):
        p = np.array(p)
        for k in (1, 2, 3):
            error = bayes_topk_error(p, k)
            wrong = [s for s in shortlists(4, k) if 1 - p[s].sum() > error + 1e-9]
            least = min(minimise(loss, p, s).risk for s in wrong)
            assert is_topk_calibrated(loss, p, k).wrong_risk == pytest.approx(least, abs=1e-10)


def distributions(n_classes: int, n: int = 6) -> list[np.ndarray]:
    """Distributions with distinct probabilities, from peaked to nearly uniform."""
    rng = np.random.default_rng(n_classes)
    draws = (rng.dirichlet(np.full(n_classes, c)) for c in 10 ** rng.uniform(-0.3, 1.5, 1000))
    return [p for p in draws if np.diff(np.sort(p)).min() > 0.01][:n]


class TestPropositionsOfThePaper:
    @pytest.mark.parametrize("k", [1, 2])
    def test_ova_svm_is_not_calibrated(self, k):
        check = is_topk_calibrated("ova_hinge", [0.4, 0.3, 0.3], k)
        assert not check
        assert check.gap == pytest.approx(0, abs=1e-12)
        np.testing.assert_allclose(check.witness, [-1, -1, -1], atol=1e-9)
        assert check.excess_error == pytest.approx(0.1)

    @pytest.mark.parametrize("p", distributions(4), ids=str)
    def test_ova_logistic_softmax_and_smooth_ova_svm_are_calibrated(self, p):
        calibrated = [losses.get("ova_logistic"), losses.get("softmax")]
        calibrated += [losses.get("ova_smooth_hinge", smoothing=g) for g in (0.3, 1.0, 2.0)]
        for loss in calibrated:
            # Strictly increasing in p, hence calibrated for every k at once.
            np.testing.assert_array_equal(np.argsort(bayes_optimal_scores(loss, p)), np.argsort(p))
            for k in (1, 2, 3, 4):
                assert is_topk_calibrated(loss, p, k)

    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_multiclass_svm_is_not_calibrated(self, k):
        undecided = is_topk_calibrated("hinge", [0.45, 0.3, 0.15, 0.1], k)
        assert not undecided
        assert undecided.risk == pytest.approx(1)
        np.testing.assert_allclose(undecided.witness, 0, atol=1e-9)
        # With a majority label the top-1 prediction is right, and nothing beyond it.
        majority = is_topk_calibrated("hinge", [0.6, 0.25, 0.1, 0.05], k)
        assert bool(majority) == (k == 1)
        assert majority.risk == pytest.approx(2 * (1 - 0.6))

    @pytest.mark.parametrize("p", distributions(5, 4), ids=str)
    @pytest.mark.parametrize("k", [1, 2, 3])
    def test_truncated_entropy_is_calibrated_from_its_k_on(self, k, p):
        loss = losses.get("truncated_entropy", k=k)
        for s in range(k, 6):
            assert is_topk_calibrated(loss, p, s)
        # The k - 1 labels at infinity are the right ones, in no particular order.
        for s in range(1, k):
            assert bool(is_topk_calibrated(loss, p, s)) == (s == k - 1)

    def test_labels_of_probability_zero(self):
        p = [0.5, 0.3, 0.2, 0.0]
        for name in ("softmax", "ova_logistic", "ova_smooth_hinge"):
            for k in (1, 2, 3):
                assert is_topk_calibrated(name, p, k)
        assert not is_topk_calibrated("ova_hinge", p, 2)


class TestWhatThePaperLeavesOpen:
    @pytest.mark.parametrize("variant", ["alpha", "beta"])
    def test_topk_hinge_is_not_calibrated(self, variant):
        loss = losses.get("hinge", k=2, variant=variant)
        p = [Fraction(3, 10), Fraction(3, 10), Fraction(2, 10), Fraction(2, 10)]
        # Exactly: constant scores are optimal, by a subgradient that vanishes. At u = 0 the
        # subgradients of both variants are the x^y in [0, 1/k] that sum to 1.
        M = np.full((4, 4), Fraction(3, 40))
        np.fill_diagonal(M, Fraction(0))
        M[0, 1] = M[1, 0] = Fraction(3, 20)
        M[2, 3] = M[3, 2] = Fraction(1, 20)
        for y in range(4):
            x = [entry / p[y] for entry in M[y]]
            assert sum(x) == 1
            assert all(0 <= entry <= Fraction(1, 2) for entry in x)
            assert sum(M[:, y]) == p[y]
        probabilities = [float(q) for q in p]
        check = is_topk_calibrated(loss, probabilities)
        assert not check
        assert expected_loss(loss, np.zeros(4), probabilities) == 1
        assert check.risk == pytest.approx(1, abs=1e-9)
        assert not is_bayes_optimal(check.witness, probabilities, 2)
        assert check.excess_error == pytest.approx(0.2)

    @pytest.mark.parametrize("n_classes", [3, 4])
    def test_topk_hinge_at_the_largest_k(self, n_classes):
        k = n_classes - 1
        alpha = find_counterexample(losses.get("hinge", k=k), n_classes=n_classes, n_trials=40)
        assert not alpha.found
        beta = losses.get("hinge", k=k, variant="beta")
        search = find_counterexample(beta, n_classes=n_classes, n_trials=40)
        assert search.found
        assert search.smallest_gap == pytest.approx(0, abs=1e-9)
        assert not is_topk_calibrated(losses.get("hinge", k=2, variant="beta"), [0.42, 0.3, 0.28])

    @pytest.mark.parametrize("variant", ["alpha", "beta"])
    @pytest.mark.parametrize(
        ("name", "smoothing"), [("smooth_hinge", 0.1), ("smooth_hinge", 3.0), ("entropy", 0.0)]
    )
    @pytest.mark.parametrize(("k", "n_classes"), [(1, 4), (2, 4), (3, 5), (4, 5)])
    def test_differentiable_topk_losses_are_calibrated(
        self, name, smoothing, variant, k, n_classes
    ):
        loss = losses.get(name, k=k, variant=variant, smoothing=smoothing)
        search = find_counterexample(loss, n_classes=n_classes, n_trials=16)
        assert not search.found
        assert search.n_checked > 4
        assert search.smallest_gap > 1e-7
        # They even rank all labels by probability.
        p = distributions(n_classes, 1)[0]
        np.testing.assert_array_equal(np.argsort(bayes_optimal_scores(loss, p)), np.argsort(p))

    def test_smooth_alpha_hinge_below_its_k_fails_on_zero_probabilities(self):
        p = [0.6, 0.4, 0.0, 0.0]
        assert not is_topk_calibrated(losses.get("smooth_hinge", k=2), p, 1)
        assert is_topk_calibrated(losses.get("smooth_hinge", k=2), p, 2)
        assert is_topk_calibrated(losses.get("smooth_hinge", k=2, variant="beta"), p, 1)


def test_check_returns_its_evidence():
    check = is_topk_calibrated("softmax", [0.5, 0.3, 0.2], 2)
    assert check.calibrated is True
    assert check.risk == pytest.approx(bayes_risk("softmax", check.p))
    # The cheapest wrong scores tie the second and the third label.
    assert check.witness[1] == check.witness[2]
    assert check.wrong_risk == pytest.approx(expected_loss("softmax", check.witness, check.p))
    assert check.gap > 1e-3
    assert (check.bayes_error, check.witness_error) == pytest.approx((0.2, 0.3))
    assert check.method == "convex minimisation"


def test_nothing_can_go_wrong_where_every_shortlist_is_optimal():
    for p, k in (([0.25] * 4, 2), ([0.5, 0.3, 0.2], 3)):
        check = is_topk_calibrated("ova_hinge", p, k)
        assert check
        assert check.witness is None
        assert check.gap == np.inf
        assert check.excess_error == 0


def test_table_agrees_with_the_paper_where_it_decides():
    rows = calibration_table(2, n_classes=4, n_trials=24)
    assert len(rows) == 12
    for row in rows:
        if row.paper != "open":
            assert row.calibrated == (row.paper == "yes"), row.method
        if row.calibrated:
            assert row.verdict.startswith("yes: no counterexample among")
            assert row.n_checked > 10
        else:
            assert row.verdict.startswith("no: p = (")
            assert not is_topk_calibrated(row.loss, row.counterexample.p, 2)
    verdicts = {row.method: row.calibrated for row in rows if row.paper == "open"}
    assert verdicts == {
        "Top-k hinge (alpha)": False,
        "Top-k hinge (beta)": False,
        "Smooth top-k hinge (alpha)": True,
        "Smooth top-k hinge (beta)": True,
        "Top-k entropy (alpha)": True,
        "Top-k entropy (beta)": True,
    }


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: bayes_topk_error([0.5, 0.6], 1), ValueError, r"p must sum to 1, got .*1\.1"),
        (lambda: bayes_topk_error([1.5, -0.5], 1), ValueError, "p must be finite and nonnegative"),
        (lambda: bayes_topk_error([np.nan, 1], 1), ValueError, "p must be finite"),
        (lambda: bayes_topk_error([1.0], 1), ValueError, "2 classes or more"),
        (lambda: bayes_topk_error(["a", "b"], 1), TypeError, "p must be an array"),
        (lambda: bayes_topk_error([0.5, 0.5], 3), ValueError, r"k must lie .*\(2\), got 3"),
        (lambda: bayes_topk_error([0.5, 0.5], 1.0), TypeError, "k must be an integer"),
        (lambda: optimal_shortlists([[0.5, 0.5]], 1), ValueError, "p must be a vector"),
        (lambda: is_bayes_optimal([1], [0.5, 0.5], 1), ValueError, r"scores .*shape \(2,\)"),
        (lambda: is_bayes_optimal([1, np.nan], [0.5, 0.5], 1), ValueError, "scores contains NaN"),
        (lambda: expected_loss("softmax", [1], [0.5, 0.5]), ValueError, r"scores .*shape \(2,\)"),
        (
            lambda: bayes_optimal_scores(losses.get("entropy", k=2), [0.5, 0.5, 0]),
            ValueError,
            "p must be positive everywhere",
        ),
        (
            lambda: is_topk_calibrated(losses.get("hinge", k=3), [0.5, 0.3, 0.2]),
            ValueError,
            "k=3 with 3 classes",
        ),
        (lambda: calibration_table(4, n_classes=4), ValueError, "n_classes - 1 = 3, got 4"),
    ],
)
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        call()
