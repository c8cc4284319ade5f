"""Checks of ``ConformalShortlist``'s parameters, in the user's terms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from shortlist._parameters import is_integer, is_real
from shortlist.conformal._calibration import check_level
from shortlist.conformal._scores import (
    AdaptiveScore,
    LacScore,
    MarginScore,
    Score,
    TopKScore,
)

METHODS = ("marginal", "class_conditional", "clustered")
DEFAULT_LEVEL = 0.9
_PLAIN_SCORES: dict[str, type[Score]] = {
    "margin": MarginScore,
    "lac": LacScore,
    "topk": TopKScore,
}
_ADAPTIVE_SCORES = ("aps", "raps")


def make_score(name: str, include_last_label: Any) -> Score:
    """The score of this name; RAPS still without its penalty."""
    check_choice("score", name, (*_PLAIN_SCORES, *_ADAPTIVE_SCORES))
    if not isinstance(include_last_label, bool) and include_last_label != "randomized":
        raise ValueError(
            f"include_last_label must be True, False or 'randomized'; got {include_last_label!r}"
        )
    if name in _ADAPTIVE_SCORES:
        return AdaptiveScore(include_last_label)
    return _PLAIN_SCORES[name]()


def check_options(estimator: Any, n_classes: int) -> None:
    """ValueError for parameters that are wrong, or that do not go together."""
    check_choice("method", estimator.method, METHODS)
    check_choice("rare_classes", estimator.rare_classes, ("include", "pool"))
    if n_classes < 2:
        raise ValueError("the model knows a single class: there is nothing to choose from")
    if estimator.average_size is None:
        check_level(estimator.confidence_level)
    else:
        _check_size(estimator, n_classes)
    _check_number("n_clusters", estimator.n_clusters, is_integer, 1, "a whole number, 1 or larger")
    _check_number("raps_penalty", estimator.raps_penalty, is_real, 0, "a number, zero or larger")
    _check_number(
        "raps_places", estimator.raps_places, is_integer, 0, "a whole number, 0 or larger"
    )


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}")


def _check_size(estimator: Any, n_classes: int) -> None:
    size, level = estimator.average_size, estimator.confidence_level
    if level is not None and level != DEFAULT_LEVEL:
        raise ValueError(
            f"confidence_level={level!r} and average_size={size!r} exclude each other: a set "
            "either has a coverage or an average size. Leave one of them out"
        )
    if not is_real(size) or not 0 < size <= n_classes:
        raise ValueError(
            f"average_size must be a number above 0 and at most {n_classes}, the number of "
            f"classes; got {size!r}"
        )
    if estimator.method != "marginal":
        raise ValueError(
            f"average_size sets one threshold for all classes: it goes with method='marginal', "
            f"not {estimator.method!r}"
        )
    if estimator.score == "raps" and None in (estimator.raps_penalty, estimator.raps_places):
        raise ValueError(
            "score='raps' with average_size needs raps_penalty and raps_places: without a "
            "confidence level there is nothing to choose them by"
        )


def _check_number(
    name: str, value: Any, is_such: Callable[[Any], bool], least: float, wanted: str
) -> None:
    if value is None:
        return
    # Written so that NaN fails too.
    if not is_such(value) or not least <= value < math.inf:
        raise ValueError(f"{name} must be {wanted}, or None to have it chosen; got {value!r}")
