"""Will it fit? Asked before training, answered with advice instead of a killed process.

Training holds, besides the data itself (copied only if its rows do not lie together):

    duals     n * m * itemsize; of hinge losses, where that exceeds 256 MiB, their nonzero entries
              only: 2 to 5 % of n * m as a rule, half of them under very strong regularisation. Each
              takes (itemsize + 2) * 5/4 bytes, or (itemsize + 4) * 5/4 with more than 65536
              classes. Room for 5 % at the latter must be free at the start; growing further asks
              again
    weights   2 * (d + 1) * m * itemsize + 8 * (d + 1) * m   (a rebuilt copy, made in double)
    the rest  about 24 n bytes, 96 MiB for kernels and small arrays, and four blocks of n * d or
              n * m numbers: 256 MiB at most, as larger ones are made in pieces
"""

from __future__ import annotations

from typing import Any

from scipy import sparse

from shortlist._memory import available_bytes

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
