"""Bayes-optimal top-k error, and which losses lead to it.

A loss is top-k calibrated when minimising its expected value at every point, with unlimited data
and unlimited functions, leads to the smallest possible top-k error. This package computes both
sides at a given distribution p of the label: the Bayes-optimal top-k error (`bayes_topk_error`),
the minimiser of a loss (`bayes_optimal_scores`), and whether every minimiser has a Bayes-optimal
shortlist (`is_topk_calibrated`). `calibration_table` redoes the paper's column of yes and no.

What the paper proves, the check confirms. What the paper leaves open for k > 1, it decides:

- **Top-k hinge, alpha and beta: not calibrated** for 1 <= k <= m - 2. Near the uniform
  distribution constant scores are optimal. With four classes, p = (.3, .3, .2, .2) and k = 2 the
  expected loss of constant scores is 1 and no scores do better, because 0 is a subgradient there:
  take x^y_j = M_yj / p_y with M symmetric, zero on the diagonal, M_12 = .15, M_34 = .05 and .075
  elsewhere; the entries of x^y lie within [0, 1/2] and sum to 1, and the columns of M sum to p.
  At k = m - 1, alpha is calibrated (it becomes max(0, 1 - m/k f_y) on scores that sum to zero)
  and beta, with three classes or more, is not: p = (.42, .3, .28) is a counterexample.
- **Smooth top-k hinge and top-k entropy, alpha and beta: calibrated** for every k. No search has
  found a counterexample, and none exists. Suppose scores g minimise the expected loss R but a
  shortlist of theirs holds j and not i although p_i > p_j. So g_j >= g_i, and at least k classes
  other than i score g_i or more; write s_i for the sum of the gradient of L(i, .) over the wrong
  labels, positive for that reason in all four losses. If g_i = g_j, exchanging i and j leaves
  every other loss as it is, and symmetry gives dR/dg_i - dR/dg_j = (p_j - p_i) (s_i + x_j) with
  x_j = dL(i, g)/dg_j >= 0: not zero, so g is no minimiser. If g_i < g_j, exchanging the two
  scores lowers R by (p_i - p_j) (L(i, g) - L(j, g)), positive since s_i is. The argument needs a
  derivative, which is what the hinges lack.
- Beyond its own k: the smooth beta hinge and both entropies rank all classes by probability, so
  they are top-s calibrated for every s. The smooth alpha hinge is for s >= k; for s < k it fails
  where labels have probability zero, as at p = (.6, .4, 0, 0) with k = 2 and s = 1. The truncated
  top-k entropy is for s >= k - 1, one more than the paper claims, and fails below.
"""

from shortlist.calibration._bayes import (
    OptimalShortlists,
    bayes_topk_error,
    is_bayes_optimal,
    optimal_shortlists,
    worst_topk_error,
)
from shortlist.calibration._check import CalibrationCheck, is_topk_calibrated
from shortlist.calibration._optimum import bayes_optimal_scores, bayes_risk, expected_loss
from shortlist.calibration._regret import RegretBound, regret_bound
from shortlist.calibration._table import (
    CalibrationRow,
    CounterexampleSearch,
    calibration_table,
    find_counterexample,
)

__all__ = [
    "CalibrationCheck",
    "CalibrationRow",
    "CounterexampleSearch",
    "OptimalShortlists",
    "RegretBound",
    "bayes_optimal_scores",
    "bayes_risk",
    "bayes_topk_error",
    "calibration_table",
    "expected_loss",
    "find_counterexample",
    "is_bayes_optimal",
    "is_topk_calibrated",
    "optimal_shortlists",
    "regret_bound",
    "worst_topk_error",
]
