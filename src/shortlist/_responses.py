"""The scores or probabilities of all classes from a fitted classifier, chunk by chunk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from scipy.special import softmax
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from shortlist.metrics.checks import NO_COLUMN, check_scores, columns_of_labels

#: Entries of a chunk (rows times classes): 8 MiB as doubles.
CHUNK_ELEMENTS = 1 << 20

Kind = Literal["scores", "probabilities"]


@dataclass(frozen=True)
class Responses:
    """The responses of a fitted classifier, one column a class, as doubles.

    ``kind`` is "scores" (``decision_function``, or ``predict_proba`` of a model without one) or
    "probabilities" (``predict_proba``, or the softmax of the scores of a model without one).
    """

    model: Any
    classes: NDArray
    kind: Kind

    @classmethod
    def of(cls, model: Any, kind: Kind) -> Responses:
        """Check that the model is a fitted classifier of one label per example."""
        name = type(model).__name__
        if isinstance(model, type):
            raise TypeError(f"model must be a fitted classifier, got the class {model.__name__}")
        classes = getattr(model, "classes_", None)
        if classes is None and hasattr(model, "fit"):
            check_is_fitted(model)
        if classes is None or not (
            hasattr(model, "decision_function") or hasattr(model, "predict_proba")
        ):
            raise TypeError(
                f"model must be a fitted classifier with classes_ and a decision_function or "
                f"predict_proba; {name} is none"
            )
        if getattr(model, "multilabel_", False) or np.ndim(classes[0]) > 0:
            raise ValueError(f"this {name} was trained on several right labels; one is needed")
        return cls(model, np.asarray(classes), kind)

    @property
    def method(self) -> str:
        """The method of the model that is asked."""
        first, second = "decision_function", "predict_proba"
        if self.kind == "probabilities":
            first, second = second, first
        return first if hasattr(self.model, first) else second

    def chunks(self, X: Any) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Yield the responses to X for a chunk of rows at a time."""
        if sparse.issparse(X):
            X = X.tocsr()
        n_samples = _num_samples(X)
        step = max(1, CHUNK_ELEMENTS // len(self.classes))
        for start in range(0, n_samples, step):
            rows = slice(start, min(start + step, n_samples))
            yield rows, self._respond(_safe_indexing(X, rows) if step < n_samples else X)

    def columns(self, X: Any, y: ArrayLike) -> NDArray[np.intp]:
        """The column of each label in y; ValueError if the model does not know a label."""
        given, rows = _num_samples(y), _num_samples(X)
        if given != rows:
            raise ValueError(f"y has {given} labels but X has {rows} rows")
        columns = columns_of_labels(y, self.classes, rows, len(self.classes), name="y")
        unknown = columns == NO_COLUMN
        if unknown.any():
            strange = np.unique(np.asarray(y).ravel()[unknown]).tolist()
            shown = ", ".join(map(repr, strange[:5])) + (", ..." if len(strange) > 5 else "")
            raise ValueError(
                f"y has labels that the model was not trained on: {shown} "
                f"({np.count_nonzero(unknown)} of {rows} examples). No set can hold them"
            )
        return columns

    def _respond(self, X: Any) -> NDArray[np.float64]:
        name = f"{self.method} of {type(self.model).__name__}"
        given = np.asarray(getattr(self.model, self.method)(X))
        if given.ndim == 1:
            # A binary decision function is the second class's score less the first's.
            given = np.column_stack([-0.5 * given, 0.5 * given])
        values = check_scores(given).astype(np.float64)
        if values.shape[1] != len(self.classes):
            raise ValueError(
                f"{name} returns {values.shape[1]} columns for {len(self.classes)} classes"
            )
        if not np.isfinite(values).all():
            raise ValueError(f"{name} returns NaN or infinite values")
        if self.kind == "probabilities" and self.method == "decision_function":
            return softmax(values, axis=1)
        return values
