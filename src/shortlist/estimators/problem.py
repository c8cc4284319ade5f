"""From what the user gave to the solver's problem: one way for both classifiers."""

from typing import Any

from shortlist.estimators.multilabel import is_indicator
from shortlist.estimators.parameters import (
    FREE_CONSTANT,
    check_free_intercept,
    check_parameters,
    with_counted_margins,
)
from shortlist.estimators.shortlists import ShortlistClassifier
from shortlist.estimators.targets import check_overflow, encode_targets, make_costs
from shortlist.estimators.warm_starts import Rows
from shortlist.losses import Loss
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Storage


class TrainedClassifier(ShortlistClassifier):
    """A classifier that a solver trains. Subclasses say how examples are checked and stored."""

    C: float
    class_weight: Any
    fit_intercept: Any

    def _checked(self, X: Any, y: Any, loss: Loss) -> tuple[Any, Any]:
        """X and y as training takes them."""
        raise NotImplementedError

    def _storage(self, rows: Rows, n_classes: int, loss: Loss) -> Storage:
        raise NotImplementedError

    def _problem(self, X: Any, y: Any, sample_weight: Any) -> tuple[Problem, Rows]:
        """Check everything the user gave and set classes_; shared by fit and fit_path.

        Returns the problem and the examples as they were checked.
        """
        loss = check_parameters(self, is_indicator(y))
        X, y = self._checked(X, y, loss)
        rows = Rows(X, y, sample_weight)
        return self._problem_of(rows, loss), rows

    def _problem_of(self, rows: Rows, loss: Loss) -> Problem:
        X, y, sample_weight = rows
        classes, codes, weights = encode_targets(X, y, loss, sample_weight, self.class_weight)
        loss = with_counted_margins(self, loss, codes, len(classes), sample_weight)
        free = FREE_CONSTANT if self.fit_intercept == "free" else 0.0
        if free:
            check_free_intercept(loss, classes, codes, weights)
        costs = make_costs(codes, weights, float(self.C))
        storage = self._storage(rows, len(classes), loss)
        check_overflow(storage, costs)
        self.classes_, self.multilabel_ = classes, loss.multilabel
        return Problem(storage, costs, len(classes), loss, free_intercept=free)
