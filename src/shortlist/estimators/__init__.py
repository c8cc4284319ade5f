"""The scikit-learn estimators."""

from shortlist.estimators.linear import TopKClassifier

__all__ = ["TopKClassifier"]
