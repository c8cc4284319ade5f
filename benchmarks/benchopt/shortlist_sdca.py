"""Shortlist as a solver of benchopt's benchmark of logistic regression with an l2 penalty.

Copy this file into ``solvers/`` of github.com/benchopt/benchmark_logreg_l2 and run, there,

    benchopt run . -s shortlist -s sklearn -d simulated

That benchmark minimises sum_i log(1 + exp(-y_i (x_i'b + c))) + lmbd/2 |b|^2 with labels -1 and 1
and an intercept that is not penalised: the loss "ova_logistic" with C = 1 / lmbd.
"""

import warnings
from typing import ClassVar

import numpy as np
from benchopt import BaseSolver
from benchopt.stopping_criterion import SufficientProgressCriterion
from sklearn.exceptions import ConvergenceWarning

from shortlist import TopKClassifier

# A gap of this share of the objective is rounding.
SMALLEST_TOLERANCE = 1e-14


class Solver(BaseSolver):
    name = "shortlist"
    requirements: ClassVar[list[str]] = ["pip::shortlist"]
    # run() gets ever smaller tolerances, here relative duality gaps. A fit is often better than it
    # was asked to be, so that several tolerances have the same result: wait for more of them.
    sampling_strategy = "tolerance"
    stopping_criterion = SufficientProgressCriterion(strategy="tolerance", patience=10)

    def set_objective(self, X, y, lmbd, fit_intercept):
        self.X, self.y = X, y
        intercept = "free" if fit_intercept else False
        self.model = TopKClassifier(
            "ova_logistic", C=1.0 / lmbd, fit_intercept=intercept, random_state=0
        )

    def warm_up(self):
        """Compile the kernels: benchopt does not count the time of this."""
        self.run(1e-2)

    def run(self, tolerance):
        self.model.tol = max(tolerance, SMALLEST_TOLERANCE)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.model.fit(self.X, self.y)

    def get_result(self):
        beta = self.model.coef_.ravel()
        if self.model.fit_intercept:
            beta = np.r_[beta, self.model.intercept_]
        return {"beta": beta}
