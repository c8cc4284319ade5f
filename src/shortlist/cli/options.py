"""The options that several commands share, in groups, and LIBLINEAR's way of writing some of them.

``options.ini`` has their words.
"""

import math
import os
import shutil
import sys
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from shortlist._parameters import (
    FORMATS,
    HINGE_VARIANTS,
    KERNELS,
    MISSING_POLICIES,
    SCALES,
    SPLIT_NAMES,
    TIE_POLICIES,
)
from shortlist.cli.declare import changed
from shortlist.losses.entries import names

# What an option can be chosen from: names that the library knows. Of it only the table of losses is
# imported for --help. A command gets its choice as text.
LossName = StrEnum("LossName", names())  # type: ignore[misc]
USUAL_LOSS = LossName("entropy")
Kernel = StrEnum("Kernel", KERNELS)  # type: ignore[misc]
Variant = StrEnum("Variant", HINGE_VARIANTS)  # type: ignore[misc]
Ties = StrEnum("Ties", TIE_POLICIES)  # type: ignore[misc]
USUAL_VARIANT, USUAL_TIES = Variant("alpha"), Ties("optimistic")
Precision = StrEnum("Precision", "float32 float64")
Format = StrEnum("Format", FORMATS)  # type: ignore[misc]
Split = StrEnum("Split", SPLIT_NAMES)  # type: ignore[misc]
LabelType = StrEnum("LabelType", "auto int str")
IndexBase = StrEnum("IndexBase", {"auto": "auto", "zero": "0", "one": "1"})
Missing = StrEnum("Missing", MISSING_POLICIES)  # type: ignore[misc]
Scale = StrEnum("Scale", SCALES)  # type: ignore[misc]
# The seeds that NumPy takes.
Seed = Annotated[int, {"min": 0, "max": 2**32 - 1}]

#: LIBLINEAR's -s, where the objective is one of Shortlist's.
LOSS_OF_TYPE = {0: "ova_logistic", 3: "ova_hinge", 4: "hinge", 7: "ova_logistic"}

_NO_SUCH_OBJECTIVE = {
    **dict.fromkeys((1, 2), "the squared hinge"),
    **dict.fromkeys((5, 6), "regularisation by the 1-norm"),
    **dict.fromkeys((11, 12, 13), "regression"),
    21: "outlier detection",
}


@dataclass(frozen=True)
class LossOptions:
    """Which loss."""

    loss: LossName = USUAL_LOSS
    k: int = 1
    liblinear_type: int | None = None

    @property
    def name(self) -> str:
        """The loss, by its name or LIBLINEAR's number."""
        if self.liblinear_type is None:
            return self.loss
        if self.loss != USUAL_LOSS:
            raise ValueError("-s and --loss exclude each other")
        return loss_of_type(self.liblinear_type)


@dataclass(frozen=True)
class MachineOptions:
    """Where training takes place, and in how much memory."""

    memory_limit: str | None = None
    workers: int | None = None
    ray: str | None = None

    def check(self, kernel: "KernelOptions") -> None:
        """Raise ValueError for options that do not go together."""
        if self.ray is not None and self.workers is None:
            raise ValueError("--ray needs --workers N: how many workers to train on")
        if self.workers is not None and kernel.kernel is not None:
            raise ValueError("--workers is for linear scores: leave it out, or --kernel")


@dataclass(frozen=True)
class ShapeOptions:
    """The rest of the objective: variants, margins, intercept, class weights."""

    variant: Variant = USUAL_VARIANT
    smoothing: float = 1.0
    margins: str | None = None
    rank_weights: str | None = None
    bias: float = 1.0
    no_intercept: bool = False
    class_weight: list[str] | None = None


@dataclass(frozen=True)
class KernelOptions:
    """Scores that are not linear."""

    kernel: Kernel | None = None
    gamma: str = "scale"
    degree: int = 3
    coef0: float = 0.0
    cache_size: float = 1024.0

    def parameters(self) -> dict[str, Any]:
        """The parameters of KernelTopKClassifier; ValueError for one that has no effect."""
        for _, flag in changed(self) if self.kernel is None else ():
            raise ValueError(f"{flag} goes with --kernel")
        given = asdict(self)
        if self.gamma not in ("scale", "auto"):
            try:
                given["gamma"] = float(self.gamma)
            except ValueError:
                raise ValueError(
                    f"--gamma must be a number, scale or auto; got {self.gamma!r}"
                ) from None
        return given


@dataclass(frozen=True)
class SolverOptions:
    """When training stops."""

    tol: float = 1e-3
    max_epochs: int = 1000
    seed: Seed = 0


@dataclass(frozen=True)
class OutputOptions:
    """The form and amount of the output."""

    as_json: bool = False
    quiet: bool = False

    def say(self, message: str) -> None:
        """Tell the user what happens, on standard error, unless it is to be quiet."""
        if not self.quiet:
            sys.stderr.write(f"{message}\n")
            sys.stderr.flush()


@dataclass(frozen=True)
class CheckpointOptions:
    """Where training is kept while it runs."""

    checkpoint: str | None = None
    checkpoint_every: float = 60.0
    resume: bool = False

    def parameters(self, output: OutputOptions, others: Iterable[str | None]) -> dict[str, Any]:
        """The estimator's parameters for checkpoints; an error if a checkpoint would be lost.

        ``others`` are the files that the command reads or writes: a checkpoint is removed at the
        end, and must be none of them.
        """
        if self.checkpoint is None:
            if self.resume:
                raise ValueError("--resume: say from where: --checkpoint PATH")
            return {}
        place = os.path.realpath(self.checkpoint)
        if place in (os.path.realpath(other) for other in others if other is not None):
            raise ValueError(
                f"--checkpoint {self.checkpoint}: is read or written here, and would be lost"
            )
        if os.path.lexists(self.checkpoint):
            if not self.resume:
                raise ValueError(
                    f"--checkpoint {self.checkpoint}: exists; go on from it with --resume, or "
                    "delete it"
                )
            output.say(f"going on from {self.checkpoint}")
        elif self.resume:
            output.say(f"{self.checkpoint}: no checkpoint yet, beginning anew")
        return {"checkpoint": self.checkpoint, "checkpoint_every": self.checkpoint_every}

    def remove(self) -> None:
        """Remove the checkpoint of training that is over."""
        if self.checkpoint is not None and os.path.isdir(self.checkpoint):
            shutil.rmtree(self.checkpoint, ignore_errors=True)
        elif self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)


@dataclass(frozen=True)
class ReadingOptions:
    """How DATA is to be read.

    A model keeps how its training data was read. ``predict`` and ``evaluate`` read their data the
    same way, but for what is said here.
    """

    format: Format | None = None
    split: Split | None = None
    label: str = "auto"
    labels: str | None = None
    names: str | None = None
    label_type: LabelType = LabelType.auto
    header: bool | None = None
    delimiter: str | None = None
    index_base: IndexBase = IndexBase.auto
    precision: Precision | None = None
    drop: list[str] | None = None
    id_column: str | None = None
    weight_column: str | None = None
    missing: Missing | None = None
    scale: Scale | None = None


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
        "variant": shape.variant,
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


def loss_of_type(number: int) -> str:
    """The loss that LIBLINEAR's solver of this type minimises; ValueError if there is none here."""
    if number in LOSS_OF_TYPE:
        return LOSS_OF_TYPE[number]
    known = ", ".join(map(str, LOSS_OF_TYPE))
    reason = _NO_SUCH_OBJECTIVE.get(number)
    what = f"{reason} is not offered here" if reason else "LIBLINEAR has no such type"
    raise ValueError(f"-s {number}: {what}; choose one of {known}, or a --loss")


def weights_hint(number: int | None, weights: Any, classes: Collection[Any]) -> str | None:
    """What to say where ``-w`` does not mean what it does for LIBLINEAR's ``-s``.

    LIBLINEAR trains a classifier for each class, and weighs a class in its own classifier only.
    Here its examples have the weight in all of them, as in scikit-learn.
    """
    if number is None or not weights or len(classes) < 3:
        return None
    from shortlist import losses

    if not losses.get(LOSS_OF_TYPE[number]).separable:
        return None
    return (
        f"note: -w weighs a class's examples against all other classes; LIBLINEAR's -s {number} "
        f"does so only where the class is told from the rest"
    )


def with_weights_joined(args: Sequence[str]) -> list[str]:
    """Arguments with ``-wLABEL WEIGHT``, as LIBLINEAR has it, turned into ``-w LABEL=WEIGHT``."""
    joined: list[str] = []
    rest = iter(args)
    for arg in rest:
        label = arg.removeprefix("-w")
        if label in ("", arg) or "=" in label or label == "balanced":
            joined.append(arg)
        else:
            joined += ["-w", f"{label}={next(rest, '')}"]
    return joined
