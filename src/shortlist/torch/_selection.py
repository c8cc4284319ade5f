"""Selection of the few largest entries of each row."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ._row_loss import values_are_free

_ENTRIES_PER_BLOCK = 4
_BITS = {torch.float32: torch.int32, torch.float64: torch.int64}
# `torch.topk` finds up to this many so fast that to look for NaN first, as comparing bits asks for,
# costs more than that saves.
_MAX_COUNT_BY_TOPK = 8


def wrong_scores(scores: Tensor, target: Tensor) -> Tensor:
    """Return a copy of the scores with minus infinity at the labels, and finite everywhere else.

    Scores of minus infinity mark impossible classes. As very low ones they cost as little, their
    differences are not NaN, and none can be selected in the label's place.
    """
    return scores.clamp(min=lowest(scores.dtype)).scatter_(1, target.unsqueeze(1), -math.inf)


def lowest(dtype: torch.dtype) -> float:
    """Return a number far below any usable score, whose multiples are finite."""
    return -math.sqrt(torch.finfo(dtype).max)


def largest(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest entries of each row, sorted, and their columns.

    This is ``torch.topk``, which on the CPU can be helped.
    """
    n_columns = rows.shape[1]
    if rows.device.type == "cpu":
        if 64 * count > n_columns and 3 * count <= n_columns // _ENTRIES_PER_BLOCK:
            return _largest_folded(rows, count)
        if (
            count > _MAX_COUNT_BY_TOPK
            and values_are_free(rows)
            and (found := _largest_positive(rows, count))
        ):
            return found
    return rows.topk(count, dim=1)


def _largest_positive(rows: Tensor, count: int) -> tuple[Tensor, Tensor] | None:
    """Return what :func:`largest` does if all of it is positive, or None.

    The bits of a float, read as an integer, are positive if it is, and the larger the larger it is.
    Integers are compared a quarter faster than floats, which might be NaN.
    """
    bits = _BITS.get(rows.dtype)
    if bits is None or len(rows) == 0 or int((rows[0] > 0).sum()) < 2 * count:
        return None
    values, columns = rows.view(bits).topk(count, dim=1)
    # Compared by its bits, a NaN with a sign would be missed.
    if int(values[:, -1].min()) <= 0 or bool(rows.sum().isnan()):
        return None
    return values.view(rows.dtype), columns


def _largest_folded(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return what :func:`largest` does, from blocks of four.

    ``torch.topk`` switches to a slow algorithm when ``count`` exceeds a 64th of the row. But the
    ``count`` largest entries lie in the ``count`` blocks with the largest maxima.
    """
    n_columns = rows.shape[1]
    n_blocks = n_columns // _ENTRIES_PER_BLOCK
    n_folded = _ENTRIES_PER_BLOCK * n_blocks
    peaks = rows[:, :n_folded]
    while peaks.shape[1] > n_blocks:
        half = peaks.shape[1] // 2
        peaks = torch.maximum(peaks[:, :half], peaks[:, half:])
    blocks = peaks.topk(count, dim=1, sorted=False).indices
    members = torch.arange(0, n_folded, n_blocks, device=rows.device)
    columns = (blocks.unsqueeze(2) + members).flatten(1)
    if n_folded < n_columns:
        unfolded = torch.arange(n_folded, n_columns, device=rows.device)
        columns = torch.cat([columns, unfolded.expand(rows.shape[0], -1)], dim=1)
    values, chosen = rows.gather(1, columns).topk(count, dim=1)
    return values, columns.gather(1, chosen)
