"""The one autograd function behind every loss of :mod:`shortlist.torch`.

A loss here maps a row of scores and a label to a number, and knows three things about it: its
value, its gradient ``v`` (for the convex losses the maximiser of ``<f, v> - L*(v)``, so the value
and the gradient come from one solve), and how ``v`` moves when the scores move. Autograd needs
nothing else: the backward pass returns the stored ``v``, and because ``v`` is an output of the
same node, differentiating the backward pass once more lands in the third function.
"""

from __future__ import annotations

from typing import Any, Protocol

import torch
from torch import Tensor


class RowLoss(Protocol):
    """A loss of one row of scores, evaluated for many rows at once."""

    def evaluate(self, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the loss of each row, shape (n,), and its gradient, shape (n, m)."""
        ...

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        """Return the Hessian of each row's loss times the row's direction, shape (n, m).

        The Hessian is taken where ``gradient`` was, and must be a function of it: kinks of a
        piecewise loss count as flat on the side that ``gradient`` shows.
        """
        ...


def row_losses(scores: Tensor, target: Tensor, loss: RowLoss, ignore_index: int) -> Tensor:
    """Compute the loss of every row of ``scores`` (n, m) for labels ``target`` (n,).

    Rows labelled ``ignore_index`` get the value and the gradient of a row of zeros, whatever they
    hold: the caller must give them no weight.
    """
    value, _ = _RowLossFunction.apply(scores, target, loss, ignore_index)
    return value


def _values_are_free(tensor: Tensor) -> bool:
    """Tell whether Python may look at the values: no device to wait for, no graph to break."""
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _known_labels(target: Tensor, ignore_index: int) -> Tensor:
    return target.masked_fill(target == ignore_index, 0)


def _check_labels(target: Tensor, n_classes: int) -> None:
    # Where the values are not free to look at, the gather of the label's score asserts on the
    # device, as it does for cross_entropy.
    if target.numel() == 0 or not _values_are_free(target):
        return
    low, high = (int(bound) for bound in torch.aminmax(target))
    if low < 0 or high >= n_classes:
        raise ValueError(
            f"target holds the label {low if low < 0 else high}; labels must lie in "
            f"[0, {n_classes - 1}] (the input has {n_classes} classes) or equal ignore_index"
        )


class _RowLossFunction(torch.autograd.Function):
    """Value and gradient of a row loss; see the module's docstring."""

    @staticmethod
    def forward(
        scores: Tensor, target: Tensor, loss: RowLoss, ignore_index: int
    ) -> tuple[Tensor, Tensor]:
        ignored = target == ignore_index
        if not _values_are_free(ignored) or bool(ignored.any()):
            # Ignored rows may hold anything, NaN too, and zero weight does not undo a NaN.
            target = target.masked_fill(ignored, 0)
            scores = scores.masked_fill(ignored.unsqueeze(1), 0)
        _check_labels(target, scores.shape[1])
        return loss.evaluate(scores, target)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
        _, target, ctx.loss, ctx.ignore_index = inputs
        _, gradient = output
        ctx.save_for_backward(gradient, target)
        ctx.save_for_forward(gradient, target)
        # Without this, autograd would hand the backward pass zeros for the unused gradient output,
        # and the curvature would be computed for nothing at every step.
        ctx.set_materialize_grads(False)

    @staticmethod
    def backward(
        ctx: Any, grad_value: Tensor | None, grad_gradient: Tensor | None
    ) -> tuple[Tensor | None, None, None, None]:
        gradient, target = ctx.saved_tensors
        total = None
        if grad_value is not None:
            total = grad_value.unsqueeze(1) * gradient
        if grad_gradient is not None:
            # The Hessian is symmetric: its transpose times a vector is the curvature itself.
            labels = _known_labels(target, ctx.ignore_index)
            bend = ctx.loss.curvature(gradient, labels, grad_gradient)
            total = bend if total is None else total + bend
        return total, None, None, None

    @staticmethod
    def jvp(ctx: Any, tangent: Tensor | None, *_: None) -> tuple[Tensor | None, Tensor | None]:
        if tangent is None:
            return None, None
        gradient, target = ctx.saved_tensors
        labels = _known_labels(target, ctx.ignore_index)
        return (gradient * tangent).sum(1), ctx.loss.curvature(gradient, labels, tangent)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        scores: Tensor,
        target: Tensor,
        loss: RowLoss,
        ignore_index: int,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        # Rows are independent: a vmapped batch of row batches is one longer batch of rows.
        def stacked(tensor: Tensor, dim: int | None) -> Tensor:
            if dim is None:
                return tensor.unsqueeze(0).expand(info.batch_size, *tensor.shape)
            return tensor.movedim(dim, 0)

        scores = stacked(scores, in_dims[0])
        target = stacked(target, in_dims[1])
        value, gradient = _RowLossFunction.apply(
            scores.flatten(0, 1), target.flatten(), loss, ignore_index
        )
        rows = scores.shape[:2]
        return (value.unflatten(0, rows), gradient.unflatten(0, rows)), (0, 0)
