"""Parameters that many parts take: what they may be, without numba or PyTorch."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from shortlist.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Parameters(NamedTuple):
    """What :func:`shortlist.losses.get` was given besides a name, checked."""

    k: int
    variant: str
    smoothing: float
    multilabel: bool = False
    margins: NDArray | None = None
    rank_weights: NDArray | None = None


#: The parameters of a classifier that say which loss it has.
LOSS_PARAMETERS = ("loss", *(name for name in Parameters._fields if name != "multilabel"))
#: Those that are a word or a number. A table can show them.
PLAIN_LOSS_PARAMETERS = tuple(
    name for name in LOSS_PARAMETERS if name not in ("margins", "rank_weights")
)
VARIANTS = ("alpha", "beta")
# The hinges also come as the paper prints alpha.
HINGE_VARIANTS = ("alpha", "beta", "printed")
#: How a tie between the true label and others at the cut is counted.
TIE_POLICIES = ("optimistic", "pessimistic", "expected")
#: Ties that decide more than this share of the examples are worth a warning.
MAX_TIED_SHARE = 0.01
#: Formats of data files, and those of tables with named columns.
TABLE_FORMATS = ("csv", "parquet", "arrow")
FORMATS = ("libsvm", *TABLE_FORMATS, "npy", "npz", "mat")
#: What data may be divided into.
SPLIT_NAMES = ("train", "val", "test")
#: What becomes of missing values in a table.
MISSING_POLICIES = ("error", "mean", "drop")
#: How features may be brought to similar sizes.
SCALES = ("standard", "minmax", "l2")
#: Kernels that are known by name.
KERNELS = ("linear", "rbf", "poly", "cosine", "precomputed")


def is_integer(value: Any) -> TypeGuard[int]:
    """Whether this is a whole number of any type. Truth values are not meant as numbers."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def is_real(value: Any) -> TypeGuard[float]:
    """Whether this is a number of any type, but no truth value."""
    return isinstance(value, Real) and not isinstance(value, bool)


def check_k(k: int, largest: int | None = None, meaning: str = "", name: str = "k") -> int:
    """Return k as an int: 1 or larger, and at most ``largest``, which is called ``meaning``."""
    if not is_integer(k):
        raise TypeError(f"{name} must be an integer; got {k!r}")
    if largest is None and k < 1:
        raise ParameterError(name, f"must be 1 or larger; got {k}")
    if largest is not None and not 1 <= k <= largest:
        raise ParameterError(name, f"must lie between 1 and {largest} ({meaning}); got {k}")
    return int(k)
