"""Models on the command line: loading one, and giving it the data it was trained for."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from shortlist.cli.data import read_data
from shortlist.cli.options import ReadingOptions

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData

# Scores are computed for so many examples and classes at a time: 32 MiB of doubles.
_BLOCK = 1 << 22


def load_model(path: str) -> Any:
    """Load a fitted model; whatever is wrong with the file is an error in one line."""
    from shortlist.persistence import load

    return load(path)


def name_features(model: Any, data: LabeledData) -> None:
    """Let the model remember the columns' names, so that it can tell them in other files."""
    import numpy as np

    names = data.feature_names
    if names is not None and len(set(names)) == len(names):
        model.feature_names_in_ = np.array(names, dtype=object)


def read_for(
    model: Any, name: str, reading: ReadingOptions, *, labelled: bool, part: str = "test"
) -> LabeledData:
    """Read data with the model's features, put into the model's order if they are named."""
    from dataclasses import replace

    expected = int(model.n_features_in_)
    data = read_data(name, reading, part, n_features=expected, labelled=labelled)
    if data.n_features != expected:
        from shortlist.datasets import DataError

        message = f"has {data.n_features} features, but the model was trained on {expected}"
        raise DataError(message, path=name)
    known = getattr(model, "feature_names_in_", None)
    names = data.feature_names
    if known is None or names is None or tuple(known) == tuple(names):
        return data
    if len(set(names)) != len(names) or set(names) != set(known):
        from shortlist.datasets import DataError

        strange = [n for n in names if n not in set(known)] or list(names)
        missing = [str(n) for n in known if n not in set(names)] or list(map(str, known))
        raise DataError(
            f"its columns are not the model's: it has {_few(strange)} in place of {_few(missing)}",
            path=name,
        )
    sys.stderr.write(f"shortlist: {name}: columns are in another order; matched by name\n")
    order = [list(names).index(n) for n in known]
    return replace(data, X=data.X[:, order], feature_names=tuple(known))


def score_blocks(model: Any, X: Any) -> Iterator[tuple[slice, Any]]:
    """Yield the scores of X, one column a class, for a block of rows at a time."""
    step = max(1, _BLOCK // len(model.classes_))
    for start in range(0, X.shape[0], step):
        rows = slice(start, min(start + step, X.shape[0]))
        yield rows, model._scores(X[rows])


def _few(names: list[str]) -> str:
    shown = ", ".join(repr(str(n)) for n in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
