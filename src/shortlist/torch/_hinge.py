"""Top-k hinge losses (alpha, beta), plain and smooth, over rows of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ._entropy import Variant
from ._projection import (
    Projection,
    all_at_least,
    beta_pivot,
    closed_form_fits,
    project_alpha,
    project_beta,
)
from ._row_loss import Evaluated, has_values, spread
from ._selection import largest, wrong_scores


@dataclass(frozen=True)
class TopKHinge:
    """alpha: max(0, mean of the k largest 1 + u_j); beta: mean of the k largest max(0, 1 + u_j).

    The gradient is a subgradient at kinks: margins of exactly zero get no weight.
    """

    k: int
    variant: Variant

    def evaluate(self, scores: Tensor, target: Tensor) -> Evaluated:
        label = target.unsqueeze(1)
        top, index = largest(wrong_scores(scores, target), self.k)
        margins = 1 + (top - scores.gather(1, label))
        if self.variant == "alpha":
            mean = margins.mean(1, keepdim=True)
            value = mean.clamp(min=0)
            x = (mean > 0).to(scores.dtype).expand_as(margins) / self.k
        else:
            value = margins.clamp(min=0).mean(1, keepdim=True)
            x = (margins > 0).to(scores.dtype) / self.k
        entries = torch.cat([x, -x.sum(1, keepdim=True)], dim=1)
        return Evaluated(value.squeeze(1), entries, torch.cat([index, label], dim=1))

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        return torch.zeros_like(direction)


@dataclass(frozen=True)
class SmoothTopKHinge:
    """max <1 + u, x> - gamma/2 |x|^2 over the alpha or the beta set, gamma > 0."""

    k: int
    variant: Variant
    gamma: float

    def evaluate(self, scores: Tensor, target: Tensor) -> Evaluated:
        alpha = self.variant == "alpha"
        if not has_values(scores):
            return Evaluated(*_smooth_hinge_op(scores, target, self.k, self.gamma, alpha))
        return _smooth_hinge(scores, target, self.k, self.gamma, alpha)

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        label = target.unsqueeze(1)
        x = gradient.scatter(1, label, 0.0)
        mass = -gradient.gather(1, label)
        change = direction - direction.gather(1, label)
        k = self.k
        eps = torch.finfo(x.dtype).eps
        if self.variant == "alpha":
            # Entries at the cap are equal to the last bit; the cap itself is only known from a sum.
            peak = x.amax(1, keepdim=True)
            capped = (x == peak) & (peak >= mass / k * (1 - math.sqrt(eps)))
        else:
            capped = x >= (1 - 4 * eps) / k
        inside = (x > 0) & ~capped
        n_inside = inside.sum(1, keepdim=True)
        inside_sum = torch.where(inside, change, 0).sum(1, keepdim=True)
        binds = mass == 1
        # d tau and d cap, by differentiating the equations that define tau and cap.
        tau = torch.where(binds, inside_sum / n_inside.clamp(min=1), 0)
        moved = change - tau
        result = torch.where(inside, moved, 0)
        if self.variant == "alpha":
            capped &= (x > 0) & ~binds
            n_capped = capped.sum(1, keepdim=True)
            capped_sum = torch.where(capped, change, 0).sum(1, keepdim=True)
            free = k - n_capped
            scale = (free * free + n_inside * n_capped).clamp(min=1)
            d_cap = (free * inside_sum + n_inside * capped_sum) / scale
            d_cap = torch.where(free == 0, capped_sum / k, d_cap)
            d_tau = (n_capped * d_cap - capped_sum) / free.clamp(min=1)
            result = torch.where(
                binds, result, torch.where(inside, change - d_tau, torch.where(capped, d_cap, 0))
            )
        result = result / self.gamma
        return result.scatter(1, label, -result.sum(1, keepdim=True))


class _Solved(NamedTuple):
    """Value (n,), minus the label's entry of the gradient (n,), and the gradient's others.

    Those are ``x`` (w, n), by rank, at ``columns`` (n, w); or ``x`` (n, m), if that is None.
    """

    value: Tensor
    mass: Tensor
    x: Tensor
    columns: Tensor | None


def _smooth_hinge(scores: Tensor, target: Tensor, k: int, gamma: float, alpha: bool) -> Evaluated:
    """Return the value and the gradient of the smooth hinge of each row."""
    label = target.unsqueeze(1)
    n_others = scores.shape[1] - 1
    # Wide enough for nearly every row: one entry more costs less than one row left unsolved.
    width = min(max(12, k + 8), n_others)
    others = wrong_scores(scores, target)
    found = _from_largest(others, scores.gather(1, label).squeeze(1), width, k, gamma, alpha)
    at_label = found.mass.neg_().unsqueeze(1)
    if found.columns is None:
        return Evaluated(found.value, found.x.scatter_(1, label, at_label))
    columns = torch.cat([found.columns, label], dim=1)
    return Evaluated(found.value, torch.cat([found.x.t(), at_label], dim=1), columns)


def _from_largest(
    others: Tensor, label_score: Tensor, width: int, k: int, gamma: float, alpha: bool
) -> _Solved:
    """Solve for each row from its ``width`` largest entries; overwrites ``others``.

    That is exact where no entry left out exceeds the projection's cut. Rows where one may are asked
    for more entries if they are few, and for all of them otherwise: near-uniform scores, as at the
    start of training, give nearly every class a share.
    """
    n_rows, n_others = others.shape[0], others.shape[1] - 1
    values, columns = largest(others, width)
    by_rank = values.t().contiguous()
    pivot = by_rank[k - 1]
    if not alpha:
        pivot = beta_pivot(pivot, label_score)
    base = (pivot - label_score).add_(1)
    top = by_rank - pivot
    project = project_alpha if alpha else project_beta
    if not closed_form_fits(k, width):
        entries = others.sub_(pivot.unsqueeze(1))
        return _fill(project(top, entries, base, k, gamma), entries, None, gamma)

    found = project(top, None, base, k, gamma)
    if width == n_others or all_at_least(found.cut - top[-1], 0.0):
        return _fill(found, top, columns, gamma)

    unsolved = (found.cut < top[-1]).nonzero().squeeze(1)
    wider = min(8 * width, n_others)
    if len(unsolved) == n_rows:
        entries = others.sub_(pivot.unsqueeze(1))
        return _fill(project(top, entries, base, k, gamma), entries, None, gamma)
    if 4 * len(unsolved) <= n_rows and closed_form_fits(k, wider):
        exact = _from_largest(others[unsolved], label_score[unsolved], wider, k, gamma, alpha)
    else:
        entries = others[unsolved].sub_(pivot[unsolved].unsqueeze(1))
        wide = project(top[:, unsolved], entries, base[unsolved], k, gamma)
        exact = _fill(wide, entries, None, gamma)
    solved = _whole(_fill(found, top, columns, gamma), others.shape[1])
    exact = _whole(exact, others.shape[1])
    solved.value.index_copy_(0, unsolved, exact.value)
    solved.mass.index_copy_(0, unsolved, exact.mass)
    solved.x.index_copy_(0, unsolved, exact.x)
    return solved


def _fill(found: Projection, entries: Tensor, columns: Tensor | None, gamma: float) -> _Solved:
    """Turn a projection's scalars into its entries, in place; they are by rank if in columns."""
    classes = 1 if columns is None else 0
    x = entries.sub_(found.cut.unsqueeze(classes))
    if isinstance(found.cap, Tensor):
        x = x.clamp_(min=0).clamp_(max=found.cap.unsqueeze(classes))
    else:
        x = x.clamp_(0, found.cap)
    if gamma != 1:
        x.div_(gamma)
    # All entries: one pass without memory for squares. Few, by rank: two small steps.
    squares = x.norm(dim=1).square_() if columns is None else (x * x).sum(0)
    value = found.offset + squares.mul_(gamma / 2)
    if found.slack is None:
        return _Solved(value, torch.ones_like(value), x, columns)
    # Where the sum is slack its rounded value must not read as 1: curvature looks at it.
    total = x.sum(classes).clamp_(max=1 - torch.finfo(x.dtype).eps)
    return _Solved(value, torch.where(found.slack, total, 1.0), x, columns)


def _whole(found: _Solved, n_classes: int) -> _Solved:
    """Return the same with all entries of the rows."""
    if found.columns is None:
        return found
    return found._replace(x=spread(found.x.t(), found.columns, n_classes), columns=None)


# It asks which rows are left to solve and waits for the answer, which a CUDA graph cannot do.
# Older versions of torch have no word for this.
_tags = {"tags": torch.Tag.cudagraph_unsafe} if hasattr(torch.Tag, "cudagraph_unsafe") else {}


# torch 2.4 cannot read a schema from annotations that are text.
_SCHEMA = "(Tensor scores, Tensor target, int k, float gamma, bool alpha) -> (Tensor, Tensor)"


@torch.library.custom_op("shortlist::smooth_topk_hinge", mutates_args=(), schema=_SCHEMA, **_tags)
def _smooth_hinge_op(
    scores: Tensor, target: Tensor, k: int, gamma: float, alpha: bool
) -> tuple[Tensor, Tensor]:
    """Hide the data-dependent steps where there is no data: from torch.compile, on "meta"."""
    found = _smooth_hinge(scores, target, k, gamma, alpha)
    return found.value, spread(found.entries, found.columns, scores.shape[1])


@_smooth_hinge_op.register_fake
def _(scores: Tensor, target: Tensor, k: int, gamma: float, alpha: bool) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape[0]), torch.empty_like(scores)
