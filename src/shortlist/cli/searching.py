"""The options of ``cv`` that say which models to try, and on what to measure them."""

from dataclasses import dataclass
from typing import Any, ClassVar

from shortlist.cli.options import parse_numbers
from shortlist.cli.unfold import option

SEARCH = "Search"
_USUAL_COSTS = "1e-5:1e3:9"
_USUAL_FOLDS = 5
_USUAL_EXTENSIONS = 4
_USUAL_REPEATS = 5


@dataclass(frozen=True)
class SearchOptions:
    """Which values of C to try, and how each is measured."""

    panel: ClassVar[str] = SEARCH

    costs: str | None = option(
        "--Cs NUMBERS",
        "The values of C: 0.1,1,10, or 1e-3:1e3:7 for seven from the first to the second, evenly "
        "spaced in logarithm. Without it: 1e-5:1e3:9.",
    )
    ks: str | None = option(
        "--ks 1,3,5",
        "The lengths of the shortlist to measure, and to choose a model for. Without it: 1, 3, 5, "
        "10 and the loss's own k, as far as there are classes.",
    )
    folds: int | None = option("-v --folds N", "Number of folds. Without it: 5.")
    validation: str | None = option(
        "--val DATA",
        "Measure on this data instead of on folds. It is read like DATA; of a data set in parts, "
        "its val. The models are then trained on DATA alone, as in the paper.",
    )
    extensions: int | None = option(
        "--extend N",
        "Where the best C is at an end of the range, try up to N values beyond it. Without it: 4, "
        "but none if --Cs is given.",
    )
    refine: int = option(
        "--refine N", "Then, N times, try C halfway between the best and its neighbours.", 0
    )
    patience: int | None = option(
        "--patience N",
        "Leave out the largest values of C once N in a row were worse than the best before them, "
        "for every k. Without it, all are tried.",
    )
    shots: int | None = option(
        "--shots N",
        "Few-shot training: instead of folds, random subsets with N examples of each class, "
        "measured on --val or else on all other examples. The models are those of the first "
        "subset.",
    )
    repeats: int | None = option("--repeats N", "How many such subsets. Without it: 5.")
    jobs: int = option("-j --jobs N", "Fits at a time.", 1)

    @property
    def n_folds(self) -> int | None:
        """The number of folds; None where something else is measured on."""
        if self.shots is not None or self.validation is not None:
            return None
        return _USUAL_FOLDS if self.folds is None else self.folds

    def parameters(self) -> dict[str, Any]:
        """Parameters of TopKClassifierCV without ``ks``; ValueError for options in conflict."""
        if self.folds is not None and self.folds < 2:
            raise ValueError(f"-v must be 2 or more folds; got {self.folds}")
        if self.folds is not None and self.shots is not None:
            raise ValueError("-v and --shots both say what to train on: give one of them")
        if self.jobs == 0:
            raise ValueError("--jobs must be 1 or more, or -1 for all processors; got 0")
        if self.repeats is not None and self.shots is None:
            raise ValueError("--repeats goes with --shots")
        extensions = 0 if self.costs else _USUAL_EXTENSIONS
        return {
            "Cs": parse_numbers(self.costs or _USUAL_COSTS, "--Cs", float),
            "cv": self.n_folds,
            "max_extensions": extensions if self.extensions is None else self.extensions,
            "refine": self.refine,
            "patience": self.patience,
            "shots": self.shots,
            "repeats": _USUAL_REPEATS if self.repeats is None else self.repeats,
            "n_jobs": self.jobs,
        }

    def wanted_ks(self) -> list[int] | None:
        """The lengths of shortlists that were asked for; None if none were."""
        return None if self.ks is None else parse_numbers(self.ks, "--ks", int)
