"""The paper's methods, and the protocol of its Table 3: C chosen on validation examples for each k.

A path over C is trained with warm starts, each C from the duals of the one before. The range is
1e-5 to 1e3 and is extended where the best value lies at its edge, as in the paper. It is cut short
where accuracy on the validation part has fallen behind at every k for a while (convex losses only),
and where training no longer reaches its tolerance. Only models that met it can be chosen.
"""

import base64
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from shortlist import losses
from shortlist.estimators import TopKClassifier
from shortlist.experiments import paper
from shortlist.experiments.parts import Parts
from shortlist.experiments.units import Task
from shortlist.metrics import topk_accuracy_curve, true_label_ranks

#: Two values a decade over the paper's range, and how far it may be extended.
EXPONENTS = tuple(range(-10, 7))
EXTENDED_EXPONENTS = (-14, 10)
#: A path ends after so many values of C in a row that are worse than the best, at every k. Values
#: as good as the best do not count: at small C plain hinges have the same model up to a factor.
MAX_WORSE_VALUES = 5
#: A path ends after so many values in a row that did not converge. A larger C is harder still.
MAX_UNCONVERGED = 2
#: Accuracies are kept for k = 1, ..., 10.
MAX_K = 10


def classifier(method: str, **parameters: Any) -> TopKClassifier:
    """Return an unfitted classifier for a method such as "topk-svm:3", without an intercept.

    The paper's models have none: with one, the circle's one-vs-all SVM would reach 94% top-2 where
    the paper has 85.8%, without one it has 85%; Letter's softmax agrees within 0.2 points as well.
    """
    loss, k = paper.family_of(method).loss, paper.split_method(method)[1]
    return TopKClassifier(loss, k=k, **{"fit_intercept": False, **parameters})


def loss_of(method: str) -> losses.Loss:
    """Return the loss of a method."""
    return classifier(method).make_loss()


def code_kind(method: str) -> str:
    """The kind of compiled code that trains a method: the type of its loss's parameters."""
    return type(loss_of(method).spec).__name__


def relative_cost(method: str) -> float:
    """Roughly how long a path over C takes compared with softmax's."""
    family = paper.family_of(method)
    return family.cost + family.cost_per_k * paper.split_method(method)[1]


@dataclass(frozen=True)
class Model:
    """A trained model: its certificate, and its accuracies in per cent for k = 1, ..., 10."""

    C: float
    primal: float
    relative_gap: float
    epochs: float
    seconds: float
    status: str
    val: tuple[float, ...]
    #: Empty while the test examples have not been looked at.
    test: tuple[float, ...] = ()

    @property
    def converged(self) -> bool:
        return self.status == "converged"


@dataclass(frozen=True)
class Chosen:
    """The model chosen for one k, and which test examples it has right at that k."""

    model: Model
    packed_hits: str
    n_test: int

    @classmethod
    def of(cls, model: Model, hits: NDArray[np.bool_]) -> Self:
        packed = base64.b64encode(np.packbits(hits).tobytes()).decode("ascii")
        return cls(model, packed, len(hits))

    def hits(self) -> NDArray[np.bool_]:
        packed = np.frombuffer(base64.b64decode(self.packed_hits), np.uint8)
        return np.unpackbits(packed, count=self.n_test).astype(bool)


@dataclass(frozen=True)
class PathResult:
    """The models of one method along C, and those chosen; a k without any is left out."""

    method: str
    models: tuple[Model, ...]
    chosen: dict[int, Chosen]
    seconds: float
    cpu_seconds: float

    @property
    def n_left_out(self) -> int:
        """How many models could not be chosen because they did not meet their tolerance."""
        return sum(not model.converged for model in self.models)

    def accuracy(self, k: int) -> float:
        """Top-k test accuracy of the model chosen for k; NaN where there is none."""
        return self.chosen[k].model.test[k - 1] if k in self.chosen else float("nan")


@dataclass(frozen=True)
class PathTask(Task):
    """One method along C = scale 10^(exponent / per_decade), and a model chosen for each k."""

    method: str
    ks: tuple[int, ...]
    data: str
    tol: float
    max_epochs: int
    seed: int
    exponents: tuple[int, ...] = EXPONENTS
    extended_exponents: tuple[int, int] = EXTENDED_EXPONENTS
    per_decade: int = 2
    scale: float = 1.0

    def run(self, payload: Parts) -> PathResult:
        clock, cpu_clock = time.perf_counter(), time.process_time()
        path = _Path(self, payload)
        low, high = self.extended_exponents
        path.walk([*self.exponents, *range(self.exponents[-1] + 1, high + 1)])
        if path.is_best_at(min(path.models)):
            path.walk(range(low, self.exponents[0]))
        chosen = path.chosen()
        models = tuple(path.models[exponent] for exponent in sorted(path.models))
        times = time.perf_counter() - clock, time.process_time() - cpu_clock
        return PathResult(self.method, models, chosen, *times)

    def C(self, exponent: int) -> float:
        return self.scale * 10 ** (exponent / self.per_decade)


class _Path:
    """The models of one method, by exponent."""

    def __init__(self, task: PathTask, parts: Parts) -> None:
        self.task, self.parts = task, parts
        self.X, self.y, self.X_val, self.y_val = parts.for_selection(task.seed)
        self.classifier = classifier(
            task.method, tol=task.tol, max_epochs=task.max_epochs, random_state=task.seed
        )
        self.convex = loss_of(task.method).convex
        self.models: dict[int, Model] = {}
        #: Ranks of the test examples' labels, from 1, by exponent.
        self.ranks: dict[int, NDArray] = {}
        #: Exponents whose model did not converge when it was trained again on all examples.
        self.failed_again: set[int] = set()

    def walk(self, exponents: Iterable[int]) -> None:
        """Train at growing C until :meth:`_is_enough`."""
        exponent_of = {self.task.C(exponent): exponent for exponent in exponents}

        def visit(fitted: Any) -> bool:
            exponent = exponent_of[fitted.C]
            val = accuracies(self.y_val, fitted.decision_function(self.X_val), fitted.classes_)
            self.models[exponent] = self._model(fitted, val)
            if self.parts.val is not None:
                self._test(exponent, fitted)
            return self._is_enough(exponent)

        if exponent_of:
            self.classifier.fit_path(self.X, self.y, exponent_of, callback=visit)

    def best(self, k: int, *, largest: bool = False) -> int | None:
        """The exponent with the best top-k accuracy on the validation part.

        Of equally good ones it is the smallest, or the largest.
        """
        converged = {e for e, model in self.models.items() if model.converged}
        eligible = sorted(converged - self.failed_again, reverse=largest)
        return max(eligible, key=lambda e: self.models[e].val[k - 1], default=None)

    def is_best_at(self, exponent: int) -> bool:
        return any(self.best(k) == exponent for k in self.task.ks)

    def chosen(self) -> dict[int, Chosen]:
        """The model of each k, with its test accuracies."""
        while True:
            best = {k: exponent for k in self.task.ks if (exponent := self.best(k)) is not None}
            untested = set(best.values()) - set(self.ranks)
            if not untested:
                break
            self._train_again(untested)
        return {k: Chosen.of(self.models[e], self.ranks[e] <= k) for k, e in best.items()}

    def _is_enough(self, exponent: int) -> bool:
        """Whether the path ends here: larger values of C are not worth a try."""
        so_far = [self.models[e] for e in sorted(self.models) if e <= exponent]
        last = so_far[-MAX_UNCONVERGED:]
        if len(last) == MAX_UNCONVERGED and not any(model.converged for model in last):
            return True
        if exponent >= self.task.exponents[-1] and not self.is_best_at(exponent):
            return True
        if not self.convex:
            return False  # each C has a local minimum of its own: a fall is not the end
        last_best = [self.best(k, largest=True) for k in self.task.ks]
        return all(last is not None and exponent - last >= MAX_WORSE_VALUES for last in last_best)

    def _train_again(self, exponents: set[int]) -> None:
        """Train on all of the training part, and look at the test examples."""
        exponent_of = {self.task.C(exponent): exponent for exponent in exponents}
        fitted = self.classifier.fit_path(self.parts.X_train, self.parts.y_train, exponent_of)
        for exponent, model in zip(exponent_of.values(), fitted, strict=True):
            again = self._model(model, self.models[exponent].val)
            if again.converged:
                self.models[exponent] = again
                self._test(exponent, model)
            else:
                self.failed_again.add(exponent)

    def _test(self, exponent: int, fitted: Any) -> None:
        y, scores = self.parts.y_test, fitted.decision_function(self.parts.X_test)
        self.ranks[exponent] = true_label_ranks(y, scores, labels=fitted.classes_)[0]
        test = accuracies(y, scores, fitted.classes_)
        self.models[exponent] = replace(self.models[exponent], test=test)

    @staticmethod
    def _model(fitted: Any, val: tuple[float, ...]) -> Model:
        r = fitted.result_
        return Model(fitted.C, r.primal, r.relative_gap, r.epochs, r.seconds, r.status, val)


def accuracies(
    y: Any, scores: NDArray, classes: NDArray, max_k: int = MAX_K, ties: str = "optimistic"
) -> tuple[float, ...]:
    """Top-k accuracy of scores, one column a class, in per cent for k = 1, ..., max_k.

    Ties count in the label's favour, as in the paper, unless ``ties`` says otherwise.
    """
    curve = topk_accuracy_curve(y, scores, min(max_k, len(classes)), ties, labels=classes)
    return tuple((100 * curve).tolist())
