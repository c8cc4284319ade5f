"""Projections onto the two top-k simplices, for rows of scores: which entries, cut where.

The projection of the margins a_j = 1 + f_j - f_y (j != y), divided by gamma, onto the alpha or the
beta set is x_j = clip(a_j - tau, 0, cap) / gamma: two scalars a row. Few entries exceed tau in
practice, so the scalars come in closed form from the few largest entries. That answer is exact for
a row as soon as no other entry exceeds its tau; the other rows (near-uniform scores, as at the
start of training) take Newton steps over all their entries.

Entries are measured from the k-th largest (the pivot): near it lie tau and every entry that is
neither zero nor at the cap, so neither large scores nor a small gamma cost precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

# Newton steps guarded by bisection end after a handful of passes; the bound is for NaN scores.
_MAX_PASSES = 100


class Thresholds(NamedTuple):
    """Each of shape (n, 1): with q_j = clip(f_j - pivot - cut, 0, cap), the projection is q / gamma.

    The smooth hinge is ``offset + |q|^2 / (2 gamma)``; ``binds`` tells where <1, x> = 1.
    """

    pivot: Tensor
    cut: Tensor
    cap: Tensor
    offset: Tensor
    binds: Tensor


def hinge_thresholds(
    others: Tensor, label_score: Tensor, k: int, gamma: float, alpha: bool
) -> Thresholds:
    """Find the thresholds of each row's projection; no gradient flows through them.

    ``others`` (n, m) holds the scores with minus infinity at the label, ``label_score`` (n, 1) the
    label's score.
    """
    if torch.compiler.is_compiling():
        return Thresholds(*_thresholds_op(others, label_score, k, gamma, alpha))
    return _solve(others, label_score, k, gamma, alpha)


def _solve(others: Tensor, label_score: Tensor, k: int, gamma: float, alpha: bool) -> Thresholds:
    n_others = others.shape[1] - 1
    n_candidates = min(n_others, k + max(5, k // 2))
    top = others.topk(n_candidates, dim=1).values
    pivot = top[:, k - 1 : k].clone()
    base = 1 + (pivot - label_score)  # the pivot's own margin
    top -= pivot

    solve_rows = _alpha_rows if alpha else _beta_rows
    cut, cap, offset, binds = solve_rows(top, None, base, k, gamma)
    if n_candidates < n_others:
        unsolved = (cut < top[:, -1:]).squeeze(1)
        if bool(unsolved.any()):
            rows = unsolved.nonzero().squeeze(1)
            entries = others[rows].sub_(pivot[rows])
            again = solve_rows(top[rows], entries, base[rows], k, gamma)
            for part, new in zip((cut, cap, offset, binds), again, strict=True):
                part.index_copy_(0, rows, new)
    return Thresholds(pivot, cut, cap, offset, binds)


# In what follows rows are measured from the pivot; ``top`` holds at least the k largest entries of
# each, sorted. ``entries`` holds them all, or is None where ``top`` does.
_Solution = tuple[Tensor, Tensor, Tensor, Tensor]


def _beta_rows(
    top: Tensor, entries: Tensor | None, base: Tensor, k: int, gamma: float
) -> _Solution:
    """Project onto {0 <= x_j <= 1/k, <1, x> <= 1}: tau >= 0, and tau = 0 where the sum is slack."""
    cap = gamma / k
    root = _equality(top, entries, k, cap)
    binds = root > -base
    cut = torch.maximum(root, -base)
    excess = (top - (cut + cap)).clamp_(min=0).sum(1, keepdim=True)
    return cut, torch.full_like(cut, cap), cut + base + excess / k, binds


def _alpha_rows(
    top: Tensor, entries: Tensor | None, base: Tensor, k: int, gamma: float
) -> _Solution:
    """Project onto {0 <= x_j <= <1, x>/k, <1, x> <= 1}.

    The multiplier of <1, x> <= 1 is tau + (sum of what the cap cuts off) / k. Where it would be
    negative, the projection is that onto the cone without the constraint.
    """
    full_cap = gamma / k
    cut = _equality(top, entries, k, full_cap)
    excess = (top - (cut + full_cap)).clamp_(min=0).sum(1, keepdim=True)
    offset = cut + base + excess / k
    cap = torch.full_like(cut, full_cap)
    binds = offset >= 0
    if not bool(binds.all()):
        rows = (~binds).squeeze(1).nonzero().squeeze(1)
        level = base[rows]
        # No entry this far below the pivot is in the support; huge ones would cost precision.
        margins = top[rows].clamp_(min=-2 * full_cap) + level
        tau, row_cap = _cone_sorted(margins, k)
        if entries is not None:
            tau, row_cap = _cone_newton(entries[rows] + level, margins, tau + row_cap, k)
        empty = margins[:, :k].sum(1, keepdim=True) <= 0
        cut.index_copy_(0, rows, torch.where(empty, 0, tau - level))
        cap.index_copy_(0, rows, torch.where(empty, 0, row_cap))
        offset.index_fill_(0, rows, 0.0)
    return cut, cap, offset, binds


def _equality(top: Tensor, entries: Tensor | None, k: int, cap: float) -> Tensor:
    """Solve sum_j clip(t_j - tau, 0, cap) = k cap for tau, which lies in [-cap, 0]."""
    # Entries below -cap are zero and entries above cap are capped, however far they are.
    root = _equality_sorted(top.clamp(-2 * cap, cap), k, cap)
    if entries is None:
        return root

    def deviation(tau: Tensor) -> tuple[Tensor, Tensor]:
        clipped = (entries - tau).clamp_(0, cap)
        total = clipped.sum(1, keepdim=True)
        positive = clipped.sign().sum(1, keepdim=True)
        capped = clipped.ge_(cap).sum(1, keepdim=True)
        return total - k * cap, positive - capped

    # Entries left out can only raise the root.
    return _newton(deviation, root, torch.zeros_like(root), root, cap)


def _equality_sorted(t: Tensor, k: int, cap: float) -> Tensor:
    sums = pad(t.cumsum(1), (1, 0))
    # The number of capped entries: the i-th largest is capped iff the sum at tau = t_i - cap is
    # less than k cap. It is at most k - 1, for at t_k - cap the k largest reach k cap.
    place = torch.arange(1, k, device=t.device)
    level = t[:, : k - 1] - cap
    count = torch.searchsorted(-t, -level)
    total = place * cap + (sums.gather(1, count) - sums[:, 1:k]) - (count - place) * level
    n_capped = (total < k * cap).sum(1, keepdim=True)
    # The rest share what is left as on a simplex: t_r is positive iff tau = t_r leaves a remainder.
    capped_sum = sums.gather(1, n_capped)
    remainder = (k - n_capped) * cap
    place = torch.arange(1, t.shape[1] + 1, device=t.device)
    n_after = place - n_capped
    positive = (sums[:, 1:] - capped_sum - n_after * t < remainder) | (n_after <= 1)
    support = positive.sum(1, keepdim=True)
    return (sums.gather(1, support) - capped_sum - remainder) / (support - n_capped)


def _cone_sorted(a: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Project the sorted margins a onto {0 <= x_j <= <1, x>/k}: x = clip(a - tau, 0, cap).

    With T = tau + cap the conditions are k tau = -sum relu(a - T) and
    F(T) = sum relu(a - tau) + 2 k tau - k T = 0, and F decreases in T.
    """
    sums = pad(a.cumsum(1), (1, 0))
    place = torch.arange(1, k, device=a.device)
    knot = a[:, : k - 1]
    tau = (place * knot - sums[:, 1:k]) / k
    count = torch.searchsorted(-a, -tau)
    n_capped = (
        (sums.gather(1, count) - count * tau + 2 * k * tau < k * knot).sum(1, keepdim=True)
    )
    # With n entries at the cap: (k - n) tau = n cap - capped_sum, (k - n) cap = sum of the others'
    # relu(a - tau). An entry is positive iff tau = a_r would make the cap too large for the sum.
    capped_sum = sums.gather(1, n_capped)
    free = k - n_capped
    place = torch.arange(1, a.shape[1] + 1, device=a.device)
    n_after = place - n_capped
    after = sums[:, 1:] - capped_sum
    positive = free * (free * a + capped_sum) > n_capped * (after - n_after * a)
    support = (positive | (n_after <= 1)).sum(1, keepdim=True)
    n_inside = support - n_capped
    inside_sum = sums.gather(1, support) - capped_sum
    cap = (free * inside_sum + n_inside * capped_sum) / (free * free + n_inside * n_capped)
    return (n_capped * cap - capped_sum) / free, cap


def _cone_newton(entries: Tensor, top: Tensor, start: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Solve what :func:`_cone_sorted` solves, over all entries, from its T for the largest."""

    def lower(upper: Tensor) -> Tensor:
        return (top[:, :k] - upper).clamp_(min=0).sum(1, keepdim=True) / -k

    def condition(upper: Tensor) -> tuple[Tensor, Tensor]:
        tau = lower(upper)
        n_capped = (top[:, :k] > upper).sum(1, keepdim=True)
        inside = (entries - tau).clamp_(min=0)
        total = inside.sum(1, keepdim=True)
        support = inside.sign_().sum(1, keepdim=True)
        slope = ((k - n_capped) ** 2 + n_capped * (support - n_capped)) / k
        return total + 2 * k * tau - k * upper, slope

    highest = torch.maximum(top[:, :1], entries.clamp(min=0).sum(1, keepdim=True) / k)
    lowest = torch.minimum(start, highest)
    upper = _newton(condition, lowest, highest, lowest, highest)
    tau = lower(upper)
    return tau, upper - tau


def _newton(
    function: Callable[[Tensor], tuple[Tensor, Tensor]],
    low: Tensor,
    high: Tensor,
    start: Tensor,
    scale: Tensor | float,
) -> Tensor:
    """Find the root in [low, high] of a decreasing piecewise linear function, row by row.

    ``function`` returns the value and minus the slope. Steps that leave the bracket, which they can
    because the function is neither convex nor concave, give way to bisection.
    """
    eps = torch.finfo(start.dtype).eps
    tolerance = 4 * eps * abs(scale)
    point = start
    for _ in range(_MAX_PASSES):
        value, slope = function(point)
        above = value >= 0
        low = torch.where(above, point, low)
        high = torch.where(above, high, point)
        step = torch.where(value == 0, 0, value / slope)
        done = ~((step.abs() > tolerance) & (high - low > tolerance))
        moved = point + step
        inside = (moved > low) & (moved < high)
        point = torch.where(done | inside, moved.clamp(low, high), (low + high) / 2)
        if bool(done.all()):
            break
    return point


@torch.library.custom_op("shortlist::hinge_thresholds", mutates_args=())
def _thresholds_op(
    others: Tensor, label_score: Tensor, k: int, gamma: float, alpha: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Hide the data-dependent passes from torch.compile, which needs one static graph."""
    return tuple(_solve(others, label_score, k, gamma, alpha))


@_thresholds_op.register_fake
def _(
    others: Tensor, label_score: Tensor, k: int, gamma: float, alpha: bool
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    column = torch.empty_like(label_score)
    return (
        column,
        torch.empty_like(column),
        torch.empty_like(column),
        torch.empty_like(column),
        torch.empty_like(column, dtype=torch.bool),
    )
