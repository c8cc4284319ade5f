"""Bayes-optimal top-k error, which losses lead to it, and how surely.

A loss is top-k calibrated when driving its expected value to the infimum at every point, with
unlimited data and unlimited functions, leads to the smallest possible top-k error. At a given
distribution p of the label this package computes

- the Bayes-optimal top-k error (`bayes_topk_error`) and the shortlists that attain it,
- the minimiser of a loss (`bayes_optimal_scores`) and its infimum (`bayes_risk`),
- whether scores with a wrong shortlist stay away from that infimum (`is_topk_calibrated`),

and over all p

- counterexamples (`find_counterexample`) and the paper's column of yes and no
  (`calibration_table`),
- the least excess risk that an excess of top-k error goes with (`regret_bound`).

The answers, with m classes. The page "Calibration" of the documentation has the proofs.

- **Top-k hinge: not calibrated** for k <= m - 2, alpha or beta: near the uniform distribution
  constant scores are optimal. At k = m - 1 alpha is calibrated, and beta is not if m > 2.
- **Smooth top-k hinge and top-k entropy, alpha and beta: calibrated** at every k < m. The excess
  risk of wrong scores is at least a constant times the square of their excess error, whatever p.
- **Shortlists of another length r.** Those four are calibrated for r > k too. For r < k the beta
  losses are; the alpha losses are where more than k labels have positive probability, and fail
  elsewhere: at p = (.6, .4, 0, 0) with k = 2 and r = 1.
- **Truncated top-k entropy: calibrated** for r >= k. For r = k - 1 it is only where more than k
  labels have positive probability; for shorter lists it is not.
- **Mixtures of smooth hinges or entropies**: for r from the smallest k that has a share on; beta
  for every r.
- **One-vs-all**: the logistic loss and the smooth hinge are calibrated for every k, the hinge is
  not.

>>> from shortlist import losses
>>> from shortlist.calibration import bayes_topk_error, is_topk_calibrated
>>> round(float(bayes_topk_error([0.4, 0.3, 0.3], k=2)), 3)
0.3
>>> bool(is_topk_calibrated(losses.get("hinge"), [0.4, 0.3, 0.3]))
False
>>> bool(is_topk_calibrated(losses.get("smooth_hinge"), [0.4, 0.3, 0.3]))
True
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
