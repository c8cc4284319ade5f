"""Will it fit? Asked before training, answered with advice instead of a killed process.

Training holds, besides the data itself (copied only if its rows do not lie together):

    duals     n * m * itemsize; of hinge losses, where that exceeds 256 MiB, their nonzero entries
              only, at (itemsize + 4) * 5/4 each: 2 to 5 % of n * m as a rule, half of them under
              very strong regularisation. 5 % must be free at the start; growing further asks again
    weights   2 * (d + 1) * m * itemsize + 8 * (d + 1) * m   (a rebuilt copy, made in double)
    the rest  about 24 n bytes, 96 MiB for kernels and small arrays, and four blocks of n * d or
              n * m numbers: 256 MiB at most, as larger ones are made in pieces

Under a limit on memory: which rows are in memory at a time, and where duals are kept.

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

from typing import TYPE_CHECKING, Any, NamedTuple

from scipy import sparse

from shortlist._memory import available_bytes
from shortlist._text import Setting
from shortlist.errors import WordedMemoryError
from shortlist.losses.base import Loss

if TYPE_CHECKING:
    from shortlist.solvers.storage.pieces import DualsPlace

# Bytes of working space at most: kernels, small arrays and blocks of examples and scores.
MAX_WORKING_BYTES = 4 * (1 << 26)
# Bytes of kernels and small arrays. Measured on small problems: the address space grew by 55 to
# 96 MiB.
FIXED_BYTES = 96 << 20
# Larger arrays of duals are not worth their memory where most entries are zero.
MAX_DENSE_DUAL_BYTES = 1 << 28


def training_bytes(n: int, d: int, m: int, itemsize: int, sparse_duals: bool = False) -> int:
    """The formula above."""
    duals = dual_bytes(n, m, itemsize, sparse_duals)
    blocks = min(MAX_WORKING_BYTES, FIXED_BYTES + 4 * n * max(d, m) * itemsize)
    return duals + (2 * itemsize + 8) * (d + 1) * m + 24 * n + blocks


def dual_bytes(n: int, m: int, itemsize: int, sparse_duals: bool) -> int:
    """The duals' part of it."""
    duals = n * m * itemsize
    if sparse_duals and duals > MAX_DENSE_DUAL_BYTES:
        duals = max(MAX_DENSE_DUAL_BYTES, n * m * (itemsize + 4) // 16)
    return duals


def check_memory(X: Any, n_classes: int, sparse_duals: bool = False) -> None:
    """Raise MemoryError, with advice, if training on X cannot fit."""
    n, d = X.shape
    itemsize = X.dtype.itemsize
    free = available_bytes()
    need = training_bytes(n, d, n_classes, itemsize, sparse_duals)
    if not sparse.issparse(X) and not X.flags.c_contiguous:
        need += n * d * itemsize  # a copy whose rows lie together
    if free is None or need <= free:
        return
    size = f"training on {n} examples, {d} features and {n_classes} classes needs about"
    if need <= 2 * FIXED_BYTES:
        raise MemoryError(
            f"{size} {mib(need)} besides the data, nearly all of it for compiled code, and "
            f"{mib(free)} is free."
        )
    advice = []
    if itemsize == 8:
        half = training_bytes(n, d, n_classes, 4, sparse_duals)
        advice.append(f"float32 input would need {gib(half)}")
    hinge = training_bytes(n, d, n_classes, itemsize, True)
    if hinge < need:
        advice.append(f"a hinge loss, whose duals are sparse, would need about {gib(hinge)}")
    advice.append("fewer classes or examples")
    share = "what training keeps of each" if sparse_duals else "one number per"
    raise MemoryError(
        f"{size} {gib(need)} besides the data ({share} example and class), and "
        f"{gib(free)} is free. Options: {'; '.join(advice)}."
    )


def require_for_duals(count: int, what: str, room: int | None = None) -> None:
    """Raise MemoryError unless so many more bytes can be had for ``what``.

    ``room`` is what a limit leaves, None without one.
    """
    free = available_bytes()
    if room is not None:
        free = room if free is None else min(room, free)
    if free is not None and count > free:
        raise MemoryError(
            f"{what} need {gib(count)} more, and {gib(free)} is free. They are fewer at a larger "
            "C; float32 input takes half the memory."
        )


def gib(count: float) -> str:
    """A large number of bytes, for a message."""
    return f"{count / 2**30:.1f} GiB"


def mib(count: float) -> str:
    """A small number of bytes, for a message."""
    return f"{count / 2**20:.0f} MiB"


# --- under a limit -----------------------------------------------------------------------------

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
