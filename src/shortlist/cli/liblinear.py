"""LIBLINEAR's way of writing options: types of solvers, and weights of classes."""

from collections.abc import Collection, Sequence
from typing import Any

#: LIBLINEAR's -s, where the objective is one of Shortlist's.
LOSS_OF_TYPE = {0: "ova_logistic", 3: "ova_hinge", 4: "hinge", 7: "ova_logistic"}

_NO_SUCH_OBJECTIVE = {
    1: "the squared hinge",
    2: "the squared hinge",
    5: "regularisation by the 1-norm",
    6: "regularisation by the 1-norm",
    11: "regression",
    12: "regression",
    13: "regression",
    21: "outlier detection",
}


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


def usage_hint(option: str | None) -> str:
    """Advice for users of LIBLINEAR on an option that was misused; empty if there is none."""
    if option == "-C":
        return ": a number. LIBLINEAR's -C, which searches for one, is shortlist cv"
    return ""


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
