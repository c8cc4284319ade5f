"""One draw of the circle: training, choice of C, test accuracy."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np

from shortlist.experiments.methods import classifier
from shortlist.experiments.store import Record, Tick

KS = (1, 2)
#: C = 2^-18, ..., 2^18, the paper's range.
EXPONENTS = tuple(range(-18, 19))
#: The relative gap at which a model's weights count as the optimum's own.
_EXACT = 1e-7
_PARTS = {"train": 0, "val": 1, "test": 2}


def draw_part(part: str, size: int, draw: int, seed: int) -> tuple[Any, Any]:
    """The examples of one part of one draw; all draws share the test examples."""
    from shortlist.datasets import make_circle

    entropy = [seed, 0 if part == "test" else 1 + draw, _PARTS[part]]
    state = int(np.random.SeedSequence(entropy).generate_state(1)[0])
    return make_circle(size, random_state=state)


def train_draw(parameters: Mapping[str, Any], payload: None, tick: Tick) -> Record:
    """Train one method on one draw for every C; for each k report the model chosen for it."""
    clock = time.perf_counter()
    draw, seed = parameters["draw"], parameters["seed"]
    X, y = draw_part("train", parameters["n_train"], draw, seed)
    X_val, y_val = draw_part("val", parameters["n_train"], draw, seed)
    X_test, y_test = draw_part("test", parameters["n_test"], draw, seed)
    Cs = [2.0**exponent for exponent in parameters["exponents"]]
    model = classifier(
        parameters["method"],
        tol=parameters["tol"],
        max_epochs=parameters["max_epochs"],
        random_state=seed,
        fit_intercept=parameters["intercept"],
    )
    fitted = model.fit_path(X, y, Cs)
    weights = [_weights(one) for one in fitted]
    if parameters["starts"] > 1:
        random = np.random.default_rng([seed, draw])
        weights = [
            _best_of_starts(model.k, X, y, C, w, parameters["starts"], random)
            for C, w in zip(Cs, weights, strict=True)
        ]
    classes = fitted[0].classes_
    on_val = [_accuracies(X_val, y_val, w, classes) for w in weights]
    chosen = {}
    for k in KS:
        best = max(range(len(Cs)), key=lambda i: on_val[i][k - 1])
        chosen[str(k)] = {
            "C": Cs[best],
            "val": on_val[best],
            "test": _accuracies(X_test, y_test, weights[best], classes),
            "weights": weights[best].tolist(),
        }
    record = {"chosen": chosen, "seconds": time.perf_counter() - clock}
    if parameters["exact_C"] is not None:
        exact = model.set_params(C=parameters["exact_C"], tol=_EXACT, max_epochs=20_000).fit(X, y)
        record["nearest_at_optimum"] = _nearest_classes(_weights(exact))
    tick(1.0)
    return record


def scores(X: Any, weights: Any) -> Any:
    """Scores of all classes; the last row of the weights belongs to the constant feature."""
    return X @ weights[:-1] + weights[-1]


def _weights(model: Any) -> Any:
    return np.vstack([model.coef_.T, model.intercept_[None, :]]).astype(np.float64)


def _accuracies(X: Any, y: Any, weights: Any, classes: Any) -> list[float]:
    """Top-1 and top-2 accuracy in per cent; a tie counts by its chance of being broken well."""
    from shortlist.metrics import topk_accuracy_curve

    curve = topk_accuracy_curve(y, scores(X, weights), max(KS), "expected", labels=classes)
    return (100 * curve).tolist()


def _nearest_classes(weights: Any) -> float:
    """The distance of the two most similar classes' weights, as a share of the longest weight."""
    columns = weights.T
    nearest = min(np.linalg.norm(a - b) for a, b in combinations(columns, 2))
    return float(nearest / max(np.linalg.norm(columns, axis=1).max(), np.finfo(float).tiny))


def _best_of_starts(
    k: int, X: Any, y: Any, C: float, first: Any, n_starts: int, random: np.random.Generator
) -> Any:
    """The lowest of several local minima of the truncated loss, without an intercept.

    One start is the model that came from softmax; the others have weights of the same length.
    """
    from scipy.optimize import minimize

    from shortlist import losses

    loss = losses.get("truncated_entropy", k=k)
    shape = first[:-1].shape
    codes = np.unique(y, return_inverse=True)[1]
    scale = C * len(codes)

    def objective(flat: Any) -> tuple[float, Any]:
        weights = flat.reshape(shape)
        values, gradient = loss.value_and_gradient(X @ weights, codes)
        slope = weights / scale + X.T @ gradient / len(codes)
        return 0.5 * float(flat @ flat) / scale + float(values.mean()), slope.reshape(-1)

    length = max(float(np.linalg.norm(first)), 1.0)
    starts = [first[:-1].reshape(-1)]
    for _ in range(n_starts - 1):
        direction = random.normal(size=starts[0].size)
        starts.append(length * direction / np.linalg.norm(direction))
    found = [minimize(objective, start, jac=True, method="L-BFGS-B") for start in starts]
    best = min(found, key=lambda result: float(result.fun))
    return np.vstack([best.x.reshape(shape), np.zeros((1, shape[1]))])
