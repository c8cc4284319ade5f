"""How a file was read, so that another file can be read the same way."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from .._text import counted
from .scaling import Scaling

Column = str | int

# How :meth:`Reading.describe` says how the number of the first feature was decided.
_BASE_REASONS = {
    None: "",
    "given": "",
    "an index 0": " (there is an index 0)",
    "no index 0": " (guessed: there is no index 0)",
}
# The largest number of features that 32-bit indices can address.
_MAX_NUMBER = 2**31


@dataclass(frozen=True)
class Reading:
    """The facts of reading a file: what was given, found or guessed.

    ``read_dataset(path, like=reading)`` reads another file the same way. A model file can hold the
    result of :meth:`to_dict`, which is plain data for JSON.

    Attributes
    ----------
    format : str
        The file's format, one of :data:`shortlist._parameters.FORMATS`.
    n_features : int
    feature_names : tuple of str or None
        The features' names in order, where the file has any.
    columns : tuple of str or None
        Tables: the names of all columns, in the file's order.
    label : str, int or None
        Tables: the labels' column, by name, or by number where columns have no names.
    label_guess : str or None
        Why this column was taken for the labels; None if the caller named it.
    label_type : str
        How labels were taken: "auto", "int", "float" or "str".
    classes : tuple or None
        Several labels an example: the label of each column of the indicator.
    class_names : tuple of (label, name) pairs or None
    index_base : 0, 1 or None
        LibSVM text: the number of the first feature.
    index_base_from : str or None
        How the base was decided: "given", "an index 0" (found in the file) or "no index 0".
    drop, id_column, weight_column
        Tables: the columns left out, with names of examples, and with weights.
    missing : "error", "mean" or "drop"
        Tables: what became of missing values.
    fill : tuple of float or None
        With ``missing="mean"``: each feature's mean, used for other files too.
    delimiter : str or None
        CSV text: the delimiter if the caller gave one; otherwise the file's name decides.
    scaling : Scaling or None
        What the features were multiplied with and shifted by.
    """

    format: str
    n_features: int
    feature_names: tuple[str, ...] | None = None
    columns: tuple[str, ...] | None = None
    label: Column | None = None
    label_guess: str | None = None
    label_type: str = "auto"
    classes: tuple[Any, ...] | None = None
    class_names: tuple[tuple[Any, str], ...] | None = None
    index_base: int | None = None
    index_base_from: str | None = None
    drop: tuple[Column, ...] = ()
    id_column: Column | None = None
    weight_column: Column | None = None
    missing: str = "error"
    fill: tuple[float, ...] | None = None
    delimiter: str | None = None
    scaling: Scaling | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON, without what is at its default."""
        defaults = {field.name: field.default for field in fields(self)}
        stated = {name: value for name, value in asdict(self).items() if value != defaults[name]}
        return _as_lists(stated)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Reading:
        """Return what :meth:`to_dict` was made of; ValueError if it is no such thing."""
        unknown = sorted(set(data) - {field.name for field in fields(cls)})
        if unknown:
            raise ValueError(f"unknown entry {unknown[0]!r} in a description of data")
        values = {name: _as_tuples(value) for name, value in data.items() if name != "scaling"}
        for name, value in values.items():
            if value is not None and not _CHECKS[name](value):
                raise ValueError(f"{name} of a description of data cannot be {value!r}")
        for name in ("format", "n_features"):
            if values.get(name) is None:
                raise ValueError(f"a description of data lacks {name!r}")
        if data.get("scaling") is not None:
            values["scaling"] = Scaling.from_dict(data["scaling"], values["n_features"])
        reading = cls(**values)
        for name in ("feature_names", "fill"):
            entries = getattr(reading, name)
            if entries is not None and len(entries) != reading.n_features:
                raise ValueError(f"{name} of a description of data must have one entry a feature")
        return reading

    @property
    def guessed(self) -> bool:
        """Whether the labels' column or the number of the first feature is a guess."""
        return self.label_guess is not None or self.index_base_from == "no index 0"

    def describe(self) -> str:
        """Return the facts in a line, guesses named as such."""
        facts = [counted(self.n_features, "feature")]
        if self.label is not None:
            name = repr(self.label) if isinstance(self.label, str) else f"number {self.label}"
            guess = f" (guessed: {self.label_guess})" if self.label_guess else ""
            facts.insert(0, f"labels: column {name}{guess}")
        if self.classes is not None:
            facts.insert(0, f"several labels an example, {len(self.classes)} in all")
        if self.index_base is not None:
            facts.append(f"indices from {self.index_base}{_BASE_REASONS[self.index_base_from]}")
        for column, use in ((self.id_column, "names"), (self.weight_column, "weights")):
            if column is not None:
                facts.append(f"{use}: column {column!r}")
        if self.drop:
            facts.append(f"left out: {', '.join(map(repr, self.drop))}")
        if self.missing != "error":
            facts.append(f"missing values: {self.missing}")
        if self.scaling is not None:
            facts.append(f"scaled: {self.scaling.kind}")
        return "; ".join(facts)


def _as_lists(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _as_lists(item) for name, item in value.items()}
    return [_as_lists(item) for item in value] if isinstance(value, tuple) else value


def _as_tuples(value: Any) -> Any:
    return tuple(_as_tuples(item) for item in value) if isinstance(value, list | tuple) else value


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_column(value: Any) -> bool:
    return _is_text(value) or _is_number(value)


def _is_label(value: Any) -> bool:
    return isinstance(value, str | int | float | bool)


def _all(check: Any) -> Any:
    return lambda value: isinstance(value, tuple) and all(check(item) for item in value)


def _is_name_pair(value: Any) -> bool:
    return (
        isinstance(value, tuple) and len(value) == 2 and _is_label(value[0]) and _is_text(value[1])
    )


_CHECKS: dict[str, Any] = {
    "format": _is_text,
    "n_features": lambda value: _is_number(value) and 1 <= value <= _MAX_NUMBER,
    "feature_names": _all(_is_text),
    "columns": _all(_is_text),
    "label": _is_column,
    "label_guess": _is_text,
    "label_type": lambda value: value in ("auto", "int", "float", "str"),
    "classes": _all(_is_label),
    "class_names": _all(_is_name_pair),
    "index_base": lambda value: _is_number(value) and value in (0, 1),
    "index_base_from": lambda value: value in _BASE_REASONS,
    "drop": _all(_is_column),
    "id_column": _is_column,
    "weight_column": _is_column,
    "missing": lambda value: value in ("error", "mean", "drop"),
    "fill": _all(lambda value: isinstance(value, float) and math.isfinite(value)),
    "delimiter": lambda value: _is_text(value) and len(value) == 1,
}
