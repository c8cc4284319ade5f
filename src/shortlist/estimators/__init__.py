"""The scikit-learn estimators."""

from shortlist.estimators.cv import TopKClassifierCV
from shortlist.estimators.linear import TopKClassifier

__all__ = ["TopKClassifier", "TopKClassifierCV"]
