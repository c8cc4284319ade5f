"""What an exported model answers with, and from which fitted classifier."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from shortlist._parameters import check_k
from shortlist.estimators import KernelTopKClassifier, TopKClassifier, TopKClassifierCV

ESTIMATORS = (TopKClassifier, TopKClassifierCV, KernelTopKClassifier)


class Answer(NamedTuple):
    """An output: ``width`` values of type ``dtype`` for each example, or one (None)."""

    name: str
    dtype: np.dtype
    width: int | None


def classifier_for(model: Any, k: int | None) -> tuple[Any, int]:
    """Return the classifier that answers for shortlists of k, and k, by default the model's own.

    Of a search that is the one chosen for k, or for the nearest k it has chosen one for.
    """
    if not isinstance(model, ESTIMATORS):
        known = ", ".join(kind.__name__ for kind in ESTIMATORS)
        raise TypeError(
            f"a {type(model).__name__} cannot be exported, only {known}; for a Pipeline that ends "
            "in one of them, import shortlist.onnx and call skl2onnx.to_onnx"
        )
    check_is_fitted(model)
    k = check_k(model.k if k is None else k, len(model.classes_), "the number of classes")
    if isinstance(model, TopKClassifierCV):
        nearest = min(model.estimators_, key=lambda chosen: (abs(chosen - k), chosen))
        model = model.estimators_[nearest]
    return model, k


def answers_of(model: Any, k: int, dtype: np.dtype) -> list[Answer]:
    """Return the outputs of a classifier, in order; scores are of type ``dtype``."""
    labels = label_values(model.classes_).dtype
    n_classes = len(model.classes_)
    label = Answer("label", labels, None)
    if model.multilabel_:
        label = Answer("label", np.dtype(np.int64), n_classes)
    answers = [label, Answer("scores", dtype, n_classes)]
    if hasattr(model, "predict_proba"):
        answers.append(Answer("probabilities", dtype, n_classes))
    return [*answers, Answer("topk_labels", labels, k), Answer("topk_scores", dtype, k)]


def label_values(classes: NDArray) -> NDArray:
    """Return the labels in one of the types that ONNX has for them."""
    kind = classes.dtype.kind
    if kind in "bf":
        return classes.astype(bool if kind == "b" else np.float64)
    if kind in "iu" and int(classes.max()) <= np.iinfo(np.int64).max:
        return classes.astype(np.int64)
    if kind in "UO" and all(isinstance(label, str) for label in classes):
        return classes.astype(object)
    raise ValueError(
        f"labels of type {classes.dtype} have no place in ONNX: use text, or numbers of 64 bits"
    )
