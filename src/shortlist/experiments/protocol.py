"""The protocol of the paper's Table 3: C is chosen on the validation part, separately for each k.

A path over C is trained with warm starts, each C from the duals of the one before. The range is
1e-5 to 1e3 and is extended where the best value lies at its edge, as in the paper; it is cut short
where accuracy on the validation part has fallen behind at every k for a while.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from shortlist.experiments.methods import classifier
from shortlist.experiments.store import Record, Tick, fingerprint

#: Two values a decade over the paper's range, and how far it may be extended.
EXPONENTS = tuple(range(-10, 7))
EXTENDED_EXPONENTS = (-14, 10)
#: So many values in a row that are no improvement at any k end the path.
PATIENCE = 5
#: Accuracies are kept for k = 1, ..., 10.
MAX_K = 10


@dataclass(frozen=True, eq=False)
class Parts:
    """Training, validation and test examples.

    Without a validation part a fifth of the training part is held out for choosing C, class by
    class, and the chosen models are trained again on all of it.
    """

    X_train: Any
    y_train: Any
    X_test: Any
    y_test: Any
    X_val: Any = None
    y_val: Any = None

    @property
    def n_classes(self) -> int:
        return len(np.unique(self.y_train))

    @property
    def fingerprint(self) -> str:
        arrays = [self.X_train, self.y_train, self.X_test, self.y_test, self.X_val, self.y_val]
        return fingerprint(*(array for array in arrays if array is not None))

    def for_selection(self, seed: int) -> tuple[Any, Any, Any, Any]:
        """Examples to train on and to choose C by: X, y, X_val, y_val."""
        if self.X_val is not None:
            return self.X_train, self.y_train, self.X_val, self.y_val
        from sklearn.model_selection import train_test_split

        X, X_val, y, y_val = train_test_split(
            self.X_train, self.y_train, test_size=0.2, stratify=self.y_train, random_state=seed
        )
        return X, y, X_val, y_val


def train_path(parameters: Mapping[str, Any], parts: Parts, tick: Tick) -> Record:
    """Train one method along C and report the models chosen for each k.

    Returns ``points`` (each C's validation accuracies and certificate), ``chosen`` (for each k the
    C and the test accuracies of its model), ``seconds`` of wall-clock time and of processor time.
    """
    clock, cpu_clock = time.perf_counter(), time.process_time()
    path = _Path(parameters, parts, tick)
    low, high = parameters["extended_exponents"]
    exponents = list(parameters["exponents"])
    path.walk([*exponents, *range(exponents[-1] + 1, high + 1)])
    if path.is_best_at(min(path.points)):
        path.walk(range(low, exponents[0]))
    chosen = path.chosen()
    tick(1.0)
    return {
        "method": parameters["method"],
        "points": [path.points[e] for e in sorted(path.points)],
        "chosen": chosen,
        "seconds": time.perf_counter() - clock,
        "cpu_seconds": time.process_time() - cpu_clock,
    }


class _Enough(Exception):
    """Raised to end a path: the next values of C promise nothing."""


class _Path:
    """The models of one method, exponent by exponent; C = 10^(exponent / 2)."""

    def __init__(self, parameters: Mapping[str, Any], parts: Parts, tick: Tick) -> None:
        self.parts = parts
        self.tick = tick
        self.ks: Sequence[int] = parameters["ks"]
        self.X, self.y, self.X_val, self.y_val = parts.for_selection(parameters["seed"])
        self.model = classifier(
            parameters["method"],
            tol=parameters["tol"],
            max_epochs=parameters["max_epochs"],
            random_state=parameters["seed"],
        )
        self.top = parameters["exponents"][-1]
        expected = [_expected_epochs(e) for e in parameters["exponents"]]
        self.expected = dict(
            zip(parameters["exponents"], np.cumsum(expected) / np.sum(expected), strict=True)
        )
        self.points: dict[int, Record] = {}

    def walk(self, exponents: Iterable[int]) -> None:
        """Train at growing C; past the plain range only while the last value is the best."""
        Cs = [10 ** (exponent / 2) for exponent in exponents]
        with suppress(_Enough):
            if Cs:
                self.model.fit_path(self.X, self.y, Cs, callback=self.visit)

    def visit(self, model: Any) -> None:
        """Note the accuracies and the certificate of a model just trained."""
        exponent = round(2 * np.log10(model.C))
        point = _certificate(model)
        point["val"] = _accuracies(model, self.X_val, self.y_val)
        if self.parts.X_val is not None:
            point["test"] = _accuracies(model, self.parts.X_test, self.parts.y_test)
        self.points[exponent] = point
        self.tick(0.95 * self.expected.get(exponent, 1.0))
        if exponent >= self.top and not self.is_best_at(exponent):
            raise _Enough
        if all(exponent - self.best(k) >= PATIENCE for k in self.ks):
            raise _Enough

    def best(self, k: int) -> int:
        """The exponent with the best top-k accuracy on the validation part; ties: the smallest."""
        return max(sorted(self.points), key=lambda e: self.points[e]["val"][k - 1])

    def is_best_at(self, exponent: int) -> bool:
        return any(self.best(k) == exponent for k in self.ks)

    def chosen(self) -> Record:
        """The model of each k: its C, certificate and test accuracies."""
        exponents = {k: self.best(k) for k in self.ks}
        if self.parts.X_val is not None:
            models = {e: self.points[e] for e in exponents.values()}
        else:
            models = self._train_again(set(exponents.values()))
        return {str(k): models[e] for k, e in exponents.items()}

    def _train_again(self, exponents: set[int]) -> dict[int, Record]:
        """The chosen models on all of the training part, with their test accuracies."""
        Cs = {exponent: 10 ** (exponent / 2) for exponent in exponents}
        fitted = self.model.fit_path(self.parts.X_train, self.parts.y_train, Cs.values())
        return {
            exponent: {
                **_certificate(model),
                "test": _accuracies(model, self.parts.X_test, self.parts.y_test),
            }
            for exponent, model in zip(Cs, fitted, strict=True)
        }


def _certificate(model: Any) -> Record:
    result = model.result_
    return {
        "C": model.C,
        "primal": result.primal,
        "relative_gap": result.relative_gap,
        "epochs": result.epochs,
        "seconds": result.seconds,
        "status": result.status,
    }


def _accuracies(model: Any, X: Any, y: Any) -> list[float]:
    """Top-k accuracy in per cent for k = 1, ..., 10, ties counted as the paper does."""
    from shortlist.metrics import topk_accuracy_curve

    scores = model.decision_function(X)
    max_k = min(MAX_K, len(model.classes_))
    return (100 * topk_accuracy_curve(y, scores, max_k, labels=model.classes_)).tolist()


def _expected_epochs(exponent: int) -> float:
    """A rough guess at what a value of C costs, for the estimate of the time left."""
    return 1.0 + min(10.0 ** (1.0 + exponent / 4), 50.0)
