"""Selection of the few largest entries of each row."""

from __future__ import annotations

import torch
from torch import Tensor

_BLOCK = 4


def largest(rows: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Return the ``count`` largest entries of each row, sorted, and their columns.

    This is ``torch.topk``, which on the CPU switches to a slow algorithm when ``count`` exceeds a
    64th of the row. There, the rows are first folded into blocks of four: the ``count`` largest
    entries lie in the ``count`` blocks with the largest maxima.
    """
    n_columns = rows.shape[1]
    n_blocks = n_columns // _BLOCK
    if rows.device.type != "cpu" or 64 * count <= n_columns or 3 * count > n_blocks:
        return rows.topk(count, dim=1)

    n_folded = _BLOCK * n_blocks
    peaks = rows[:, :n_folded]
    while peaks.shape[1] > n_blocks:
        half = peaks.shape[1] // 2
        peaks = torch.maximum(peaks[:, :half], peaks[:, half:])
    blocks = peaks.topk(count, dim=1, sorted=False).indices
    members = torch.arange(0, n_folded, n_blocks, device=rows.device)
    columns = (blocks.unsqueeze(2) + members).flatten(1)
    if n_folded < n_columns:
        unfolded = torch.arange(n_folded, n_columns, device=rows.device)
        columns = torch.cat([columns, unfolded.expand(len(rows), -1)], dim=1)
    values, chosen = rows.gather(1, columns).topk(count, dim=1)
    return values, columns.gather(1, chosen)
