"""Features as users have them: half precision, tensors, and matrices in several shards."""

from itertools import pairwise
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from shortlist.metrics.checks import is_missing

_HALF_TENSORS = ("torch.float16", "torch.bfloat16")
_SHORT_FLOATS = (np.float16, np.float32)


def as_matrix(X: Any) -> Any:
    """X with its shards joined, and :func:`widened`."""
    return _joined(X) if _is_sharded(X) else widened(X)


def widened(X: Any) -> Any:
    """X with half precision (float16, bfloat16) as float32 and tensors as arrays of their type.

    scikit-learn would make float64 of all these. Anything else stays as it is.
    """
    if type(X).__module__.partition(".")[0] == "torch":
        X = X.detach().cpu()
        return (X.float() if str(X.dtype) in _HALF_TENSORS else X).numpy()
    if hasattr(X, "iloc") and hasattr(X, "dtypes"):
        kinds = set(np.atleast_1d(X.dtypes).tolist())
        halves = np.dtype(np.float16) in kinds and kinds <= set(map(np.dtype, _SHORT_FLOATS))
        return X.astype(np.float32) if halves else X
    # NumPy knows bfloat16 by the name that other packages give it.
    if getattr(getattr(X, "dtype", None), "name", None) in ("float16", "bfloat16"):
        return X.astype(np.float32)
    return X


def _is_sharded(X: Any) -> bool:
    """Whether X is a list of matrices rather than of rows."""
    return (
        isinstance(X, list | tuple)
        and len(X) > 0
        and all(len(getattr(shard, "shape", ())) == 2 for shard in X)
    )


def _joined(shards: Any) -> Any:
    """One matrix of all rows. At most one shard at a time is in memory twice."""
    widths = [shard.shape[1] for shard in shards]
    if len(set(widths)) > 1:
        other = next(i for i, width in enumerate(widths) if width != widths[0])
        raise ValueError(
            f"shard {other + 1} of X has {widths[other]} features where the first has {widths[0]}"
        )
    if any(sparse.issparse(shard) for shard in shards):
        return sparse.vstack([sparse.csr_array(widened(shard)) for shard in shards], format="csr")
    bounds = np.cumsum([0, *(shard.shape[0] for shard in shards)]).tolist()
    # A row of each tells the types without reading the rest.
    types = [np.asarray(widened(shard[:1])).dtype for shard in shards]
    whole = np.empty((bounds[-1], widths[0]), np.result_type(*types))
    for shard, (begin, end) in zip(shards, pairwise(bounds), strict=True):
        whole[begin:end] = widened(shard)
    return whole


def check_input(
    estimator: Any, X: Any, *, accept_sparse: str | bool = "csr", **options: Any
) -> Any:
    """scikit-learn's ``validate_data``, for floats of single or double precision.

    X may also be a tensor, in half precision, or a list of shards.
    """
    try:
        return validate_data(
            estimator,
            as_matrix(X),
            accept_sparse=accept_sparse,
            dtype=[np.float64, np.float32],
            **options,
        )
    except TypeError:
        # scikit-learn compares labels with themselves. The NA of pandas does not allow that.
        y = np.asarray(options.get("y"))
        if y.dtype == object and y.ndim and any(map(is_missing, y.flat)):
            raise ValueError("Input y contains missing values.") from None
        raise
