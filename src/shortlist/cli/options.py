"""The options that several commands share, in groups as ``--help`` shows them."""

import math
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, ClassVar

from shortlist.cli.liblinear import loss_of_type
from shortlist.cli.unfold import argument, option
from shortlist.losses.entries import names

MODEL = "The model"
KERNEL = "Kernel"
TRAINING = "Training"
OUTPUT = "Output"
LARGEST_SEED = 2**32 - 1


# What an option can be chosen from: names that the library knows. Of it only the table of losses is
# imported for --help.
LossName = StrEnum("LossName", names())  # type: ignore[misc]
Kernel = StrEnum("Kernel", "rbf poly linear precomputed")
Variant = StrEnum("Variant", "alpha beta printed")
Ties = StrEnum("Ties", "optimistic pessimistic expected")


class Precision(StrEnum):
    """The precisions of features, and so of training."""

    float32 = "float32"
    float64 = "float64"


# Arguments and options of several commands, as in ``data: str = DATA``.
DATA = argument(
    "DATA",
    "LibSVM text, .csv, .tsv (each also as .gz, .bz2 or .xz), .parquet, .arrow, .feather, .npy, "
    ".npz, .mat, or a folder of files of one format; - reads standard input; or a data set by "
    "name: letter (comes with Shortlist), news20, aloi, sector (downloaded once).",
    ...,
)
SAVED_MODEL = argument("MODEL", "A model that train or cv has saved.", ...)
COST = option(
    "-C -c --cost NUMBER",
    "Weight of the loss against the regularisation, scaled as in LIBLINEAR and scikit-learn. Large "
    "values fit the training data more closely. (LIBLINEAR's -C, which searches for a value, is "
    "shortlist cv.)",
    1.0,
    panel=MODEL,
)
QUIET = option(
    "-q --quiet",
    "Print no progress and no messages; results, warnings and errors remain.",
    False,
    panel=OUTPUT,
)


@dataclass(frozen=True)
class LossOptions:
    """Which loss."""

    panel: ClassVar[str] = MODEL

    loss: LossName = option(
        "--loss LOSS",
        "What to minimise: entropy (softmax regression at k=1), smooth_hinge, hinge (the "
        "multiclass SVM at k=1), truncated_entropy (nonconvex), mixed_entropy or "
        "mixed_smooth_hinge (the mean over 1 to k), or one-vs-all: ova_logistic, "
        "ova_smooth_hinge, ova_hinge. softmax is entropy at k=1.",
        LossName("entropy"),
    )
    k: int = option(
        "-k --k K", "Length of the shortlist to train for, 1 to the number of classes less one.", 1
    )
    liblinear_type: int | None = option(
        "-s TYPE",
        "Instead of --loss, LIBLINEAR's number for it: 0 or 7 (ova_logistic), 3 (ova_hinge), 4 "
        "(hinge).",
    )

    @property
    def name(self) -> str:
        """The loss, by its name or LIBLINEAR's number."""
        if self.liblinear_type is None:
            return self.loss.value
        if self.loss is not LossName("entropy"):
            raise ValueError("-s and --loss exclude each other")
        return loss_of_type(self.liblinear_type)


@dataclass(frozen=True)
class MachineOptions:
    """Where training takes place, and in how much memory."""

    panel: ClassVar[str] = TRAINING

    memory_limit: str | None = option(
        "--memory-limit SIZE",
        "Keep the process below this much memory, such as 4GB: DATA that is larger is read in "
        "pieces. With --workers: each of them, and they read DATA themselves.",
    )
    workers: int | None = option(
        "--workers N",
        "Train on so many workers of a Ray cluster, each with a part of DATA. They read the files "
        "of a folder themselves, under the same names; one file is read here.",
    )
    ray: str | None = option(
        "--ray ADDRESS",
        "The Ray cluster of --workers; 'auto' finds one on this machine. Without it one is started "
        "here and stopped again.",
    )

    def check(self, kernel: "KernelOptions") -> None:
        """Raise ValueError for options that do not go together."""
        if self.ray is not None and self.workers is None:
            raise ValueError("--ray needs --workers N: how many workers to train on")
        if self.workers is not None and kernel.kernel is not None:
            raise ValueError("--workers is for linear scores: leave it out, or --kernel")

    @property
    def given(self) -> list[str]:
        """The options that were used, as they are written."""
        used = [field.name for field in fields(self) if getattr(self, field.name) is not None]
        return [f"--{name.replace('_', '-')}" for name in used]


@dataclass(frozen=True)
class ShapeOptions:
    """The rest of the objective: variants, margins, intercept, class weights."""

    panel: ClassVar[str] = MODEL

    variant: Variant = option(
        "--variant alpha|beta|printed",
        "Which of the paper's two top-k simplices; the same at k=1. printed, for the hinges, is "
        "alpha by the paper's formula.",
        Variant.alpha,
    )
    smoothing: float = option(
        "--smoothing NUMBER",
        "How much the smooth hinges are rounded; near 0 they are the plain hinges.",
        1.0,
    )
    margins: str | None = option(
        "--margins ldam|NUMBERS",
        "By how much labels are to lead, for the hinges: a number for each class, in order and "
        "separated by commas; ldam asks more of rare classes. 1 by default.",
    )
    rank_weights: str | None = option(
        "--rank-weights NUMBERS",
        "Weights of the worst, second worst, ... wrong label, for the hinges, such as 3,2,1; in "
        "place of k equal ones. For the mixtures, the weights that stand for the shares of each k.",
    )
    bias: float = option(
        "-B --bias NUMBER",
        "The intercept is the weight of a constant feature of this value. It is regularised like "
        "every weight; the larger the value, the less. 0 or less, as in -B -1: no intercept. "
        "(LIBLINEAR has none unless -B asks for it, Shortlist has one unless -B says no.)",
        1.0,
    )
    no_intercept: bool = option("--no-intercept", "The same as -B -1.", False)
    class_weight: list[str] | None = option(
        "-w --class-weight LABEL=WEIGHT",
        "Let a class count so many times; may be repeated. 'balanced' weighs every class by the "
        "inverse of its frequency.",
    )


@dataclass(frozen=True)
class KernelOptions:
    """Scores that are not linear."""

    panel: ClassVar[str] = KERNEL

    kernel: Kernel | None = option(
        "--kernel KERNEL",
        "rbf, exp(-gamma |x - z|^2); poly, (gamma <x, z> + coef0)^degree; linear; or precomputed, "
        "where DATA is the matrix itself. Without it: linear scores, trained by their weights.",
    )
    gamma: str = option(
        "--gamma NUMBER",
        "A number, scale (1 over the number of features times their variance), or auto (1 over the "
        "number of features).",
        "scale",
    )
    degree: int = option("--degree N", "Of poly.", 3)
    coef0: float = option("--coef0 NUMBER", "Of poly.", 0.0)
    cache_size: float = option("--cache-size MEBIBYTES", "Memory for the kernel's matrix.", 1024.0)

    def parameters(self) -> dict[str, Any]:
        """The parameters of KernelTopKClassifier; ValueError for one that has no effect."""
        changed = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        if self.kernel is None and changed:
            raise ValueError(f"--{changed[0].replace('_', '-')} goes with --kernel")
        given = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.gamma not in ("scale", "auto"):
            try:
                given["gamma"] = float(self.gamma)
            except ValueError:
                raise ValueError(
                    f"--gamma must be a number, scale or auto; got {self.gamma!r}"
                ) from None
        return {**given, "kernel": self.kernel and self.kernel.value}


@dataclass(frozen=True)
class SolverOptions:
    """How far to go."""

    panel: ClassVar[str] = TRAINING

    tol: float = option(
        "-e --tol NUMBER",
        "Stop when the objective is certified to be within this share of the best possible (the "
        "relative duality gap).",
        1e-3,
    )
    max_epochs: int = option(
        "--max-epochs N", "Stop after so many passes over the data in any case.", 1000
    )
    seed: int = option(
        "--seed N",
        "Seeds the order of visits: the same seed, the same model.",
        0,
        min=0,
        max=LARGEST_SEED,
    )


@dataclass(frozen=True)
class OutputOptions:
    """The form and amount of the output."""

    panel: ClassVar[str] = OUTPUT

    as_json: bool = option("--json", "Print the result as JSON.", False)
    quiet: bool = QUIET


def estimator_parameters(
    loss: LossOptions, shape: ShapeOptions, solver: SolverOptions, output: OutputOptions
) -> dict[str, Any]:
    """The options as parameters of TopKClassifier, ``C`` and ``class_weight`` apart."""
    if not math.isfinite(shape.bias):
        raise ValueError(f"-B must be a finite number; got {shape.bias}")
    fit_intercept = shape.bias > 0 and not shape.no_intercept
    return {
        "loss": loss.name,
        "k": loss.k,
        "variant": shape.variant.value,
        "smoothing": shape.smoothing,
        "margins": _numbers_unless(shape.margins, "ldam", "--margins"),
        "rank_weights": _numbers_unless(shape.rank_weights, None, "--rank-weights"),
        "fit_intercept": fit_intercept,
        "intercept_scaling": shape.bias if fit_intercept else 1.0,
        "tol": solver.tol,
        "max_epochs": solver.max_epochs,
        "random_state": solver.seed,
        "verbose": 0 if output.quiet else 1,
    }


def _numbers_unless(text: str | None, name: str | None, option: str) -> Any:
    """A list of numbers, unless nothing or this name was given."""
    return text if text is None or text == name else parse_numbers(text, option, float)


def class_weights(given: list[str] | None, classes: Any) -> Any:
    """The ``class_weight`` of TopKClassifier: None, "balanced" or a dictionary.

    ``classes`` are the labels of the training data, so that a misspelt label is an error.
    """
    if not given:
        return None
    if "balanced" in given:
        if len(given) > 1:
            raise ValueError("--class-weight is either balanced or LABEL=WEIGHT, not both")
        return "balanced"
    by_text = {str(label): label for label in classes}
    weights = {}
    for entry in given:
        text, equals, number = entry.rpartition("=")
        try:
            weight = float(number)
        except ValueError:
            weight = math.nan
        if not equals or not 0 <= weight < math.inf:
            raise ValueError(
                f"--class-weight must be balanced or LABEL=WEIGHT with a weight of 0 or more; "
                f"got {entry!r}"
            )
        if text not in by_text:
            raise ValueError(f"--class-weight: the data has no label {text!r}")
        weights[by_text[text]] = weight
    return weights


def parse_numbers(text: str, option: str, kind: type[int] | type[float]) -> list[Any]:
    """Numbers from "1,3,5", or from "1e-3:1e3:7", seven of them evenly spaced in logarithm."""
    try:
        if kind is float and text.count(":") == 2:
            first, last, count = text.split(":")
            import numpy as np

            return np.geomspace(float(first), float(last), int(count)).tolist()
        return [kind(part) for part in text.split(",")]
    except ValueError:
        span = " or FIRST:LAST:COUNT such as 1e-3:1e3:7" if kind is float else ""
        raise ValueError(
            f"{option} must be numbers separated by commas{span}; got {text!r}"
        ) from None
