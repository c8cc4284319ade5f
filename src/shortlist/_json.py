"""Values as JSON can express them."""

import math
from collections.abc import Mapping
from typing import Any


def plain(value: Any, *, keep_nan: bool = False) -> Any:
    """Data of JSON's types: NumPy's become Python's, tuples lists, keys text.

    NaN and infinities, which JSON has not, become None; with ``keep_nan`` they stay, for readers
    that know them as Python's does.
    """
    if isinstance(value, Mapping):
        return {str(key): plain(entry, keep_nan=keep_nan) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [plain(entry, keep_nan=keep_nan) for entry in value]
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        return plain(value.tolist(), keep_nan=keep_nan)
    if isinstance(value, float) and not math.isfinite(value) and not keep_nan:
        return None
    return value
