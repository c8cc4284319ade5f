"""A model's classes as people know them: labels as in the data, and names where there are any."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from shortlist.errors import DataError


@dataclass(frozen=True)
class Classes:
    """The label of each column of a model's scores, and the names of labels."""

    labels: tuple[Any, ...]
    names: dict[Any, str]

    @classmethod
    def of_model(cls, model: Any, names_file: str | None = None) -> Classes:
        """The classes of a model; a file of names counts more than names that the model keeps."""
        from shortlist.cli.models import reading_of

        reading = reading_of(model)
        labels = tuple(model.classes_.tolist()) if reading.classes is None else reading.classes
        if names_file is None:
            return cls(labels, dict(reading.class_names or ()))
        from shortlist.datasets import pair_names, read_class_names

        try:
            pairs = pair_names(list(labels), read_class_names(names_file))
        except DataError:
            raise
        except ValueError as error:
            raise DataError(str(error), path=names_file) from None
        return cls(labels, dict(pairs))

    def name(self, label: Any) -> str | None:
        return self.names.get(label)

    def shown(self, label: Any) -> str:
        """A label for people, with its name."""
        name = self.name(label)
        return str(label) if name is None else f"{label} ({name})"

    def at(self, columns: Iterable[int]) -> list[Any]:
        """The labels of columns."""
        return [self.labels[column] for column in columns]
