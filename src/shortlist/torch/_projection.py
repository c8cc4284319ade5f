"""Projections onto the two top-k simplices, for rows of margins: where to cut, and where to cap.

The projection of the margins a_j = 1 + f_j - f_y (j != y), divided by gamma, onto the alpha or the
beta set is x_j = clip(a_j - tau, 0, cap) / gamma: two scalars a row. From sorted entries they come
in closed form, from all entries of a row in Newton steps.

Entries are measured from the k-th largest (the pivot): near it lie tau and every entry that is
neither zero nor at the cap, so neither large scores nor a small gamma cost precision. (Where fewer
than k margins are positive, tau of the beta set is zero, and the pivot is the label.) Of n rows,
``top`` holds at least the k largest entries, sorted and by rank: shape (width, n), which lets small
reductions run over many rows at once. ``entries`` (n, m) holds them all, or is None where ``top``
does; ``base`` (n,) is the pivot's own margin.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor

from ._row_loss import has_values

# Newton steps guarded by bisection end after a handful of passes; the bound is for NaN scores.
_MAX_PASSES = 100


class Projection(NamedTuple):
    """x = clip(entries - cut, 0, cap) / gamma; tensors of shape (n,), or one cap for all rows.

    max <a, x> - gamma/2 |x|^2 is ``offset`` + gamma/2 |x|^2. ``slack`` marks the rows with
    <1, x> < 1; None: there are none.
    """

    cut: Tensor
    cap: Tensor | float
    offset: Tensor
    slack: Tensor | None


def closed_form_fits(k: int, width: int) -> bool:
    """Tell whether the closed form's table, k x width a row, is worth its memory."""
    return k * width <= 2048


def beta_pivot(kth: Tensor, label_score: Tensor) -> Tensor:
    """Return the score that :func:`project_beta` measures from, given the k-th largest."""
    return torch.where(kth - label_score < -1, label_score, kth)


def project_beta(
    top: Tensor, entries: Tensor | None, base: Tensor, k: int, gamma: float
) -> Projection:
    """Project onto {0 <= x_j <= 1/k, <1, x> <= 1}: tau >= 0, and tau = 0 where the sum is slack."""
    cap = gamma / k
    cut = _equality(top, entries, k, cap)
    # Entries among the k largest that are below the pivot: it is the label, and the sum is slack.
    tau = (cut + base).masked_fill_(top[k - 1] < 0, 0)
    slack = None
    if not all_at_least(tau, torch.finfo(tau.dtype).tiny):
        slack = tau <= 0
        tau.clamp_(min=0)
        # Only there: elsewhere the sum with the base has lost digits.
        cut = torch.where(slack, -base, cut)
    return Projection(cut, cap, tau.add_(_cut_off(top, cut, cap, k)), slack)


def project_alpha(
    top: Tensor, entries: Tensor | None, base: Tensor, k: int, gamma: float
) -> Projection:
    """Project onto {0 <= x_j <= <1, x>/k, <1, x> <= 1}.

    The multiplier of <1, x> <= 1 is tau + (sum of what the cap cuts off) / k. Where it would be
    negative, the projection is that onto the cone without the constraint.
    """
    full_cap = gamma / k
    cut = _equality(top, entries, k, full_cap)
    offset = (cut + base).add_(_cut_off(top, cut, full_cap, k))
    if all_at_least(offset, 0.0):
        return Projection(cut, full_cap, offset, None)
    slack = offset < 0
    rows = slack.nonzero().squeeze(1)
    base = base[rows]
    # No entry this far below the pivot is positive; huge ones would cost precision.
    margins = top[:, rows].clamp_(min=-2 * full_cap).add_(base)
    if entries is None:
        cone_tau, cone_cap = _cone_sorted(margins, k)
    else:
        cone_tau, cone_cap = _cone_newton(entries[rows] + base.unsqueeze(1), margins[:k], k)
    empty = margins[:k].sum(0) <= 0
    cut.index_copy_(0, rows, (cone_tau - base).masked_fill_(empty, 0))
    cap = torch.full_like(cut, full_cap).index_copy_(0, rows, cone_cap.masked_fill_(empty, 0))
    return Projection(cut, cap, offset.clamp_(min=0), slack)


def all_at_least(values: Tensor, bound: float) -> bool:
    """Tell whether no entry is less than ``bound``; NaN counts as less."""
    return len(values) == 0 or float(values.min()) >= bound


def _cut_off(top: Tensor, cut: Tensor, cap: float, k: int) -> Tensor:
    """Return (sum of relu(t_j - cut - cap)) / k; only the k largest reach the cap."""
    return (top[:k] - (cut + cap)).clamp_(min=0).sum(0).div_(k)


def _equality(top: Tensor, entries: Tensor | None, k: int, cap: float) -> Tensor:
    """Solve sum_j clip(t_j - tau, 0, cap) = k cap for tau, which lies in [-cap, 0].

    Let S_r be the sum of the r largest. The left side is the least over n of n cap plus the sum of
    relu(t_j - tau) beyond the n largest; that sum is the largest over r of
    S_r - S_n - (r - n) tau. All fall in tau, so the root is
    tau = min over n < k of max over r > n of (S_r - S_n - (k - n) cap) / (r - n).
    For r <= n that numerator is negative, since the k largest entries are not.
    """
    width = top.shape[0]
    if not closed_form_fits(k, width):
        root = top.new_full((top.shape[1],), -cap)
    else:
        # Entries below -cap are zero and entries above cap are capped, however far they are.
        clipped = top.clamp(-2 * cap, cap)
        sums = running_sums(clipped)
        table = _tables(k, width, top)
        before = (sums[:k] - clipped[:k]).add_(table.free, alpha=cap)
        gaps = sums - before.unsqueeze(1)
        root = gaps.mul_(table.per_gap).amax(1).amin(0)
    if entries is None:
        return root
    # The entries left out can only raise the root.
    return _equality_newton(entries, top[:k], root.clamp_(-cap, 0), k, cap)


def _cone_sorted(a: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Project the sorted margins a onto {0 <= x_j <= <1, x>/k}: x = clip(a - tau, 0, cap).

    The conditions are k tau = -sum relu(a - tau - cap) and k cap = sum clip(a - tau, 0, cap). With
    n entries at the cap and r positive they are linear; as above, each being a least or a largest
    value over n or r, tau = min over n < k of max over r > n of
    (n S_r - k S_n) / ((k - n)^2 + n (r - n)), and then cap = min over n < k of
    (sum of relu(a_j - tau) beyond the n largest) / (k - n).
    """
    sums = running_sums(a)
    table = _tables(k, a.shape[0], a)
    before = sums[:k] - a[:k]
    gaps = table.capped * sums - (k * before).unsqueeze(1)
    tau = torch.addcmul(table.forbidden, gaps, table.per_cone).amax(1).amin(0)
    positive = (a - tau).clamp_(min=0)
    sums = running_sums(positive)
    beyond = sums[-1] - (sums[:k] - positive[:k])
    return tau, beyond.div_(table.free).amin(0)


def running_sums(rows: Tensor) -> Tensor:
    """Return the sums of the first 1, 2, ... rows, the same in every run.

    ``torch.cumsum`` is fast on the CPU. On CUDA it is not deterministic, and refuses to run under
    ``torch.use_deterministic_algorithms``.
    """
    return rows.cumsum(0) if rows.device.type == "cpu" else sums_by_doubling(rows)


def sums_by_doubling(rows: Tensor) -> Tensor:
    """Return what :func:`running_sums` does, in log2(number of rows) additions."""
    reach = 1
    while reach < rows.shape[0]:
        rows = torch.cat([rows[:reach], rows[reach:] + rows[:-reach]])
        reach *= 2
    return rows


class _Tables(NamedTuple):
    """Coefficients for n = 0 .. k - 1 entries at the cap and r = 1 .. width positive."""

    capped: Tensor  # n, (k, 1, 1)
    free: Tensor  # k - n, (k, 1)
    per_gap: Tensor  # 1 / (r - n), or infinity where r <= n; (k, width, 1), as are those below
    per_cone: Tensor  # 1 / ((k - n)^2 + n (r - n)), or 0 where r <= n
    forbidden: Tensor  # minus infinity where r <= n, or 0


def _tables(k: int, width: int, like: Tensor) -> _Tables:
    # Tensors without values, from a tracer, must not be kept for calls that have values.
    make = _kept_tables if has_values(like) else _make_tables
    return make(k, width, like.dtype, like.device)


def _make_tables(k: int, width: int, dtype: torch.dtype, device: torch.device) -> _Tables:
    capped = torch.arange(k, dtype=dtype, device=device).view(k, 1, 1)
    gap = torch.arange(1, width + 1, dtype=dtype, device=device).view(1, width, 1) - capped
    allowed = gap > 0
    free = k - capped
    return _Tables(
        capped,
        free.squeeze(2),
        torch.where(allowed, 1 / gap, torch.inf),
        torch.where(allowed, 1 / (free * free + capped * gap), 0),
        torch.where(allowed, torch.zeros_like(gap), -torch.inf),
    )


_kept_tables = lru_cache(maxsize=64)(_make_tables)


def _equality_newton(entries: Tensor, top: Tensor, low: Tensor, k: int, cap: float) -> Tensor:
    """Solve what :func:`_equality` solves, over all entries, from a lower bound."""
    # Entries above the cap end at the cap. Clip them first: their size would cost precision.
    entries, top = entries.clamp(max=cap), top.clamp(max=cap)
    positive = torch.empty_like(entries)

    def excess(tau: Tensor) -> tuple[Tensor, Tensor]:
        torch.sub(entries, tau.unsqueeze(1), out=positive).clamp_(min=0)
        total = positive.sum(1)
        # All in place: comparisons that make booleans are slow. Only the k largest reach the cap.
        support = positive.sign_().sum(1)
        beyond = (top - (tau + cap)).clamp_(min=0)
        total.sub_(beyond.sum(0))
        return total.sub_(k * cap), support.sub_(beyond.sign_().sum(0))

    return _newton(excess, low, torch.zeros_like(low), cap)


def _cone_newton(entries: Tensor, top: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """Solve what :func:`_cone_sorted` solves, over all entries; ``top`` (k, n): the k largest.

    In T = tau + cap: with k tau = -sum relu(a - T), F(T) = sum relu(a - tau) + 2 k tau - k T
    decreases, is >= 0 at the k-th largest entry, and <= 0 at ``high`` below.
    """
    positive = torch.empty_like(entries)

    def lower(upper: Tensor) -> Tensor:
        return (top - upper).clamp_(min=0).sum(0) / -k

    def condition(upper: Tensor) -> tuple[Tensor, Tensor]:
        tau = lower(upper)
        n_capped = (top > upper).sum(0)
        torch.sub(entries, tau.unsqueeze(1), out=positive).clamp_(min=0)
        total = positive.sum(1)
        support = positive.sign_().sum(1)
        slope = ((k - n_capped) ** 2 + n_capped * (support - n_capped)) / k
        return total + 2 * k * tau - k * upper, slope

    high = torch.maximum(top[0], entries.clamp(min=0).sum(1) / k)
    upper = _newton(condition, top[-1], high, high)
    tau = lower(upper)
    return tau, upper - tau


def _newton(
    function: Callable[[Tensor], tuple[Tensor, Tensor]],
    low: Tensor,
    high: Tensor,
    scale: Tensor | float,
) -> Tensor:
    """Find the root in [low, high] of a decreasing piecewise linear function, row by row.

    ``function`` returns the value and minus the slope. Steps that leave the bracket, which they can
    because the function is neither convex nor concave, give way to bisection.
    """
    tolerance = 4 * torch.finfo(low.dtype).eps * abs(scale)
    point = low
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
