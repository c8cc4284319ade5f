"""Advice that data asks for before it is trained on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData

# Features larger than this, or than this many times the median one, slow training. Measured on
# the digits of scikit-learn, C=1: 19 epochs with values around 0.6, 59 around 10, 119 around 100,
# more than 300 around 1000.
_MAX_FEATURE_SIZE = 100.0
# The number of examples that sizes are estimated from.
_SAMPLES_EXAMINED = 10_000


# Names of columns that number the examples. pandas writes its index without a name.
_ROW_NUMBERS = ("", "unnamed: 0", "index", "id", "row")


def row_number_hint(data: LabeledData) -> str | None:
    """The hint for a feature that only numbers the examples."""
    columns = () if data.reading is None else data.reading.columns or ()
    for place, name in enumerate(data.feature_names or ()):
        if name.lower() in _ROW_NUMBERS and name in columns:
            values = np.asarray(data.X[:_SAMPLES_EXAMINED, place])
            if len(values) > 1 and (abs(np.diff(np.sort(values))) >= 1).all():
                column = repr(name) if name else f"{columns.index(name)}, which has no name,"
                return (
                    f"hint: column {column} seems to number the examples and is taken for a "
                    f"feature: --drop {name or columns.index(name)} leaves it out"
                )
    return None


def scale_hint(data: LabeledData) -> str | None:
    """The hint for unscaled features of very different or very large sizes."""
    from shortlist.datasets.columns import shown_column

    if data.reading is not None and data.reading.scaling is not None:
        return None
    sizes = _sizes(data.X[:_SAMPLES_EXAMINED])
    usual = float(np.median(sizes[sizes > 0])) if sizes.any() else 0.0
    column = int(sizes.argmax())
    largest = float(sizes[column])
    if largest <= _MAX_FEATURE_SIZE * min(1.0, usual):
        return None
    name = shown_column(column, data.feature_names)
    return (
        f"hint: values of {name} are around {largest:.3g}, those of most features around "
        f"{usual:.3g}: --scale standard may train faster and better"
    )


def _sizes(X: Any) -> NDArray[np.float64]:
    """The root mean square of each feature's values that are not zero."""
    from scipy import sparse

    if sparse.issparse(X):
        squares = np.bincount(X.indices, X.data.astype(np.float64) ** 2, minlength=X.shape[1])
        counts = np.bincount(X.indices, minlength=X.shape[1])
    else:
        squares = (np.asarray(X, dtype=np.float64) ** 2).sum(axis=0)
        counts = np.count_nonzero(X, axis=0)
    return np.sqrt(squares / np.maximum(counts, 1))
