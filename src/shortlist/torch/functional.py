"""The top-k losses as functions, with the conventions of ``torch.nn.functional.cross_entropy``.

``input`` holds scores (logits) of shape (C,), (N, C) or (N, C, d1, ...), ``target`` class indices
of shape (), (N,) or (N, d1, ...). ``weight`` scales the loss of an example by its label's entry,
``ignore_index`` marks examples that do not count, and ``reduction="mean"`` divides by the sum of
the weights of those that do. Half precision is computed in float32.

Throughout u_j = f_j - f_y are the other classes' scores relative to the label's, j != y.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from .._parameters import VARIANTS, check_k
from ._entropy import TopKEntropy, TruncatedTopKEntropy
from ._hinge import SmoothTopKHinge, TopKHinge
from ._ova import OVAHinge, OVALogistic
from ._row_loss import RowLoss, row_losses, values_are_free
from ._validation import (
    REDUCTIONS,
    all_labels,
    check_choice,
    check_k_fits,
    check_smoothing,
    check_tensors,
    class_count,
)

__all__ = [
    "ova_hinge_loss",
    "ova_logistic_loss",
    "topk_entropy_loss",
    "topk_hinge_loss",
    "truncated_topk_entropy_loss",
]

Variant = Literal["alpha", "beta"]
Reduction = Literal["none", "mean", "sum"]


def topk_hinge_loss(
    input: Tensor,
    target: Tensor,
    k: int = 1,
    smoothing: float = 1.0,
    variant: Variant = "alpha",
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute max <1 + u, x> - smoothing/2 |x|^2 over x in the top-k simplex.

    Without smoothing this is, for ``variant="alpha"``, max(0, mean of the k largest 1 + u_j) and,
    for ``"beta"``, the mean of the k largest max(0, 1 + u_j).
    """
    check_choice("variant", variant, VARIANTS)
    k, smoothing = check_k(k), check_smoothing(smoothing)
    loss: RowLoss
    if smoothing > 0:
        loss = SmoothTopKHinge(k, variant, smoothing)
    else:
        loss = TopKHinge(k, variant)
    return _reduced(loss, k, input, target, weight, ignore_index, reduction)


def topk_entropy_loss(
    input: Tensor,
    target: Tensor,
    k: int = 1,
    variant: Variant = "alpha",
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute max <u, x> - sum x log x - (1 - s) log(1 - s), s = <1, x>, over the top-k simplex.

    The set is 0 <= x_j <= s/k for ``variant="alpha"``, 0 <= x_j <= 1/k for ``"beta"``, and s <= 1.
    For k = 1 this is cross-entropy.
    """
    check_choice("variant", variant, VARIANTS)
    k = check_k(k)
    loss = TopKEntropy(k, variant) if k > 1 else None
    return _reduced(loss, k, input, target, weight, ignore_index, reduction)


def truncated_topk_entropy_loss(
    input: Tensor,
    target: Tensor,
    k: int = 1,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute log(1 + sum of exp u_j over the m - k smallest u_j); not convex for k > 1.

    The k - 1 best wrong labels cost nothing, so the loss is small whenever the label is among the
    k best. For k = 1 this is cross-entropy.
    """
    k = check_k(k)
    loss = TruncatedTopKEntropy(k) if k > 1 else None
    return _reduced(loss, k, input, target, weight, ignore_index, reduction)


def ova_hinge_loss(
    input: Tensor,
    target: Tensor,
    smoothing: float = 1.0,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute sum_j max(0, 1 - z_j), z_j = f_j for the label and -f_j otherwise.

    With smoothing the hinge is quadratic for 1 - smoothing <= z_j <= 1.
    """
    loss = OVAHinge(check_smoothing(smoothing))
    return _reduced(loss, None, input, target, weight, ignore_index, reduction)


def ova_logistic_loss(
    input: Tensor,
    target: Tensor,
    *,
    weight: Tensor | None = None,
    ignore_index: int = -100,
    reduction: Reduction = "mean",
) -> Tensor:
    """Compute sum_j log(1 + exp(-z_j)), z_j = f_j for the label and -f_j otherwise."""
    return _reduced(OVALogistic(), None, input, target, weight, ignore_index, reduction)


def _reduced(
    loss: RowLoss | None,
    k: int | None,
    input: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: Reduction,
) -> Tensor:
    """Evaluate a row loss (None: cross-entropy) in cross_entropy's layout and reduction."""
    check_choice("reduction", reduction, REDUCTIONS)
    check_tensors(input, target, weight)
    if k is not None:
        check_k_fits(k, class_count(input))
    target = target.long()

    scores = input
    if input.dtype in (torch.float16, torch.bfloat16):
        scores = input.float()
    if weight is not None:
        weight = weight.to(scores.dtype)
    if loss is None:
        result = nn.functional.cross_entropy(
            scores, target, weight, ignore_index=ignore_index, reduction=reduction
        )
    else:
        result = _reduce(loss, scores, target, weight, ignore_index, reduction)
    # cross_entropy answers in the input's dtype, but in float32 under autocast.
    if result.dtype != input.dtype and not _autocast(input.device.type):
        result = result.to(input.dtype)
    return result


def _autocast(device_type: str) -> bool:
    return torch.amp.is_autocast_available(device_type) and torch.is_autocast_enabled(device_type)


def _reduce(
    loss: RowLoss,
    scores: Tensor,
    target: Tensor,
    weight: Tensor | None,
    ignore_index: int,
    reduction: Reduction,
) -> Tensor:
    if scores.ndim == 1:
        scores = scores.unsqueeze(0)
    elif scores.ndim > 2:
        scores = scores.movedim(1, -1).flatten(0, -2)
    labels = target.reshape(-1)
    ignored = None
    if not (values_are_free(labels) and all_labels(labels, scores.shape[1], ignore_index)):
        ignored = labels == ignore_index
    losses = row_losses(scores, labels, ignored, loss)

    if weight is not None:
        counted = labels if ignored is None else labels.masked_fill(ignored, 0)
        shares = weight[counted]
        if ignored is not None:
            shares = shares.masked_fill(ignored, 0)
        losses = losses * shares
    if reduction == "none":
        return losses.reshape(target.shape)
    if reduction == "sum":
        return losses.sum()
    if weight is not None:
        return losses.sum() / shares.sum()
    if ignored is not None:
        return losses.sum() / (~ignored).sum()
    return losses.mean()
