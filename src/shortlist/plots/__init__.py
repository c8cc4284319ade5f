"""Pictures in scikit-learn's Display manner; matplotlib comes with the extra ``shortlist[plot]``.

Each class holds the computed data and draws it with ``plot``; the ``from_...`` constructors
compute and draw at once. Matplotlib is imported only when something is drawn.
"""

from shortlist.plots._circle import CirclePredictionsDisplay
from shortlist.plots._conformal import ConformalDisplay
from shortlist.plots._loss import LossDisplay
from shortlist.plots._regret import RegretBoundDisplay
from shortlist.plots._search import SearchDisplay
from shortlist.plots._simplex import CalibrationSimplexDisplay
from shortlist.plots._style import PALETTE
from shortlist.plots._topk_curve import TopKCurveDisplay
from shortlist.plots._training import ConvergenceCurve, ConvergenceDisplay

__all__ = [
    "PALETTE",
    "CalibrationSimplexDisplay",
    "CirclePredictionsDisplay",
    "ConformalDisplay",
    "ConvergenceCurve",
    "ConvergenceDisplay",
    "LossDisplay",
    "RegretBoundDisplay",
    "SearchDisplay",
    "TopKCurveDisplay",
]
