"""The one autograd function behind every loss of :mod:`shortlist.torch`.

A loss here maps a row of scores and a label to a number, and knows three things about it: its
value, its gradient ``v`` (for the convex losses the maximiser of ``<f, v> - L*(v)``, so the value
and the gradient come from one solve), and how ``v`` moves when the scores move. Autograd needs
nothing else: the backward pass returns the stored ``v``, and because ``v`` is an output of the
same node, differentiating the backward pass once more lands in the third function. Where only a few
classes of a row have a share in ``v``, only those entries are stored between the two passes.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch._subclasses import FakeTensor

# torch.func offers no public way to ask this; without an answer, assume that it may be at work.
_transforms_active = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


class Evaluated(NamedTuple):
    """The loss of each row, shape (n,), and its gradient.

    ``entries`` (n, m) is the gradient if ``columns`` is None. Otherwise ``entries`` (n, w) holds
    what is not zero, at the ``columns`` (n, w), of which no two in a row are the same.
    """

    value: Tensor
    entries: Tensor
    columns: Tensor | None = None


class RowLoss(Protocol):
    """A loss of one row of scores, evaluated for many rows at once."""

    def evaluate(self, scores: Tensor, target: Tensor) -> Evaluated:
        """Return the loss of each row and its gradient."""
        ...

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        """Return the Hessian of each row's loss times the row's direction, shape (n, m).

        The Hessian is taken where ``gradient`` was, and must be a function of it: kinks of a
        piecewise loss count as flat on the side that ``gradient`` shows.
        """
        ...


def row_losses(scores: Tensor, target: Tensor, ignored: Tensor | None, loss: RowLoss) -> Tensor:
    """Compute the loss of every row of ``scores`` (n, m) for labels ``target`` (n,).

    Rows that ``ignored`` (n,) marks cost nothing and get no gradient, whatever they hold.
    """
    function: type[torch.autograd.Function]
    if torch.compiler.is_compiling():
        function = _CompiledRowLoss
    elif _transforms_active():
        function = _TransformedRowLoss
    else:
        function = _EagerRowLoss
    value, _ = function.apply(scores, target, ignored, loss)
    return value


def has_values(tensor: Tensor) -> bool:
    """Tell whether there are numbers to compute with, or only a shape and a type."""
    return not (torch.compiler.is_compiling() or tensor.is_meta or isinstance(tensor, FakeTensor))


def values_are_free(tensor: Tensor) -> bool:
    """Tell whether Python may look at the values: nothing to wait for, to trace or to unwrap."""
    return tensor.device.type == "cpu" and has_values(tensor) and not _transforms_active()


def spread(
    entries: Tensor, columns: Tensor | None, n_classes: int, elsewhere: Tensor | None = None
) -> Tensor:
    """Return rows of ``n_classes`` entries with ``entries`` at ``columns``.

    The others are zero, or those of ``elsewhere`` (n, 1).
    """
    if columns is None:
        return entries
    if elsewhere is None:
        rows = entries.new_zeros(entries.shape[0], n_classes)
    else:
        rows = elsewhere.repeat(1, n_classes)
    return rows.scatter_(1, columns, entries)


def _lost(value: Tensor) -> Tensor | None:
    """Return NaN for rows whose loss is NaN and zero for others, shape (n, 1); None: all zero.

    A NaN score must show in the whole gradient of its row, as in cross_entropy's. A loss shows it
    in the value at least: its gradient may come from comparisons, or hold a few entries only.
    """
    if values_are_free(value) and not math.isnan(float(value.detach().sum())):
        return None
    return torch.where(value.isnan(), value, 0).unsqueeze(1)


def _evaluate(scores: Tensor, target: Tensor, ignored: Tensor | None, loss: RowLoss) -> Evaluated:
    if ignored is None:
        return loss.evaluate(scores, target)
    # Ignored rows may hold anything, NaN too, which zero weight would not undo.
    rows = ignored.unsqueeze(1)
    found = loss.evaluate(scores.masked_fill(rows, 0), target.masked_fill(ignored, 0))
    return Evaluated(
        found.value.masked_fill(ignored, 0), found.entries.masked_fill(rows, 0), found.columns
    )


def _forward(
    scores: Tensor, target: Tensor, ignored: Tensor | None, loss: RowLoss
) -> tuple[Tensor, Tensor]:
    found = _evaluate(scores, target, ignored, loss)
    return found.value, spread(found.entries, found.columns, scores.shape[1])


def _save(
    ctx: Any,
    inputs: tuple[Any, ...],
    output: tuple[Tensor, Tensor],
    columns: Tensor | None = None,
) -> None:
    scores, target, ignored, ctx.loss = inputs
    ctx.n_classes = scores.shape[1]
    value, entries = output
    ctx.save_for_backward(value, entries, target, ignored, columns)
    ctx.save_for_forward(value, entries, target, ignored, columns)
    # Without this, autograd would hand the backward pass zeros for the unused gradient output, and
    # the curvature would be computed for nothing at every step.
    ctx.set_materialize_grads(False)


def _backward(
    ctx: Any, grad_value: Tensor | None, grad_entries: Tensor | None
) -> tuple[Tensor | None, None, None, None]:
    value, entries, _, _, columns = ctx.saved_tensors
    total = None
    if grad_value is not None:
        lost = _lost(value)
        factor = grad_value.unsqueeze(1)
        if lost is not None:
            factor = factor + lost
        total = spread(factor * entries, columns, ctx.n_classes, lost)
    if grad_entries is not None:
        # The Hessian is symmetric: its transpose times a vector is the curvature itself.
        bend = _curvature(ctx, spread(grad_entries, columns, ctx.n_classes))
        total = bend if total is None else total + bend
    return total, None, None, None


def _jvp(ctx: Any, tangent: Tensor, *_: None) -> tuple[Tensor, Tensor]:
    value, entries, _, _, columns = ctx.saved_tensors
    bend = _curvature(ctx, tangent)
    if columns is not None:
        tangent, bend = tangent.gather(1, columns), bend.gather(1, columns)
    change = (entries * tangent).sum(1)
    lost = _lost(value)
    return change if lost is None else change + lost.squeeze(1), bend


def _transformed_jvp(ctx: Any, *tangents: Any) -> tuple[Tensor, Tensor]:
    # There torch loses the outer derivative of every autograd function, and says nothing.
    if _forward_mode_levels() > 1:
        raise NotImplementedError(
            "forward-mode derivatives of forward-mode derivatives (jacfwd of jacfwd, jvp of jvp) "
            "would be wrong: use torch.func.hessian, or take one of the two in reverse mode"
        )
    return _jvp(ctx, *tangents)


def _forward_mode_levels() -> int:
    """Return how many torch.func.jvp are at work, one inside the other, so far as can be known."""
    functorch = torch._C._functorch
    stack: list[Any] = getattr(functorch, "get_interpreter_stack", list)() or []
    return sum(level.key() == functorch.TransformType.Jvp for level in stack)


def _curvature(ctx: Any, direction: Tensor) -> Tensor:
    value, entries, target, ignored, columns = ctx.saved_tensors
    gradient = spread(entries, columns, ctx.n_classes)
    labels = target if ignored is None else target.masked_fill(ignored, 0)
    bend = ctx.loss.curvature(gradient, labels, direction)
    if ignored is not None:
        bend = bend.masked_fill(ignored.unsqueeze(1), 0)
    lost = _lost(value)
    return bend if lost is None else bend + lost


class _EagerRowLoss(torch.autograd.Function):
    """The plain form, which keeps short gradients short; those below cost a good deal more."""

    @staticmethod
    def forward(ctx: Any, *inputs: Any) -> tuple[Tensor, Tensor]:
        found = _evaluate(*inputs)
        output = found.value, found.entries
        _save(ctx, inputs, output, found.columns)
        return output

    backward = staticmethod(_backward)
    jvp = staticmethod(_jvp)


class _CompiledRowLoss(torch.autograd.Function):
    """The form that torch.compile can trace, which must not define jvp."""

    forward = staticmethod(_forward)
    setup_context = staticmethod(_save)
    backward = staticmethod(_backward)


class _TransformedRowLoss(torch.autograd.Function):
    """The form for torch.func: grad, vmap, jvp and what is made of them."""

    forward = staticmethod(_forward)
    setup_context = staticmethod(_save)
    backward = staticmethod(_backward)
    jvp = staticmethod(_transformed_jvp)

    @staticmethod
    def vmap(
        info: Any,
        in_dims: tuple[int | None, ...],
        scores: Tensor,
        target: Tensor,
        ignored: Tensor | None,
        loss: RowLoss,
    ) -> tuple[tuple[Tensor, Tensor], tuple[int, int]]:
        # Rows are independent: a vmapped batch of row batches is one longer batch of rows.
        def stacked(tensor: Tensor, dim: int | None) -> Tensor:
            if dim is None:
                return tensor.unsqueeze(0).expand(info.batch_size, *tensor.shape)
            return tensor.movedim(dim, 0)

        scores = stacked(scores, in_dims[0])
        target = stacked(target, in_dims[1]).flatten()
        if ignored is not None:
            ignored = stacked(ignored, in_dims[2]).flatten()
        value, gradient = _TransformedRowLoss.apply(scores.flatten(0, 1), target, ignored, loss)
        rows = scores.shape[:2]
        return (value.unflatten(0, rows), gradient.unflatten(0, rows)), (0, 0)
