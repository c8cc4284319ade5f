"""The scikit-learn estimators."""

from shortlist.estimators.cv import TopKClassifierCV
from shortlist.estimators.kernel import KernelTopKClassifier
from shortlist.estimators.linear import TopKClassifier

__all__ = ["KernelTopKClassifier", "TopKClassifier", "TopKClassifierCV"]
