"""Euclidean projections and entropic steps on the sets behind the losses.

Each function's docstring opens with the problem it solves.

>>> from shortlist.projections import project_simplex, project_topk_simplex
>>> project_simplex([0.9, 0.5, 0.1]).round(2).tolist()
[0.7, 0.3, 0.0]
>>> project_topk_simplex([0.9, 0.5, 0.1], k=2).round(2).tolist()
[0.5, 0.45, 0.05]
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
