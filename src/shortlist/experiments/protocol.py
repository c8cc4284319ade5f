"""The protocol of the paper's Table 3: C is chosen on the validation part, separately for each k.

A path over C is trained with warm starts, each C from the duals of the one before. The range is
1e-5 to 1e3 and is extended where the best value lies at its edge, as in the paper; it is cut short
where accuracy on the validation part has fallen behind at every k for a while.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
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
    path = _Path(parameters, parts)
    exponents = list(parameters["exponents"])
    expected = np.cumsum([_expected_epochs(10 ** (e / 2)) for e in exponents])
    for number, exponent in enumerate(exponents):
        path.visit(exponent)
        tick(0.95 * expected[number] / expected[-1])
        if path.has_fallen_behind():
            break
    low, high = parameters["extended_exponents"]
    while path.is_best_at(max) and path.highest < high and not path.has_fallen_behind():
        path.visit(path.highest + 1)
    path.restart()
    while path.is_best_at(min) and path.lowest > low:
        path.visit(path.lowest - 1)
    chosen = path.chosen()
    tick(1.0)
    return {
        "method": parameters["method"],
        "points": [path.points[e] for e in sorted(path.points)],
        "chosen": chosen,
        "seconds": time.perf_counter() - clock,
        "cpu_seconds": time.process_time() - cpu_clock,
    }


class _Path:
    """The models of one method, exponent by exponent; C = 10^(exponent / 2)."""

    def __init__(self, parameters: Mapping[str, Any], parts: Parts) -> None:
        self.parts = parts
        self.ks: Sequence[int] = parameters["ks"]
        self.X, self.y, self.X_val, self.y_val = parts.for_selection(parameters["seed"])
        self.options = {
            "tol": parameters["tol"],
            "max_epochs": parameters["max_epochs"],
            "random_state": parameters["seed"],
            "warm_start": True,
        }
        self.method = parameters["method"]
        self.points: dict[int, Record] = {}
        self.restart()

    def restart(self) -> None:
        """Forget the last duals: the next value of C starts from zero."""
        self.model = classifier(self.method, **self.options)

    @property
    def lowest(self) -> int:
        return min(self.points)

    @property
    def highest(self) -> int:
        return max(self.points)

    def visit(self, exponent: int) -> None:
        """Train at one more C, from the duals of the last, and note accuracies and certificate."""
        self.model.set_params(C=10 ** (exponent / 2)).fit(self.X, self.y)
        point = _certificate(self.model)
        point["val"] = _accuracies(self.model, self.X_val, self.y_val)
        if self.parts.X_val is not None:
            point["test"] = _accuracies(self.model, self.parts.X_test, self.parts.y_test)
        self.points[exponent] = point

    def best(self, k: int) -> int:
        """The exponent with the best top-k accuracy on the validation part; ties: the smallest."""
        return max(sorted(self.points), key=lambda e: self.points[e]["val"][k - 1])

    def is_best_at(self, edge: Any) -> bool:
        return any(self.best(k) == edge(self.points) for k in self.ks)

    def has_fallen_behind(self) -> bool:
        return all(self.highest - self.best(k) >= PATIENCE for k in self.ks)

    def chosen(self) -> Record:
        """The model of each k: its C, certificate and test accuracies."""
        exponents = {k: self.best(k) for k in self.ks}
        if self.parts.X_val is not None:
            models = {e: self.points[e] for e in exponents.values()}
        else:
            models = self._train_again(sorted(set(exponents.values())))
        return {str(k): models[e] for k, e in exponents.items()}

    def _train_again(self, exponents: list[int]) -> dict[int, Record]:
        model = classifier(self.method, **self.options)
        models = {}
        for exponent in exponents:
            model.set_params(C=10 ** (exponent / 2)).fit(self.parts.X_train, self.parts.y_train)
            test = _accuracies(model, self.parts.X_test, self.parts.y_test)
            models[exponent] = {**_certificate(model), "test": test}
        return models


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


def _expected_epochs(C: float) -> float:
    """A rough guess, for the estimate of the time left."""
    return 1.0 + min(10.0 * C**0.5, 50.0)
