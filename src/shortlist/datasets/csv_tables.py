"""CSV text: a table with one example a line and the label in one of the columns."""

from __future__ import annotations

import csv
import math
import os
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from .._text import Phrase, Setting
from ..errors import DataError
from .columns import TableOptions, assign_roles, feature_columns, names_label, no_feature_hint
from .containers import LabeledData
from .files import STDIN, as_text, check_readable, format_suffix, open_data, parser_errors
from .how_read import Column, Reading
from .labels import check_label_type, parse_labels, shown
from .missing import MISSING_WORDS, fill_missing

# Separators that a file may use instead of the expected delimiter.
_SEPARATORS = ";\t| "


def read_csv(
    path: str | os.PathLike[str],
    *,
    label: Column | None = "auto",
    header: bool | str = "auto",
    delimiter: str | None = None,
    label_type: str | None = None,
    drop: Sequence[Column] = (),
    id_column: Column | None = None,
    weight_column: Column | None = None,
    missing: str | None = None,
    n_features: int | None = None,
    dtype: Any = np.float64,
    like: Reading | None = None,
) -> LabeledData:
    """Read CSV text: plain, .gz, .bz2 or .xz; "-" reads standard input.

    Columns are given by name, or by number (from 0; negative counts from the end).

    Parameters
    ----------
    path : path-like
    label : int, str or None
        The labels' column; None: there are no labels. "auto" takes the one column named label,
        labels, target, class or y, otherwise the last one; but no column if without one there are
        just ``n_features``. Where several have such names, or y stands beside x, it is an error.
    header : bool or "auto"
        Whether the first line names the columns. "auto": it does if none of it is a number.
    delimiter : str or None
        None is a tab for names ending in .tsv and a comma otherwise.
    label_type : "auto", "int", "float", "str" or None
        "auto" (and None): labels are integers if every one is, text if none is a number, and an
        error that names the line where they are mixed. See :mod:`shortlist.datasets.labels`.
    drop : sequence of int or str
        Columns to leave out.
    id_column, weight_column : int, str or None
        Columns with the examples' names and weights; neither is a feature.
    missing : "error", "mean", "drop" or None
        What to do about missing values (empty, NA, N/A, NaN, null, none or ?): an error (also for
        None), the feature's mean, or leave the example out.
    n_features : int or None
        Number of features the file must have.
    dtype : float64 or float32
    like : Reading or None
        How a file that goes with this one was read. The same features are taken, by name and in
        the same order; other columns are passed over.
    """
    if like is not None:
        # "int" is the default of LibSVM text; the caller has not asked for it.
        if like.format == "csv" or like.label_type == "str":
            label_type = label_type or like.label_type
        missing = missing or like.missing
        delimiter = delimiter or like.delimiter
    given_delimiter = delimiter
    label_type = label_type or "auto"
    check_label_type(label_type)
    if header not in (True, False, "auto"):
        raise ValueError(f'header must be True, False or "auto", got {header!r}')
    if np.dtype(dtype).kind != "f":
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")
    options = TableOptions(
        label, tuple(drop), id_column, weight_column, missing or "error", n_features, like
    )
    name = check_readable(path)
    if delimiter is None:
        delimiter = "\t" if format_suffix(name) == ".tsv" else ","
    if len(delimiter) != 1:
        raise ValueError(f"delimiter must be one character, got {delimiter!r}")
    with parser_errors("is not CSV text", name), open_data(name) as file, as_text(file) as text:
        try:
            table = _Table(text, name, delimiter, header, options)
            return table.read(label_type, np.dtype(dtype), given_delimiter)
        except UnicodeDecodeError as error:
            convert = f"convert it (iconv -f LATIN1 -t UTF-8 {name} > NEW, if it is Latin-1)"
            message = f"is not UTF-8 text ({error.reason}): {convert}"
            raise DataError(message, path=name) from None


class _Table:
    """The lines of a CSV file, and what its columns are for."""

    def __init__(
        self,
        text: Iterable[str],
        path: str,
        delimiter: str,
        header: bool | str,
        options: TableOptions,
    ) -> None:
        self.path, self.delimiter, self.options = path, delimiter, options
        self._underscore = False
        self._reader = csv.reader(self._watched(text), delimiter=delimiter, skipinitialspace=True)
        self._rows = (row for row in self._reader if row)  # blank lines are no examples
        first = next(self._rows, None)
        if first is None:
            raise DataError("holds no examples", path=path)
        self._first = [cell.strip() for cell in first]
        self._first_line = self._reader.line_num
        self.width = len(self._first)
        self.has_header = self._is_header(header)
        names = self._first if self.has_header else None
        self.roles = assign_roles(names, self.width, options, path)
        self._check_features()

    def _watched(self, text: Iterable[str]) -> Iterator[str]:
        """Note lines with an underscore: Python takes 1_0 for the number 10."""
        for line in text:
            if "_" in line:
                self._underscore = True
            yield line

    def _is_header(self, header: bool | str) -> bool:
        if header != "auto":
            return bool(header)
        asked = (self.options.label, self.options.id_column, self.options.weight_column)
        if any(isinstance(column, str) and column != "auto" for column in asked):
            return True  # a column is asked for by its name
        if any(isinstance(column, str) for column in self.options.drop):
            return True
        if names_label(self._first):
            return True
        like = self.options.like
        if like is not None and like.columns is not None:
            # A line of data holds a number. A header holds the known names, or no number at all.
            known = set(feature_columns(like)) <= set(self._first)
            return known or all(_number_or_none(cell) is None for cell in self._first)
        # The label may be a word in a line of data; the features may not.
        roles = assign_roles(None, self.width, self.options, self.path)
        features = [self._first[i] for i in roles.features]
        numbers = [self._is_data(cell) for cell in features]
        if all(numbers):
            return False
        if any(numbers):
            word = features[numbers.index(False)]
            raise DataError(
                f"is neither all names nor all numbers ({shown(word)} is not a number): pass "
                + Setting("header", True)
                + " or "
                + Setting("header", False)
                + self._joined_hint(word),
                path=self.path,
                line=self._first_line,
            )
        return True

    def _is_data(self, cell: str) -> bool:
        missing = self.options.missing != "error" and _is_missing(cell)
        return missing or _number_or_none(cell) is not None or _has_decimal_comma(cell)

    def _check_features(self) -> None:
        expected, found = self.options.expected, len(self.roles.features)
        if expected is not None and found != expected:
            message = f"has {found} features where {expected} are expected"
            raise DataError(message, path=self.path, line=self._first_line)
        if not found:
            raise DataError(
                f"has {_counted(self.width)}, so no features"
                + self._separator_hint(self._first[0]),
                path=self.path,
                line=self._first_line,
            )

    def _separator_hint(self, cell: str) -> Phrase:
        found = [mark for mark in _SEPARATORS if mark in cell and mark != self.delimiter]
        if not found:
            return Phrase()
        return f" (columns seem separated by {found[0]!r}: " + Setting("delimiter", found[0]) + ")"

    def _joined_hint(self, cell: str) -> Phrase:
        """The hint for a cell like '5;1', which may be two columns."""
        several = any(
            mark in cell and all(_number_or_none(part) is not None for part in cell.split(mark))
            for mark in _SEPARATORS
        )
        return self._separator_hint(cell) if several else Phrase()

    def _lines(self) -> Iterator[tuple[int, list[str]]]:
        """Yield every example's line number and cells, all of the same number."""
        rows = self._rows if self.has_header else chain([self._first], self._rows)
        first = not self.has_header
        for row in rows:
            line = self._first_line if first else self._reader.line_num
            first = False
            if len(row) != self.width:
                message = f"has {len(row)} columns where {self.width} are expected"
                raise DataError(message, path=self.path, line=line)
            yield line, row

    def read(self, label_type: str, dtype: np.dtype, given_delimiter: str | None) -> LabeledData:
        roles, options = self.roles, self.options
        values, lines = array("d"), array("q")
        others: dict[int, list[str]] = {
            i: [] for i in (roles.label, roles.id_column, roles.weight_column) if i is not None
        }
        features = roles.features
        for line, row in self._lines():
            try:
                if self._underscore:
                    raise ValueError
                values.extend([float(row[i]) for i in features])
            except ValueError:
                values.extend(self._numbers(row, line, first=not lines))
            self._underscore = False
            for column, cells in others.items():
                cells.append(row[column].strip())
            lines.append(line)
        if not lines:
            raise DataError("holds no examples, only a header", path=self.path)
        X = np.frombuffer(values, dtype=np.float64).reshape(len(lines), -1)
        filled = fill_missing(X, options, roles.feature_names, self.path)
        kept = np.flatnonzero(filled.kept).tolist()
        lines = array("q", [lines[i] for i in kept])
        others = {column: [cells[i] for i in kept] for column, cells in others.items()}
        self._check_finite(filled.X, lines)
        return LabeledData(
            filled.X.astype(dtype, copy=False),
            None if roles.label is None else self._labels(others[roles.label], lines, label_type),
            feature_names=roles.feature_names,
            source=self.path,
            reading=roles.reading(
                "csv",
                len(roles.features),
                feature_names=roles.feature_names,
                label_type=label_type,
                missing=options.missing,
                fill=filled.means,
                delimiter=given_delimiter,
            ),
            ids=None if roles.id_column is None else np.array(others[roles.id_column]),
            weight=None if roles.weight_column is None else self._weights(others, lines),
            left_out=len(X) - len(lines),
        )

    def _numbers(self, row: list[str], line: int, first: bool) -> list[float]:
        """Return a line's features one by one: some cell is no number."""
        numbers = []
        for column in self.roles.features:
            value = _number_or_none(row[column])
            if value is None:
                if self.options.missing == "error" or not _is_missing(row[column]):
                    raise self._bad_cell(row[column], column, line, of_text=first)
                value = math.nan
            numbers.append(value)
        return numbers

    def _check_finite(self, X: np.ndarray, lines: Sequence[int]) -> None:
        bad = np.flatnonzero(~np.isfinite(X).all(axis=1))
        if bad.size:
            row = X[bad[0]]
            place = int(np.flatnonzero(~np.isfinite(row))[0])
            raise self._bad_cell(str(row[place]), self.roles.features[place], lines[bad[0]])

    def _decimal_comma_hint(self, cell: str) -> str:
        hint = f"a decimal comma? write {cell.strip().replace(',', '.')}"
        if self.delimiter == "," or self.path == STDIN:
            return hint
        return f"{hint}: tr , . < {self.path} > NEW does so everywhere"

    def _bad_cell(self, cell: str, column: int, line: int, of_text: bool = False) -> DataError:
        """Say what is wrong with a cell that must be a finite number.

        ``of_text``: the first example has none there, so that the whole column may be text.
        """
        where = self.roles.shown(column)
        if not cell.strip():
            message = f"{where} is empty"
        elif _number_or_none(cell) is None:
            message = f"{where} is {shown(cell)}, not a number"
        else:
            message = f"{where} is {cell}, not finite"
        if _is_missing(cell):
            mean, drop = Setting("missing", "mean"), Setting("missing", "drop")
            advice = " (missing? " + mean + " fills it, " + drop + " leaves the example out)"
        elif _has_decimal_comma(cell):
            advice = Phrase(f" ({self._decimal_comma_hint(cell)})")
        else:
            advice = self._joined_hint(cell)
            if of_text and not advice.parts:
                advice = no_feature_hint(self.roles, column)
        return DataError(message + advice, path=self.path, line=line)

    def _labels(self, texts: list[str], lines: Sequence[int], label_type: str) -> np.ndarray:
        for text, line in zip(texts, lines, strict=True):
            if not text:
                raise DataError("the label is empty", path=self.path, line=line)
        return parse_labels(texts, lines, label_type, self.path)

    def _weights(self, others: dict[int, list[str]], lines: Sequence[int]) -> np.ndarray:
        column = self.roles.weight_column
        assert column is not None
        weights = []
        for cell, line in zip(others[column], lines, strict=True):
            weight = _number_or_none(cell)
            if weight is None or not 0 <= weight < math.inf:
                message = f"the weight is {shown(cell)}, not a number from 0 on"
                raise DataError(message, path=self.path, line=line)
            weights.append(weight)
        return np.array(weights)


def _counted(columns: int) -> str:
    return "one column" if columns == 1 else f"{columns} columns"


def _has_decimal_comma(cell: str) -> bool:
    return cell.count(",") == 1 and _number_or_none(cell.replace(",", ".")) is not None


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in MISSING_WORDS


def _number_or_none(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
