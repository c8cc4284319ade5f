"""DATA on the command line: a file, standard input, or a data set by name."""

from __future__ import annotations

import os
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

from shortlist.cli.options import IndexBase, ReadingOptions
from shortlist.errors import DataError

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData

EMBEDDED = ("letter",)
DOWNLOADED = ("news20", "aloi", "sector")

# Which of ReadingOptions mean something to which format; the others are for all.
_USED_BY = {
    "libsvm": {"index_base", "label"},
    "csv": {"label", "label_type", "header", "delimiter"},
    "parquet": {"label"},
    "arrow": {"label"},
    "npy": {"label", "labels"},
    "npz": {"label"},
    "mat": {"label"},
    "named": set[str](),
}
_FOR_ALL = {"format", "split", "precision"}


def read_data(
    name: str,
    reading: ReadingOptions,
    part: str,
    *,
    n_features: int | None = None,
    labelled: bool = True,
    on_disk: bool = False,
) -> LabeledData:
    """Read DATA; ``on_disk`` leaves the features of a file where they are.

    ``part`` is taken where there are several and ``--split`` does not say. ``n_features`` is what
    the model expects; None takes the data as it is. With ``labelled=False`` the data may lack
    labels, and labels that it has are of no interest.
    """
    parts = _named(name, reading) or _from_file(name, reading, n_features, labelled, on_disk)
    data = _choose(parts, reading.split.value if reading.split else None, part, name)
    if labelled and data.y is None:
        raise DataError("has no labels", path=name)
    return data


def describe_data(data: LabeledData) -> str:
    """The data in one line: where it is from, and how much there is."""
    from scipy import sparse

    source = "standard input" if data.source == "-" else data.source
    parts = [f"{data.n_samples} examples", f"{data.n_features} features"]
    if sparse.issparse(data.X):
        share = data.X.nnz / max(data.n_samples * data.n_features, 1)
        parts[-1] += f" ({share:.2%} nonzero)"
    if data.y is not None:
        parts.append(f"{len(set(data.y.tolist()))} classes")
    return f"{source}: {', '.join(parts)}"


def _named(name: str, reading: ReadingOptions) -> dict[str, LabeledData]:
    """The parts of a data set known by name, unless there is a file of that name."""
    if name not in EMBEDDED + DOWNLOADED or os.path.exists(name):
        return {}
    from shortlist import datasets

    _refuse_unused(reading, "named", name)
    if reading.format is not None:
        raise ValueError(f"--format is for files; {name} is a data set known by name")
    precision = reading.precision.value if reading.precision else "float64"
    if name in EMBEDDED:
        splits = datasets.load_letter(dtype=precision)
    else:
        splits = datasets.fetch(name)
    found = {split: getattr(splits, split) for split in ("train", "val", "test")}
    if name in DOWNLOADED and precision == "float32":
        found = {s: d and replace(d, X=d.X.astype(precision)) for s, d in found.items()}
    return {split: data for split, data in found.items() if data is not None}


def _from_file(
    name: str, reading: ReadingOptions, n_features: int | None, labelled: bool, on_disk: bool
) -> dict[str, LabeledData]:
    from shortlist import datasets
    from shortlist.datasets.read import data_format

    kind = reading.format.value if reading.format else data_format(name)
    _refuse_unused(reading, kind, name)
    looks_like_a_name = not os.path.splitext(name)[1] and os.sep not in name
    if name != "-" and looks_like_a_name and not os.path.lexists(name):
        known = ", ".join(EMBEDDED + DOWNLOADED)
        message = f"no such file, nor a data set of this name (those are {known})"
        raise DataError(message, path=name)
    options = _reader_options(reading, kind, labelled)
    return datasets.read_splits(
        name, format=kind, n_features=n_features, on_disk=on_disk, **options
    )


def _reader_options(reading: ReadingOptions, kind: str, labelled: bool) -> dict[str, Any]:
    options: dict[str, Any] = {"label": _label(reading.label)}
    if not labelled and reading.label == "auto" and kind in ("libsvm", "npy", "npz", "mat"):
        options["label"] = None  # whereas a table's label column must be told from its features
    if reading.precision is not None:
        options["dtype"] = reading.precision.value
    if kind == "libsvm" and reading.index_base is not IndexBase.auto:
        options["zero_based"] = reading.index_base is IndexBase.zero
    if kind == "csv":
        options["label_type"] = reading.label_type.value
        options["delimiter"] = reading.delimiter and reading.delimiter.replace("\\t", "\t")
        options["header"] = "auto" if reading.header is None else reading.header
    if kind == "npy":
        options["labels"] = reading.labels
    return options


def _label(text: str) -> str | int | None:
    if text == "none":
        return None
    try:
        return int(text)
    except ValueError:
        return text


def _refuse_unused(reading: ReadingOptions, kind: str, name: str) -> None:
    """An option that would be passed over in silence is an error."""
    for field in fields(reading):
        if field.name in _FOR_ALL | _USED_BY[kind]:
            continue
        if getattr(reading, field.name) != field.default:
            users = [k for k, used in _USED_BY.items() if field.name in used]
            option = "--" + field.name.replace("_", "-")
            raise ValueError(f"{option} is for {' and '.join(users)} files, which {name} is not")


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
