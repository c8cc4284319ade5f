"""Shortlists of the length that each example needs, for ``predict --coverage``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from shortlist.cli.models import blocks_of_rows, ranked_columns, read_validation
from shortlist.cli.reading import ReadingOptions
from shortlist.cli.unfold import option

if TYPE_CHECKING:
    from shortlist.conformal import ConformalShortlist
    from shortlist.datasets.reading import Reading

SETS = "Lists as long as needed"


@dataclass(frozen=True)
class SetOptions:
    """The coverage or mean length of the lists, and the examples that calibrate them."""

    panel: ClassVar[str] = SETS

    coverage: float | None = option(
        "--coverage SHARE",
        "Lists that hold the right label with this probability, such as 0.95. Needs --calibrate.",
    )
    average_size: float | None = option(
        "--average-size NUMBER",
        "Instead of --coverage: lists of this length on average, long where they need to be. Needs "
        "--calibrate.",
    )
    calibrate: str | None = option(
        "--calibrate FILE",
        "Examples with labels that the model was not trained on. Of data in several parts, val. "
        "With --proba, probabilities are fitted to them (temperature scaling).",
    )

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
        from shortlist.datasets import DataError

        if self.calibrate is None:
            if hasattr(model, "predict_proba"):
                return model
            raise DataError(
                f"a model trained with {model.loss}, k={model.k} gives scores but no "
                "probabilities: leave out --proba, or fit them with --calibrate FILE",
                path=path,
            )
        from shortlist.probabilities import TemperatureScaling

        examples = read_validation(like, self.calibrate, reading)
        try:
            return TemperatureScaling(model).fit(examples.X, examples.y)
        except (TypeError, ValueError) as error:
            raise DataError(str(error), path=self.calibrate) from None

    def around(self, model: Any, like: Reading, reading: ReadingOptions) -> ConformalShortlist:
        """The sets around a model, calibrated."""
        from shortlist.conformal import ConformalShortlist
        from shortlist.datasets import DataError

        most = len(model.classes_)
        if self.average_size is not None and not 0 < self.average_size <= most:
            raise ValueError(
                f"--average-size must be above 0 and at most {most}, the model's number of "
                f"classes; got {self.average_size:g}"
            )
        name = str(self.calibrate)
        examples = read_validation(like, name, reading)
        sets = ConformalShortlist(model, self.coverage, average_size=self.average_size)
        try:
            return sets.conformalize(examples.X, examples.y)
        except (TypeError, ValueError) as error:
            raise DataError(str(error), path=name) from None


def set_blocks(sets: ConformalShortlist, X: Any, probable: Any) -> Iterator[tuple[list, list]]:
    """Yield columns of labels, best first, and scores of the sets, a block of rows at a time."""
    for rows in blocks_of_rows(sets.model, X):
        inside = sets.predict_set(X[rows]).toarray()
        order, values = ranked_columns(sets.model, X[rows], inside.shape[1], probable)
        kept = [mine[columns] for columns, mine in zip(order, inside, strict=True)]
        yield (
            [columns[mine].tolist() for columns, mine in zip(order, kept, strict=True)],
            [row[mine].tolist() for row, mine in zip(values, kept, strict=True)],
        )
