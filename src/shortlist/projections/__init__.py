"""Euclidean projections and entropic steps on the sets behind the losses.

Each function's docstring opens with the problem it solves.
"""

from shortlist.projections.entropic import prox_entropy
from shortlist.projections.ordered import project_ordered_simplex
from shortlist.projections.threshold import project_knapsack, project_simplex
from shortlist.projections.topk import project_topk_cone, project_topk_simplex

__all__ = [
    "project_knapsack",
    "project_ordered_simplex",
    "project_simplex",
    "project_topk_cone",
    "project_topk_simplex",
    "prox_entropy",
]
