"""Top-k error for every k at once, with an explicit policy for tied scores.

>>> from shortlist.metrics import topk_accuracy_curve, topk_error
>>> scores = [[0.9, 0.5, 0.1], [0.8, 0.7, 0.2], [0.3, 0.2, 0.1]]
>>> round(topk_error([0, 1, 2], scores, k=2), 3)
0.333
>>> topk_accuracy_curve([0, 1, 2], scores).round(3).tolist()
[0.333, 0.667, 1.0]
"""

from shortlist._parameters import TIE_POLICIES
from shortlist.metrics._scorer import TopKScorer, estimator_scores, topk_scorer
from shortlist.metrics._topk import (
    TieWarning,
    topk_accuracy,
    topk_accuracy_curve,
    topk_error,
)
from shortlist.metrics.ranks import true_label_ranks

__all__ = [
    "TIE_POLICIES",
    "TieWarning",
    "TopKScorer",
    "estimator_scores",
    "topk_accuracy",
    "topk_accuracy_curve",
    "topk_error",
    "topk_scorer",
    "true_label_ranks",
]
