"""Solvers with duality-gap certificates, over any loss of ``shortlist.losses``."""

from shortlist.solvers.result import Evaluation, Result
from shortlist.solvers.run import Progress, StopTraining

__all__ = ["Evaluation", "Progress", "Result", "StopTraining"]
