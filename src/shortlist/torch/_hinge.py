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
    closed_form_fits,
    project_alpha,
    project_beta,
)
from ._selection import largest


@dataclass(frozen=True)
class TopKHinge:
    """alpha: max(0, mean of the k largest 1 + u_j); beta: mean of the k largest max(0, 1 + u_j).

    The gradient is a subgradient at kinks: margins of exactly zero get no weight.
    """

    k: int
    variant: Variant

    def evaluate(self, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        label = target.unsqueeze(1)
        others = scores.scatter(1, label, -math.inf)
        top, index = largest(others, self.k)
        margins = 1 + (top - scores.gather(1, label))
        if self.variant == "alpha":
            mean = margins.mean(1, keepdim=True)
            value = mean.clamp(min=0)
            x = (mean > 0).to(scores.dtype).expand_as(margins) / self.k
        else:
            value = margins.clamp(min=0).mean(1, keepdim=True)
            x = (margins > 0).to(scores.dtype) / self.k
        gradient = torch.zeros_like(scores).scatter_(1, index, x)
        return value.squeeze(1), gradient.scatter_(1, label, -x.sum(1, keepdim=True))

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        return torch.zeros_like(direction)


@dataclass(frozen=True)
class SmoothTopKHinge:
    """max <1 + u, x> - gamma/2 |x|^2 over the alpha or the beta set, gamma > 0."""

    k: int
    variant: Variant
    gamma: float

    def evaluate(self, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        solve = _smooth_hinge_op if torch.compiler.is_compiling() else _smooth_hinge
        return solve(scores, target, self.k, self.gamma, self.variant == "alpha")

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        label = target.unsqueeze(1)
        x = gradient.scatter(1, label, 0.0)
        mass = -gradient.gather(1, label)
        change = direction - direction.gather(1, label)
        k = self.k
        cap = mass / k if self.variant == "alpha" else torch.full_like(mass, 1 / k)
        capped = x >= cap * (1 - 4 * torch.finfo(x.dtype).eps)
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
    """Gradient without the label's entry (n, m), value (n,), and minus the label's entry (n,)."""

    x: Tensor
    value: Tensor
    mass: Tensor


def _smooth_hinge(
    scores: Tensor, target: Tensor, k: int, gamma: float, alpha: bool
) -> tuple[Tensor, Tensor]:
    """Return the value and the gradient of the smooth hinge of each row."""
    label = target.unsqueeze(1)
    n_others = scores.shape[1] - 1
    # Wide enough for nearly every row: one entry more costs less than one row left unsolved.
    width = min(max(12, k + 9), n_others)
    others = scores.scatter(1, label, -math.inf)
    found = _from_largest(others, scores.gather(1, label).squeeze(1), width, k, gamma, alpha)
    return found.value, found.x.scatter_(1, label, found.mass.neg_().unsqueeze(1))


def _from_largest(
    others: Tensor, label_score: Tensor, width: int, k: int, gamma: float, alpha: bool
) -> _Solved:
    """Solve for each row from its ``width`` largest entries; overwrites ``others``.

    That is exact where no entry left out exceeds the projection's cut. Rows where one may are asked
    for more entries if they are few, and for all of them otherwise: near-uniform scores, as at the
    start of training, give nearly every class a share.
    """
    n_rows, n_others = others.shape[0], others.shape[1] - 1
    values, index = largest(others, width)
    by_rank = values.t().contiguous()
    pivot = by_rank[k - 1]
    base = (pivot - label_score).add_(1)
    top = by_rank - pivot
    project = project_alpha if alpha else project_beta
    if not closed_form_fits(k, width):
        entries = others.sub_(pivot.unsqueeze(1))
        return _fill(project(top, entries, base, k, gamma), entries, gamma, 1)

    found = project(top, None, base, k, gamma)
    if width == n_others or all_at_least(found.cut - top[-1], 0.0):
        return _spread(_fill(found, top, gamma, 0), others, index)

    unsolved = (found.cut < top[-1]).nonzero().squeeze(1)
    wider = min(8 * width, n_others)
    if len(unsolved) == n_rows:
        entries = others.sub_(pivot.unsqueeze(1))
        return _fill(project(top, entries, base, k, gamma), entries, gamma, 1)
    if 4 * len(unsolved) <= n_rows and closed_form_fits(k, wider):
        exact = _from_largest(others[unsolved], label_score[unsolved], wider, k, gamma, alpha)
    else:
        entries = others[unsolved].sub_(pivot[unsolved].unsqueeze(1))
        wide = project(top[:, unsolved], entries, base[unsolved], k, gamma)
        exact = _fill(wide, entries, gamma, 1)
    solved = _spread(_fill(found, top, gamma, 0), others, index)
    for old, new in zip(solved, exact, strict=True):
        old.index_copy_(0, unsolved, new)
    return solved


def _fill(found: Projection, entries: Tensor, gamma: float, dim: int) -> _Solved:
    """Turn a projection's scalars into its entries, in place; ``dim`` is that of the classes."""
    x = entries.sub_(found.cut.unsqueeze(dim))
    if isinstance(found.cap, Tensor):
        x = x.clamp_(min=0).clamp_(max=found.cap.unsqueeze(dim))
    else:
        x = x.clamp_(0, found.cap)
    if gamma != 1:
        x.div_(gamma)
    # Few entries, by rank: two small steps. All entries: one pass without memory for squares.
    squares = (x * x).sum(0) if dim == 0 else x.norm(dim=1).square_()
    value = found.offset + squares.mul_(gamma / 2)
    if found.slack is None:
        return _Solved(x, value, torch.ones_like(value))
    # Where the sum is slack its rounded value must not read as 1: curvature looks at it.
    total = x.sum(dim).clamp_(max=1 - torch.finfo(x.dtype).eps)
    return _Solved(x, value, torch.where(found.slack, total, 1.0))


def _spread(found: _Solved, rows: Tensor, index: Tensor) -> _Solved:
    """Put entries given by rank into their columns of ``rows``, which is overwritten."""
    # In place: fresh memory for a batch of scores costs more than the arithmetic.
    return found._replace(x=rows.zero_().scatter_(1, index, found.x.t()))


@torch.library.custom_op("shortlist::smooth_topk_hinge", mutates_args=())
def _smooth_hinge_op(
    scores: Tensor, target: Tensor, k: int, gamma: float, alpha: bool
) -> tuple[Tensor, Tensor]:
    """Hide the data-dependent steps from torch.compile, which needs one static graph."""
    return _smooth_hinge(scores, target, k, gamma, alpha)


@_smooth_hinge_op.register_fake
def _(scores: Tensor, target: Tensor, k: int, gamma: float, alpha: bool) -> tuple[Tensor, Tensor]:
    return scores.new_empty(scores.shape[0]), torch.empty_like(scores)
