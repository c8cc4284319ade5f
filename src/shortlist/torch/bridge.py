"""Linear probes: a fitted classifier as a network's head, and a head as a fitted classifier."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from shortlist.estimators import TopKClassifier, TopKClassifierCV

__all__ = ["from_linear", "to_linear"]


def to_linear(
    estimator: TopKClassifier | TopKClassifierCV,
    *,
    normalized_input: bool = False,
    dtype: torch.dtype | None = None,
    device: torch.device | str | None = None,
) -> nn.Linear:
    """Return a linear layer that computes a fitted classifier's scores.

    Output ``j`` belongs to ``estimator.classes_[j]``. The layer owns its weights: training it does
    not change the classifier. ``dtype`` and ``device`` default to the classifier's and the CPU. A
    search gives the layer of the model it chose for its own k.

    A linear layer does not normalise. For a classifier with ``normalize="l2"`` put
    ``torch.nn.functional.normalize`` in front of the layer and say so by ``normalized_input=True``.
    """
    if not hasattr(estimator, "coef_"):
        raise ValueError(
            f"to_linear needs a fitted linear classifier; this {type(estimator).__name__} has no "
            "coef_: call fit first"
        )
    normalize = getattr(estimator, "normalize", None)
    if normalize is not None and not normalized_input:
        raise ValueError(
            f"this classifier was fitted with normalize={normalize!r}, which a linear "
            "layer does not do: put torch.nn.functional.normalize in front of the layer and pass "
            "normalized_input=True"
        )
    coef, intercept = estimator._class_weights()
    weight = torch.tensor(coef, dtype=dtype, device=device)
    bias = torch.tensor(intercept, dtype=dtype, device=device)
    n_classes, n_features = weight.shape
    layer = nn.utils.skip_init(
        nn.Linear, n_features, n_classes, dtype=weight.dtype, device=weight.device
    )
    layer.weight = nn.Parameter(weight)
    layer.bias = nn.Parameter(bias)
    return layer


def from_linear(
    linear: nn.Linear, classes: Sequence[Any] | None = None, **params: Any
) -> TopKClassifier:
    """Return a fitted classifier with a linear layer's weights.

    Parameters
    ----------
    linear : nn.Linear
        One output for each class. Its weights are copied, half precision as float32. Of two
        outputs their difference is kept, which decides.
    classes : sequence, optional
        The label of each output, without repetition; 0, 1, ... by default.
    **params
        Parameters of :class:`shortlist.TopKClassifier`, such as ``loss`` and ``k``: what the layer
        was trained with, so far as ``score``, ``predict_topk`` and ``predict_proba`` need to know.
    """
    import numpy as np

    from shortlist.estimators import TopKClassifier
    from shortlist.estimators.inputs import widened
    from shortlist.solvers import Result

    if not isinstance(linear, nn.Linear):
        raise TypeError(f"linear must be a torch.nn.Linear, got {type(linear).__name__}")
    n_classes, n_features = linear.out_features, linear.in_features
    if n_classes < 2:
        raise ValueError(f"linear must have one output for each class, got {n_classes} in all")
    labels = np.arange(n_classes) if classes is None else np.asarray(classes)
    if labels.shape != (n_classes,):
        raise ValueError(
            f"classes must hold one label for each of the {n_classes} outputs, "
            f"got shape {labels.shape}"
        )
    if len(np.unique(labels)) != n_classes:
        raise ValueError("classes must not hold a label twice")

    weight = widened(linear.weight).copy()
    bias = linear.bias
    bias = np.zeros(n_classes, weight.dtype) if bias is None else widened(bias).copy()
    model = TopKClassifier(**{"fit_intercept": linear.bias is not None, **params})
    model.classes_ = labels
    model.__dict__.update(model._from_class_weights(weight, bias))
    model.n_features_in_ = n_features
    model.n_iter_ = 0
    # The training of the layer is unknown, so the result has no certificate.
    model.result_ = Result(math.nan, math.nan, 0.0, 0.0, status="imported", solver="torch")
    return model
