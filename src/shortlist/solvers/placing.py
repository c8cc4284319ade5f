"""Under a limit on memory: which rows are in memory at a time, and where duals are kept.

The limit is for the resident set of the process, with everything it held before training. Of what
it leaves, training takes the weights and working space first. Then, in this order:

- rows and duals in memory, as without a limit;
- rows in pieces from disk, duals in memory: SDCA reads the rows once an epoch;
- rows in pieces and duals in a mapped temporary file, where the disk has room: SDCA also reads and
  writes the duals once an epoch, which takes a fraction of the time of its products;
- rows in pieces and no duals, where the loss is smooth: a descent needs none and has a certificate,
  but takes three to seven times as many passes over the data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from shortlist._text import Setting
from shortlist.errors import WordedMemoryError
from shortlist.losses.base import Loss
from shortlist.solvers.memory import MAX_WORKING_BYTES, dual_bytes, gib

if TYPE_CHECKING:
    from shortlist.solvers.storage.pieces import DualsPlace

# The part of the limit that is planned with. Allocators and libraries take the rest.
PLANNED_SHARE = 0.9
# Bytes of a piece: larger ones read no faster, smaller ones make more of the order sequential.
MAX_PIECE_BYTES = 1 << 28
MIN_PIECE_BYTES = 1 << 22
# Pieces in memory at a time: the one worked on, the one being read, and what is being copied.
PIECES_AT_A_TIME = 3
# Copies of the weights that a descent holds: pairs of steps and gradients, recent iterates.
COPIES_OF_WEIGHTS = 56
# Of the free disk space, the part that a file of duals may take.
DISK_SHARE = 0.5


class Placing(NamedTuple):
    """Where rows and duals are.

    ``piece_bytes`` is None where all rows are in memory. ``duals`` says where duals are kept,
    ``most_dual_bytes`` how many bytes they may take; None without a limit.
    """

    piece_bytes: int | None
    duals: DualsPlace
    most_dual_bytes: int | None


def place(
    shape: tuple[int, int, int],
    itemsize: int,
    data_bytes: int,
    loss: Loss,
    limit: int,
    resident: int,
    disk: int,
) -> Placing:
    """Choose for (n, d, m) and rows of ``data_bytes`` together, 0 if they are in memory already.

    ``resident`` is what the process holds now, ``disk`` what is free for temporary files. Raises
    MemoryError if the limit is too small.
    """
    n, d, m = shape
    weights = (COPIES_OF_WEIGHTS * itemsize + 8) * (d + 1) * m
    working = weights + 24 * n + MAX_WORKING_BYTES
    room = int(PLANNED_SHARE * limit) - resident - working
    duals = dual_bytes(n, m, itemsize, loss.sparse_duals)
    if data_bytes + duals <= room:
        return Placing(None, "memory", room - data_bytes)
    least = PIECES_AT_A_TIME * MIN_PIECE_BYTES
    if room < least:
        needed = (resident + working + least) / PLANNED_SHARE
        raise WordedMemoryError(
            Setting("memory_limit")
            + f" is {gib(limit)}, and training {n} examples, {d} features and {m} classes takes at "
            f"least {gib(needed)}, of which {gib(resident)} is taken already"
        )
    piece = min(MAX_PIECE_BYTES, room // (2 * PIECES_AT_A_TIME))
    left = room - PIECES_AT_A_TIME * piece
    # An array of duals is copied piece by piece, with the rows.
    dense, rows = n * m * itemsize, data_bytes or n * d * itemsize
    beside_duals = max(1, int(piece * rows / (rows + dense)))
    if duals <= left:
        return Placing(piece if duals < dense else beside_duals, "memory", left)
    if dense <= DISK_SHARE * disk:
        return Placing(beside_duals, "mapped", None)
    if loss.dual_loss.smooth:
        return Placing(piece, "none", None)
    raise WordedMemoryError(
        Setting("memory_limit")
        + f" is {gib(limit)}, and the duals take {gib(duals)}; a temporary file for them would "
        f"take {gib(dense)}, and {gib(disk)} is free on disk"
    )


def describe(placing: Placing, n_pieces: int) -> str:
    """The choice in one line."""
    if placing.piece_bytes is None:
        return "rows and duals in memory"
    rows = f"rows in {n_pieces} pieces"
    return {
        "memory": f"{rows}, duals in memory",
        "mapped": f"{rows}, duals in a mapped file",
        "none": f"{rows}, no duals: a descent",
    }[placing.duals]
