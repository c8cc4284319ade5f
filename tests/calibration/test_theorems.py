"""The theorems of docs/calibration.md: each computed, with ties and zeros in p, for m = 3 to 6."""

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from scipy.optimize import linprog

from shortlist import losses
from shortlist.calibration import (
    bayes_optimal_scores,
    expected_loss,
    find_counterexample,
    is_bayes_optimal,
    is_topk_calibrated,
)
from shortlist.calibration._minimise import risk_and_gradient
from shortlist.calibration._theorems import Question, _descent, proved_excess_risk
from tests.calibration.distributions import describe, distributions, weighted

OWN_K = [
    losses.get(name, k=k, variant=variant, smoothing=smoothing)
    for name, smoothing in [("smooth_hinge", 0.3), ("smooth_hinge", 4.0), ("entropy", 0.0)]
    for variant in ("alpha", "beta")
    for k in (1, 2, 3)
]
OWN_K += [
    losses.get("smooth_hinge", k=3, variant="printed", smoothing=4.0),
    losses.get("smooth_hinge", k=2, variant="alpha", smoothing=0.3, rank_weights=(0.7, 0.3)),
    losses.get("smooth_hinge", k=2, variant="beta", smoothing=4.0, rank_weights=(0.6, 0.4)),
    losses.get("mixed_smooth_hinge", k=2, smoothing=0.3),
    losses.get("mixed_smooth_hinge", k=3, variant="beta", smoothing=4.0),
    losses.get("mixed_entropy", k=3),
    losses.get("mixed_entropy", k=2, variant="beta"),
]
ONE_VS_ALL = [
    losses.get("ova_logistic"),
    losses.get("ova_smooth_hinge", smoothing=0.4),
    losses.get("ova_smooth_hinge", smoothing=5.0),
]
SIZES = (3, 4, 5, 6)


def some(distributions_: list[np.ndarray], count: int) -> list[np.ndarray]:
    """Spread over the list, the same ones each time."""
    return distributions_[:: max(1, len(distributions_) // count)]


class TestOwnK:
    @pytest.mark.parametrize("loss", OWN_K + ONE_VS_ALL, ids=describe)
    def test_wrong_scores_cost_at_least_what_is_proved(self, loss):
        for m in SIZES:
            if loss.k >= m:
                continue
            for p in some(weighted(m), 7) + distributions(m, 1):
                check = is_topk_calibrated(loss, p)
                if check.witness is None:
                    continue
                assert check, p
                least = proved_excess_risk(loss, check.excess_error, loss.k, m)
                # The bound of the one-vs-all hinge is attained: rounding decides.
                assert check.gap + check.accuracy >= least > 0, p

    @pytest.mark.parametrize("loss", OWN_K + ONE_VS_ALL, ids=describe)
    def test_slope_and_curvature_of_the_proof(self, loss):
        rng = np.random.default_rng(loss.k)
        for _ in range(150):
            m = int(rng.integers(loss.k + 1, 7))
            # The shortest lists that the theorem speaks of.
            shortest = {"alpha": loss.k, "printed": max(loss.k - 1, 1)}.get(loss.variant, 1)
            if loss.name.startswith("mixed_"):
                shortest = 1  # these mixtures have a part of k = 1
            k = int(rng.integers(shortest, m))
            p = rng.dirichlet(np.full(m, 0.5)) * (rng.random(m) < 0.7)
            p = p / p.sum() if p.sum() > 0 else np.full(m, 1 / m)
            # Some ties, some scores far from the others.
            scores = np.round(rng.normal(0, 10 ** rng.uniform(-1, 1.5), m), rng.integers(0, 3))
            listed = np.argsort(-scores, kind="stable")[:k]
            left_out = np.setdiff1d(np.arange(m), listed)
            t = int(rng.integers(1, min(k, m - k) + 1))
            # The t likeliest left out against the t least likely listed, as far as it pays.
            up = left_out[np.argsort(-p[left_out])][:t]
            down = listed[np.argsort(p[listed])][:t]
            pays = p[up] > p[down]
            up, down = up[pays], down[pays]
            if len(up) == 0:
                continue
            direction = np.zeros(m)
            direction[up], direction[down] = 1, -1
            slope, curvature = _descent(loss.spec, Question(int(k), m, len(up)))
            epsilon = p[up].sum() - p[down].sum()
            gradients = [
                risk_and_gradient(loss, scores + step * direction, p)[1] @ direction
                for step in (0.0, 1e-3, 0.1, 2.0)
            ]
            assert gradients[0] <= -slope * epsilon + 1e-12
            for gradient, step in zip(gradients[1:], (1e-3, 0.1, 2.0), strict=True):
                assert gradient - gradients[0] <= curvature * step + 1e-9

    @pytest.mark.parametrize("smoothing", [1e-7, 1e-4])
    @pytest.mark.parametrize("variant", ["alpha", "beta"])
    def test_little_smoothing_is_enough(self, variant, smoothing):
        p = [0.3, 0.27, 0.2, 0.13, 0.1]
        for k in (1, 2, 3):
            loss = losses.get("smooth_hinge", k=k, variant=variant, smoothing=smoothing)
            check = is_topk_calibrated(loss, p)
            assert check
            assert check.gap >= proved_excess_risk(loss, check.excess_error, k, 5)
            assert check.gap < 10 * smoothing
            assert check.accuracy < 1e-13

    @pytest.mark.parametrize("variant", ["alpha", "beta", "printed"])
    def test_the_gap_is_proportional_to_little_smoothing(self, variant):
        # Near a vertex of the hinge the risk, in units of the smoothing, does not depend on it.
        def gap(smoothing: float) -> float:
            loss = losses.get("smooth_hinge", k=2, variant=variant, smoothing=smoothing)
            return is_topk_calibrated(loss, [0.4, 0.3, 0.2, 0.1]).gap

        assert gap(1e-9) / 1e-9 == pytest.approx(gap(1e-4) / 1e-4, rel=1e-3)

    @pytest.mark.parametrize("variant", ["alpha", "beta"])
    @pytest.mark.parametrize(
        ("name", "smoothing"), [("smooth_hinge", 0.1), ("smooth_hinge", 3.0), ("entropy", 0.0)]
    )
    @pytest.mark.parametrize("k", [1, 2, 3, 4])
    def test_no_counterexample_is_found(self, name, smoothing, variant, k):
        loss = losses.get(name, k=k, variant=variant, smoothing=smoothing)
        search = find_counterexample(loss, n_trials=24)
        assert not search.found
        assert search.n_checked > 10
        assert search.smallest_gap > 1e-7

    def test_full_support_ranks_all_labels(self):
        for loss in OWN_K:
            p = distributions(5, 1)[0]
            np.testing.assert_array_equal(np.argsort(bayes_optimal_scores(loss, p)), np.argsort(p))


class TestPlainHinges:
    @pytest.mark.parametrize("m", SIZES)
    def test_constant_scores_are_optimal_near_the_uniform_distribution(self, m):
        # Exactly: M_yj = p_y x^y_j with x^y a subgradient at constant scores.
        for k in range(1, m - 1):
            lead = Fraction(1, 200)
            p = [Fraction(1, m) + lead * (m - 1 - 2 * y) for y in range(m)]
            a = [(p[y] - Fraction(1, m)) / (m - 2) for y in range(m)]
            M = [
                [Fraction(1, m * (m - 1)) + a[y] + a[j] if j != y else 0 for j in range(m)]
                for y in range(m)
            ]
            for y in range(m):
                assert sum(M[y]) == p[y] == sum(row[y] for row in M)
                assert all(0 <= entry <= p[y] / k for entry in M[y])
            probabilities = [float(q) for q in p]
            for variant in ("alpha", "beta"):
                loss = losses.get("hinge", k=k, variant=variant)
                assert expected_loss(loss, np.zeros(m), probabilities) == pytest.approx(1)
                for size in range(1, m):
                    check = is_topk_calibrated(loss, probabilities, size)
                    assert not check
                    assert check.risk == pytest.approx(1, abs=1e-8)
                    assert check.excess_error > 0.009

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

    @pytest.mark.parametrize("m", SIZES)
    def test_alpha_at_the_largest_k_costs_at_least_the_excess_error(self, m):
        loss = losses.get("hinge", k=m - 1)
        for p in some(weighted(m), 12):
            check = is_topk_calibrated(loss, p)
            if check.witness is not None:
                assert check
                assert check.gap >= check.excess_error - 1e-9
        assert not find_counterexample(loss, n_classes=m, n_trials=20).found
        # The others tie, so that it says nothing about shorter lists.
        assert not is_topk_calibrated(losses.get("hinge", k=3), [0.4, 0.3, 0.2, 0.1], 1)

    @pytest.mark.parametrize("m", SIZES)
    def test_beta_and_the_printed_alpha_at_the_largest_k_are_not_calibrated(self, m):
        k = m - 1
        first = Fraction(42, 100)
        spread = [Fraction(j, 1000) for j in range(-(m - 2), m, 2)][: m - 1]
        p = [first] + [(1 - first) / (m - 1) + d - sum(spread) / (m - 1) for d in spread]
        assert sum(p) == 1
        # Exactly: (1, 0, ..., 0) is optimal, by these subgradients of label 0.
        x = [(m * q - (1 - first)) / (k * first) for q in p[1:]]
        assert all(0 <= entry <= Fraction(1, k) for entry in x)
        assert all(entry * (k - 1) <= sum(x) for entry in x)
        for j, q in enumerate(p[1:]):
            assert first * x[j] + (1 - first - q) / k == q
        assert (1 - first) / k == first * sum(x)
        probabilities = np.array([float(q) for q in p])
        scores = np.eye(m)[0]
        assert not is_bayes_optimal(scores, probabilities, k)
        beta = losses.get("hinge", k=k, variant="beta")
        check = is_topk_calibrated(beta, probabilities)
        assert not check
        assert expected_loss(beta, scores, probabilities) == pytest.approx(check.risk, abs=1e-9)
        printed = sum(q * printed_alpha(scores, y, k) for y, q in enumerate(probabilities))
        assert printed == pytest.approx(printed_alpha_infimum(probabilities, k), abs=1e-9)
        assert is_topk_calibrated(losses.get("hinge", k=k, variant="alpha"), probabilities)

    @pytest.mark.parametrize("m", SIZES)
    def test_beta_and_the_printed_alpha_at_the_largest_k_fail_for_the_likeliest_label(self, m):
        k = m - 1
        # 1/m <= p_2 < p_1 <= 1/(m - 1), and the others equally likely.
        second, first = (Fraction(1, m) + Fraction(j, 3 * m * k) for j in (1, 2))
        p = [first, second] + [(1 - first - second) / (m - 2)] * (m - 2)
        assert sum(p) == 1
        # Exactly: (1, 1, 0, ..., 0) is optimal. The first two give 1/k to each other, the others
        # 1/k to everyone, and the first two these shares to each of the others.
        x = [(1 - 2 * q) / ((m - 2) * k * q) for q in p[:2]]
        for share in x:
            assert 0 <= share <= Fraction(1, k)
            # The printed set: no share above s/(k-1).
            total = Fraction(1, k) + (m - 2) * share
            assert total <= 1
            assert Fraction(k - 1, k) <= total
        others = 1 - first - second
        for own, rival, share in ((0, 1, x[0]), (1, 0, x[1])):
            received = (p[rival] + others) / k
            assert received == p[own] * (Fraction(1, k) + (m - 2) * share)
        for q in p[2:]:
            assert first * x[0] + second * x[1] + (others - q) / k == q
        probabilities = np.array([float(q) for q in p])
        scores = (np.arange(m) < 2).astype(float)
        assert not is_bayes_optimal(scores, probabilities, 1)
        for variant in ("beta", "printed"):
            loss = losses.get("hinge", k=k, variant=variant)
            check = is_topk_calibrated(loss, probabilities, 1)
            assert not check
            risk = expected_loss(loss, scores, probabilities)
            assert risk == pytest.approx(check.risk, abs=1e-9)

    @pytest.mark.parametrize("variant", ["beta", "printed"])
    @pytest.mark.parametrize("m", [3, 4])
    def test_beta_and_the_printed_alpha_at_the_largest_k_fail_for_every_length(self, m, variant):
        loss = losses.get("hinge", k=m - 1, variant=variant)
        for size in range(1, m):
            assert find_counterexample(loss, size, n_classes=m, n_trials=60).found
        # The two likeliest of three labels tie.
        check = is_topk_calibrated(losses.get("hinge", k=2, variant="beta"), [0.45, 0.35, 0.2], 1)
        assert not check
        np.testing.assert_allclose(check.witness, [1 / 3, 1 / 3, -2 / 3], atol=1e-9)

    def test_the_three_classes_of_the_page(self):
        p = np.array([0.42, 0.3, 0.28])
        assert not is_topk_calibrated(losses.get("hinge", k=2, variant="beta"), p)
        assert is_topk_calibrated(losses.get("hinge", k=2, variant="alpha"), p)
        printed = sum(q * printed_alpha(np.eye(3)[0], y, 2) for y, q in enumerate(p))
        assert printed == pytest.approx(printed_alpha_infimum(p, 2), abs=1e-9)


def printed_alpha(scores: np.ndarray, y: int, k: int) -> float:
    """The alpha hinge as the paper prints it: the label's own zero is among the numbers."""
    margins = np.sort(1.0 + scores - scores[y] - (np.arange(len(scores)) == y))[::-1]
    return max(0.0, margins[:k].mean())


def printed_alpha_infimum(p: np.ndarray, k: int) -> float:
    """Its least expectation, as a linear program over all choices of k numbers."""
    m = len(p)
    rows, limits = [], []
    for y in range(m):
        for chosen in combinations(range(m), k):
            row = np.zeros(2 * m)
            for j in chosen:
                row[j] += 1 / k
                row[y] -= 1 / k
            row[m + y] = -1
            rows.append(row)
            limits.append(-sum(j != y for j in chosen) / k)
    bounds = [(None, None)] * m + [(0, None)] * m
    return linprog(np.r_[np.zeros(m), p], A_ub=rows, b_ub=limits, bounds=bounds).fun


class TestOtherLengths:
    @pytest.mark.parametrize("name", ["smooth_hinge", "entropy"])
    def test_beta_is_calibrated_for_every_length(self, name):
        for k in (1, 2, 3):
            loss = losses.get(name, k=k, variant="beta")
            for m in (4, 5):
                for p in some(weighted(m), 6):
                    for size in range(1, m):
                        check = is_topk_calibrated(loss, p, size)
                        if check.witness is not None:
                            least = proved_excess_risk(loss, check.excess_error, size, m)
                            assert check.gap >= least > 0

    @pytest.mark.parametrize("name", ["smooth_hinge", "entropy"])
    @pytest.mark.parametrize(("k", "m"), [(2, 4), (3, 5)])
    def test_alpha_below_its_k_needs_more_than_k_possible_labels(self, name, k, m):
        loss = losses.get(name, k=k, variant="alpha")
        failures = 0
        for p in some(weighted(m), 18):
            possible = int((p > 0).sum())
            for size in range(1, m):
                check = is_topk_calibrated(loss, p, size)
                if size >= k or possible > k:
                    assert check
                elif size < possible and np.ptp(p[:possible]) > 0:
                    assert not check
                    assert check.risk == pytest.approx(0, abs=1e-13)
                    failures += 1
        assert failures > 0

    def test_alpha_entropy_with_scores_that_run_off(self):
        p = [0.6, 0.4, 0.0, 0.0]
        loss = losses.get("entropy", k=2, variant="alpha")
        risks = [expected_loss(loss, [0.0, 5.0, -t, -t], p) for t in (10, 20, 40, 80)]
        assert risks == sorted(risks, reverse=True)
        assert risks[-1] < 1e-12
        assert not is_topk_calibrated(loss, p, 1)
        assert is_topk_calibrated(loss, p, 2)
        beta = losses.get("entropy", k=2, variant="beta")
        assert is_topk_calibrated(beta, p, 1)

    @pytest.mark.parametrize(
        ("p", "k"), [([0.6, 0.4, 0.0, 0.0], 2), ([0.5, 0.3, 0.2, 0.0, 0.0], 3)]
    )
    def test_truncated_entropy_one_below_its_k_fails_where_labels_are_impossible(self, p, k):
        loss = losses.get("truncated_entropy", k=k)
        check = is_topk_calibrated(loss, p, k - 1)
        assert not check
        assert (check.risk, check.wrong_risk) == (0, 0)
        # The best k - 2 labels, then the k-th before the (k-1)-th, and the impossible far below.
        order = [*range(k - 2), k - 1, k - 2, *range(k, len(p))]
        for t in (20.0, 40.0):
            scores = np.where(np.array(p) > 0, 0.0, -2 * t)
            scores[order[: k - 1]] = t
            assert not is_bayes_optimal(scores, p, k - 1)
            assert expected_loss(loss, scores, p) < 10 * np.exp(-t)

    @pytest.mark.parametrize(("k", "m"), [(2, 4), (3, 5), (3, 6)])
    def test_truncated_entropy(self, k, m):
        loss = losses.get("truncated_entropy", k=k)
        for p in weighted(m):
            possible = int((p > 0).sum())
            for size in range(1, m):
                check = is_topk_calibrated(loss, p, size)
                if check.witness is None or (size < k - 1 and p[size - 1] == p[size]):
                    continue
                equally_likely = possible == k and np.ptp(p[:k]) == 0
                expected = size >= k or (size == k - 1 and (possible > k or equally_likely))
                assert bool(check) == expected, (p, size)

    @pytest.mark.parametrize("loss", [*ONE_VS_ALL, losses.get("softmax")], ids=describe)
    def test_proper_losses_for_every_length(self, loss):
        for m in (3, 4, 5):
            for p in some(weighted(m), 8):
                for size in range(1, m):
                    assert is_topk_calibrated(loss, p, size)

    def test_smooth_alpha_hinge_below_its_k_fails_on_zero_probabilities(self):
        p = [0.6, 0.4, 0.0, 0.0]
        assert not is_topk_calibrated(losses.get("smooth_hinge", k=2), p, 1)
        assert is_topk_calibrated(losses.get("smooth_hinge", k=2), p, 2)
        assert is_topk_calibrated(losses.get("smooth_hinge", k=2, variant="beta"), p, 1)
