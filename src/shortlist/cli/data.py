"""DATA on the command line: a file, a folder, standard input, or a data set by name."""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from shortlist._parameters import FORMATS, SPLIT_NAMES, TABLE_FORMATS
from shortlist._text import escape_controls
from shortlist.cli.declare import changed
from shortlist.cli.options import OutputOptions, ReadingOptions
from shortlist.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from shortlist.datasets.containers import LabeledData
    from shortlist.datasets.how_read import Reading

# The data set that comes with the package. Others that are known by name are downloaded.
_EMBEDDED = "letter"
# Options for data of every format. Any other is for formats whose reader has such a parameter.
_USED_BY_ALL = {"format", "split", "precision", "names", "scale"}
# What readers call an option, where it is not its name.
_PARAMETERS = {"index_base": "zero_based"}

# Features larger than this, or than this many times the median one, slow training. Measured on
# the digits of scikit-learn, C=1: 19 epochs with values around 0.6, 59 around 10, 119 around 100,
# more than 300 around 1000.
_MAX_FEATURE_SIZE = 100.0
# The number of examples that sizes are estimated from.
_SAMPLES_EXAMINED = 10_000
# Names of columns that number the examples. pandas writes its index without a name.
_ROW_NUMBERS = ("", "unnamed: 0", "index", "id", "row")


def read_data(
    name: str,
    options: ReadingOptions,
    part: str,
    *,
    like: Reading | None = None,
    labelled: bool = True,
    on_disk: bool = False,
) -> LabeledData:
    """Read DATA; ``on_disk`` leaves the features of a file where they are.

    ``part`` is taken where there are several and ``--split`` does not say. ``like`` is how the
    model's training data was read; None takes the data as it is. With ``labelled=False`` the data
    may lack labels, and labels in it are ignored.
    """
    parts = _named(name, options, like)
    if not parts:
        from shortlist.datasets import read_splits

        given = reader_options(name, options, like, labelled)
        # The labels of a model are known: names go with those, not with the labels of this file.
        given["names"] = options.names if like is None else None
        parts = read_splits(name, like=like, scale=options.scale, on_disk=on_disk, **given)
    data = _choose(parts, options.split, part, name)
    if labelled and data.y is None:
        raise DataError("has no labels", path=name)
    return data


def is_named(name: str) -> bool:
    """Whether DATA is a data set by name, not a file."""
    from shortlist.datasets.downloads import SOURCES

    return name in SOURCES and not os.path.exists(name)


def labels_in(data: LabeledData) -> set[Any]:
    """The labels that occur in data."""
    classes = how_read(data).classes
    return set(data.y.tolist()) if classes is None else set(classes)


def how_read(data: LabeledData) -> Reading:
    """How data was read, for the model to keep."""
    assert data.reading is not None  # every reader says so, and so does load_letter
    return data.reading


def _named(name: str, options: ReadingOptions, like: Reading | None) -> dict[str, LabeledData]:
    """The parts of a data set known by name, unless there is a file of that name."""
    if not is_named(name):
        return {}
    from shortlist import datasets

    _refuse_unused(options, "named", name)
    if options.format is not None:
        raise ValueError(f"--format is for files; {name} is a data set known by name")
    splits = datasets.load_letter() if name == _EMBEDDED else datasets.fetch(name)
    if like is not None and splits.train.n_features != like.n_features:
        here, there = splits.train.n_features, like.n_features
        raise DataError(f"has {here} features where {there} are expected", path=name)
    found = {split: getattr(splits, split) for split in SPLIT_NAMES}
    dtype = options.precision or "float64"
    parts = {
        s: replace(d, X=d.X.astype(dtype, copy=False)) for s, d in found.items() if d is not None
    }
    return datasets.scaled_parts(parts, options.scale, like)


def reader_options(
    name: str, options: ReadingOptions, like: Reading | None = None, labelled: bool = True
) -> dict[str, Any]:
    """What ``read_splits`` is to be told of a file, its format first.

    An option that its format does not have is an error, and so is a name that is neither a file nor
    a data set.
    """
    from shortlist.datasets import data_format
    from shortlist.datasets.downloads import SOURCES

    kind = options.format or data_format(name)
    _refuse_unused(options, kind, name)
    looks_like_a_name = not os.path.splitext(name)[1] and os.sep not in name
    if name != "-" and looks_like_a_name and not os.path.lexists(name):
        known = ", ".join(SOURCES)
        message = f"no such file, nor a data set of this name (those are {known})"
        raise DataError(message, path=name)
    said: dict[str, Any] = {
        "label": None if options.label == "none" else _column(options.label),
        "labels": options.labels,
        "label_type": None if options.label_type == "auto" else options.label_type,
        "header": options.header,
        "delimiter": options.delimiter and options.delimiter.replace("\\t", "\t"),
        "drop": options.drop and [_column(column) for column in options.drop],
        "id_column": options.id_column and _column(options.id_column),
        "weight_column": options.weight_column and _column(options.weight_column),
        "missing": options.missing,
        "dtype": options.precision,
        "zero_based": None if options.index_base == "auto" else options.index_base == "0",
    }
    taken = _parameters_of(kind)
    # A label is always spoken of: None says that there are none.
    given: dict[str, Any] = {"format": kind, "label": None}
    given |= {key: value for key, value in said.items() if value is not None and key in taken}
    if not labelled and options.label == "auto" and _can_do_without_labels(kind, like):
        given["label"] = None
    if kind == "libsvm" and like is not None and like.format in TABLE_FORMATS:
        given["extra_features"] = "error"  # a table has all features that there are
    return given


def _can_do_without_labels(kind: str, like: Reading | None) -> bool:
    """Whether features are known without a guess at which column holds the labels."""
    if kind == "npy":  # labels may be one of its columns
        return like is None or like.label is None
    return kind not in TABLE_FORMATS or (like is not None and like.format in TABLE_FORMATS)


def _parameters_of(kind: str) -> Collection[str]:
    """The parameters of a format's reader; a data set by name has no reader."""
    from shortlist.datasets import reader_of

    return signature(reader_of(kind)).parameters if kind != "named" else ()


def _column(text: str) -> str | int:
    try:
        return int(text)
    except ValueError:
        return text


def _refuse_unused(options: ReadingOptions, kind: str, name: str) -> None:
    """An option that would be passed over in silence is an error."""
    taken = _parameters_of(kind)
    for field, flag in changed(options):
        parameter = _PARAMETERS.get(field, field)
        if field not in _USED_BY_ALL and parameter not in taken:
            users = [each for each in FORMATS if parameter in _parameters_of(each)]
            listed = " and ".join([", ".join(users[:-1]), users[-1]] if users[1:] else users)
            raise ValueError(f"{flag} is for {listed} files, which {name} is not")


def _choose(
    parts: dict[str, LabeledData], wanted: str | None, usual: str, name: str
) -> LabeledData:
    if len(parts) == 1 and wanted is None:
        return next(iter(parts.values()))
    chosen = wanted or usual
    if chosen in parts:
        data = parts[chosen]
        return replace(data, source=f"{name} ({chosen})") if len(parts) > 1 else data
    if list(parts) == ["all"]:
        raise DataError(f"has no parts, so --split {chosen} does not apply", path=name)
    message = f"holds no part {chosen!r}, only {', '.join(parts)}"
    # What is given to --val has no such option.
    hint = ": choose with --split" if wanted is None and usual != "val" else ""
    raise DataError(message + hint, path=name)


def say_data(output: OutputOptions, data: LabeledData, *more: str | None) -> None:
    """Tell how DATA was read, with what was guessed, how much there is, and what may help."""
    if output.quiet:
        return
    looked_at = hasattr(data.X, "__getitem__")  # not the rows that workers hold
    hints = [_row_number_hint(data), _scale_hint(data)] if looked_at else []
    lines = [how_read(data).describe(), data.describe(), *hints, *more]
    output.say("\n".join(escape_controls(line) for line in lines if line is not None))


def _row_number_hint(data: LabeledData) -> str | None:
    """The hint for a feature that only numbers the examples."""
    import numpy as np

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


def _scale_hint(data: LabeledData) -> str | None:
    """The hint for unscaled features of very different or very large sizes."""
    import numpy as np

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


def _sizes(X: Any) -> NDArray:
    """The root mean square of each feature's values that are not zero."""
    import numpy as np
    from scipy import sparse

    if sparse.issparse(X):
        squares = np.bincount(X.indices, X.data.astype(np.float64) ** 2, minlength=X.shape[1])
        counts = np.bincount(X.indices, minlength=X.shape[1])
    else:
        squares = (np.asarray(X, dtype=np.float64) ** 2).sum(axis=0)
        counts = np.count_nonzero(X, axis=0)
    return np.sqrt(squares / np.maximum(counts, 1))
