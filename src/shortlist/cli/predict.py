"""``shortlist predict``: the shortlist of every example."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from shortlist._text import counted
from shortlist.cli.data import read_data
from shortlist.cli.models import (
    Classes,
    blocks_of_rows,
    checked_length,
    load_model,
    ranked_columns,
    read_validation,
    reading_of,
    say_differences,
)
from shortlist.cli.options import OutputOptions, ReadingOptions
from shortlist.cli.output import check_output, is_device, is_standard_output, standard_output
from shortlist.errors import DataError

if TYPE_CHECKING:
    from shortlist.conformal import ConformalShortlist
    from shortlist.datasets.how_read import Reading

# Beginnings of a formula in spreadsheets, which also skip a tab or return before it.
_FORMULAS = ("=", "+", "-", "@", "\t", "\r")

# The numbers of an example's classes, best first, and their scores.
Shortlist = tuple[list[int], list[float]]


@dataclass(frozen=True)
class SetOptions:
    """The coverage or mean length of the lists, and the examples that calibrate them."""

    coverage: float | None = None
    average_size: float | None = None
    calibrate: str | None = None

    def wanted(self, probabilities: bool) -> bool:
        """Whether lists of different lengths are asked for; ValueError if an option is missing."""
        asked = [self.coverage is not None, self.average_size is not None]
        if all(asked):
            raise ValueError("--coverage and --average-size exclude each other")
        if any(asked) and self.calibrate is None:
            raise ValueError(
                "--coverage and --average-size need --calibrate FILE, examples with labels that "
                "the model was not trained on"
            )
        if self.calibrate is not None and not (any(asked) or probabilities):
            raise ValueError("--calibrate goes with --coverage, --average-size or --proba")
        if self.coverage is not None and not 0 < self.coverage < 1:
            raise ValueError(f"--coverage must be between 0 and 1; got {self.coverage:g}")
        return any(asked)

    def probable(self, model: Any, like: Reading, reading: ReadingOptions, path: str) -> Any:
        """The model itself if it has probabilities, or its temperature scaling if calibrated."""
        if self.calibrate is None:
            if hasattr(model, "predict_proba"):
                return model
            raise DataError(
                f"a model trained with {model.loss}, k={model.k} gives scores but no "
                "probabilities: leave out --proba, or fit them with --calibrate FILE",
                path=path,
            )
        from shortlist.probabilities import TemperatureScaling

        return self._calibrated(TemperatureScaling(model).fit, like, reading)

    def around(self, model: Any, like: Reading, reading: ReadingOptions) -> ConformalShortlist:
        """The sets around a model, calibrated."""
        from shortlist.conformal import ConformalShortlist

        most = len(model.classes_)
        if self.average_size is not None and not 0 < self.average_size <= most:
            raise ValueError(
                f"--average-size must be above 0 and at most {most}, the model's number of "
                f"classes; got {self.average_size:g}"
            )
        sets = ConformalShortlist(model, self.coverage, average_size=self.average_size)
        return self._calibrated(sets.conformalize, like, reading)

    def _calibrated(self, fit: Callable, like: Reading, reading: ReadingOptions) -> Any:
        """What ``fit`` makes of the examples of --calibrate."""
        name = str(self.calibrate)
        examples = read_validation(like, name, reading)
        try:
            return fit(examples.X, examples.y)
        except (TypeError, ValueError) as error:
            raise DataError(str(error), path=name) from None


def predict(
    *,
    model: str,
    data: str,
    k: int | None = None,
    probabilities: bool = False,
    scores: bool = True,
    sets: SetOptions,
    reading: ReadingOptions,
    output: str = "-",
    spreadsheet: bool = False,
    as_json: bool = False,
    quiet: bool = False,
) -> None:
    """Print the k most likely labels of every example, best first, and their scores.

    The output is CSV with a header: label_1 to label_k, score_1 to score_k (or probability_1 to
    probability_k), a line for each example in the order of DATA; with a column id in front and
    name_1 to name_k between, where examples or classes have names. Labels in DATA are not looked
    at, and need not be there.

    With --coverage each list is as long as its example needs, for the right label to be in it with
    the probability given. Fields beyond the end of a list are empty.

    Examples:
      shortlist predict letter.model letter --k 3 | head
      shortlist predict model new.csv --proba -o shortlists.csv
      shortlist predict letter.model letter --coverage 0.95 --calibrate letter
    """
    check_output(output, inputs=(model, data, sets.calibrate, reading.labels, reading.names))
    adaptive = sets.wanted(probabilities)
    if adaptive and k is not None:
        raise ValueError("--k and --coverage or --average-size exclude each other")
    saved = load_model(model, scores_only=not (adaptive or probabilities))
    length = checked_length(saved, k)
    trained = saved.model_for(length)
    like = reading_of(saved)
    probable = sets.probable(trained, like, reading, model) if probabilities else None
    classes = Classes.of_model(saved, reading.names)
    calibrated = sets.around(trained, like, reading) if adaptive else None
    examples = read_data(data, reading, "test", like=like, labelled=False)
    say_differences(OutputOptions(quiet=quiet), examples, like, labelled=False)
    if calibrated is None:
        shortlists = _shortlists(trained, examples.X, length, probable)
    else:
        # The header tells the length of the longest list: all are made before one is written.
        made = list(_sets(calibrated, examples.X, probable))
        length = max((len(columns) for columns, _ in made), default=0)
        shortlists = iter(made)
    ids = None if examples.ids is None else examples.ids.tolist()
    values = ("probability", "probabilities") if probabilities else ("score", "scores")
    lines = _Lines(classes, ids, length, values if scores else None, spreadsheet)
    with _opened(output) as file:
        (lines.write_json if as_json else lines.write_csv)(file, shortlists)
    if lines.defused:
        fields = counted(len(lines.defused), "field")
        sys.stderr.write(f"shortlist: a ' was put before {fields} that begin like a formula\n")


def _shortlists(model: Any, X: Any, k: int, probable: Any) -> Iterator[Shortlist]:
    for rows in blocks_of_rows(model, X):
        columns, values = ranked_columns(model, X[rows], k, probable)
        yield from zip(columns.tolist(), values.tolist(), strict=True)


def _sets(sets: ConformalShortlist, X: Any, probable: Any) -> Iterator[Shortlist]:
    """The same with the labels in each example's set only."""
    for rows in blocks_of_rows(sets.model, X):
        inside = sets.predict_set(X[rows]).toarray()
        ranked = ranked_columns(sets.model, X[rows], inside.shape[1], probable)
        for columns, values, mine in zip(*ranked, inside, strict=True):
            kept = mine[columns]
            yield columns[kept].tolist(), values[kept].tolist()


@dataclass(frozen=True)
class _Lines:
    """Writes shortlists, a line for each example.

    ``values`` is what the numbers are called, one of them and several; None leaves them out.
    """

    classes: Classes
    ids: list[str] | None
    length: int
    values: tuple[str, str] | None
    for_spreadsheet: bool
    defused: list[str] = field(default_factory=list)

    def write_csv(self, file: IO[str], shortlists: Iterator[Shortlist]) -> None:
        import csv

        writer = csv.writer(file, lineterminator="\n")
        words = ["label", *(["name"] if self.classes.names else [])]
        words += [self.values[0]] if self.values else []
        header = [f"{word}_{i}" for word in words for i in range(1, self.length + 1)]
        writer.writerow(header if self.ids is None else ["id", *header])
        for number, (columns, scores) in enumerate(shortlists):
            beyond = [""] * (self.length - len(columns))
            labels = self.classes.at(columns)
            line = [] if self.ids is None else [self.ids[number]]
            line += labels + beyond
            if self.classes.names:
                line += [self.classes.names.get(label) or "" for label in labels] + beyond
            if self.for_spreadsheet:
                line = [self._defuse(cell) for cell in line]
            if self.values:
                line += [f"{score:.7g}" for score in scores] + beyond
            writer.writerow(line)

    def _defuse(self, cell: Any) -> Any:
        """Text as it is, or with a ' in front if it begins like a formula."""
        if not isinstance(cell, str) or not cell.startswith(_FORMULAS):
            return cell
        self.defused.append(cell)
        return f"'{cell}"

    def write_json(self, file: IO[str], shortlists: Iterator[Shortlist]) -> None:
        for number, (columns, scores) in enumerate(shortlists):
            labels = self.classes.at(columns)
            entry: dict[str, Any] = {} if self.ids is None else {"id": self.ids[number]}
            entry["labels"] = labels
            if self.classes.names:
                entry["names"] = [self.classes.names.get(label) for label in labels]
            if self.values:
                entry[self.values[1]] = scores
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


@contextmanager
def _opened(path: str) -> Iterator[IO[str]]:
    if is_standard_output(path):
        yield standard_output()
        return
    from shortlist._files import atomic_write

    place = nullcontext(Path(path)) if is_device(Path(path)) else atomic_write(path)
    with place as part, open(part, "w", encoding="utf-8", newline="") as file:
        yield file
