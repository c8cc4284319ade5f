"""Top-k error for every k at once, with an explicit policy for tied scores."""

from shortlist.metrics._ranks import true_label_ranks
from shortlist.metrics._scorer import TopKScorer, estimator_scores, topk_scorer
from shortlist.metrics._topk import (
    TIE_POLICIES,
    TieWarning,
    topk_accuracy,
    topk_accuracy_curve,
    topk_error,
)

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
