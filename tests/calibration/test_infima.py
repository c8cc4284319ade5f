"""Infima of expected losses: closed forms by minimisation, minimisation by a conic solver."""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar

from shortlist import losses
from shortlist.calibration import (
    bayes_optimal_scores,
    bayes_risk,
    bayes_topk_error,
    expected_loss,
    is_topk_calibrated,
)
from shortlist.calibration._check import nearest_wrong_shortlists
from shortlist.calibration._families import infimum
from shortlist.calibration._minimise import minimise, risk_and_gradient
from shortlist.calibration._pooling import logistic_infimum, truncated_infimum
from tests.calibration.distributions import RANDOM_P, describe, shortlists


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
        numerical = infimum(loss, p)
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


class TestNumericalMinimum:
    @pytest.mark.parametrize("loss", TOP_K_LOSSES, ids=describe)
    @pytest.mark.parametrize("p", [RANDOM_P[1], RANDOM_P[2]], ids=str)
    def test_against_a_conic_solver(self, loss, p):
        assert expected_loss(loss, bayes_optimal_scores(loss, p), p) == pytest.approx(
            oracle_risk(loss, p), abs=1e-6
        )
        (shortlist,) = nearest_wrong_shortlists(p, loss.k)
        optimum = infimum(loss, p, shortlist)
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
            least = min(infimum(loss, p, s).risk for s in wrong)
            assert is_topk_calibrated(loss, p, k).wrong_risk == pytest.approx(least, abs=1e-10)


class TestZeroProbabilities:
    P = np.array([0.5, 0.3, 0.2, 0.0, 0.0])

    @pytest.mark.parametrize("loss", TOP_K_LOSSES, ids=describe)
    def test_infima_are_limits_of_those_at_positive_probabilities(self, loss):
        # The infimum is a concave function of p on the simplex, and continuous.
        nearly = (1 - 1e-9) * self.P + 1e-9 / 5
        for shortlist in [None, *shortlists(5, 2)]:
            there, near = (infimum(loss, p, shortlist).risk for p in (self.P, nearly))
            assert there == pytest.approx(near, abs=1e-6)

    @pytest.mark.parametrize("k", [1, 2, 3, 4])
    def test_softmax_by_pooling(self, k):
        for shortlist in shortlists(5, k):
            softmax = infimum(losses.get("softmax"), self.P, shortlist)
            pooled = truncated_infimum(self.P, 1, shortlist)
            assert softmax.risk == pytest.approx(pooled.risk, abs=1e-13)

    def test_scores_that_approach_the_infimum(self):
        for variant, risk in (("alpha", 0.0), ("beta", None)):
            loss = losses.get("entropy", k=3, variant=variant)
            scores = bayes_optimal_scores(loss, self.P)
            assert np.isneginf(scores[3:]).all()
            assert np.isfinite(scores[:3]).all()
            low = np.where(np.isinf(scores), -200.0, scores)
            assert expected_loss(loss, low, self.P) == pytest.approx(bayes_risk(loss, self.P))
            if risk is not None:
                assert bayes_risk(loss, self.P) == pytest.approx(risk, abs=1e-14)


@pytest.mark.parametrize("smoothing", [0.2, 1.0, 3.0])
@pytest.mark.parametrize("p", [RANDOM_P[1], np.array([0.5, 0.5, 0.0]), RANDOM_P[4]], ids=str)
def test_one_vs_all_smooth_hinge_by_its_level(p, smoothing):
    loss = losses.get("ova_smooth_hinge", smoothing=smoothing)
    for k in range(1, len(p)):
        for shortlist in shortlists(len(p), k):
            by_level = infimum(loss, p, shortlist)
            assert by_level.risk == pytest.approx(minimise(loss, p, shortlist).risk, abs=1e-11)
            assert by_level.scores[shortlist].min() >= by_level.scores[~shortlist].max()


@pytest.mark.parametrize("seed", range(4))
def test_hard_problems_are_solved_to_rounding(seed):
    """Probabilities from 1e-10 to 1 and any smoothing: the error estimate stays small."""
    rng = np.random.default_rng(seed)
    for _ in range(12):
        m = int(rng.integers(2, 8))
        k = int(rng.integers(1, m))
        name, variant = str(rng.choice(["smooth_hinge", "entropy"])), rng.choice(["alpha", "beta"])
        loss = losses.get(name, k=k, variant=str(variant), smoothing=10 ** rng.uniform(-7, 4))
        p = rng.dirichlet(np.ones(m)) * 10 ** rng.uniform(-10, 0, m)
        p /= p.sum()
        for shortlist in (None, np.arange(m) < k):
            assert infimum(loss, p, shortlist).accuracy < 1e-7
