"""The parameters of RAPS, chosen on examples that calibration does not use.

The recipe is that of Angelopoulos, Bates, Jordan and Malik (2021): the first places that hold the
label often enough are free of penalty, and the penalty is the one with the shortest sets.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from shortlist._responses import Responses
from shortlist.conformal._calibration import samples_needed, upper_quantile
from shortlist.conformal._passes import Examples, chunks_of, label_scores, sizes_and_hits
from shortlist.conformal._scores import AdaptiveScore, TopKScore

#: The share of the calibration examples that tuning takes.
TUNING_SHARE = 0.2
_PENALTIES = (0.001, 0.01, 0.1, 0.2, 0.5)


def check_enough_to_tune(n_samples: int, level: float) -> None:
    """ValueError if a share of the examples is too little for the level."""
    needed = math.ceil(samples_needed(level) / TUNING_SHARE)
    if n_samples < needed:
        raise ValueError(
            f"choosing the penalty of score='raps' at confidence_level={level:g} needs at least "
            f"{needed} calibration examples; got {n_samples}. Give raps_penalty and raps_places, "
            "or use score='aps'"
        )


def tuned(
    score: AdaptiveScore,
    responses: Responses,
    examples: Examples,
    columns: NDArray[np.intp],
    level: float,
    penalty: float | None,
    places: int | None,
) -> AdaptiveScore:
    """The score with its penalty and free places: the given ones, the others chosen."""
    if places is None:
        own_places = label_scores(responses, TopKScore(), examples, columns)
        places = int(upper_quantile(own_places, level))
    if penalty is not None:
        return replace(score, penalty=penalty, free_places=places)
    candidates = [replace(score, penalty=value, free_places=places) for value in _PENALTIES]
    return min(candidates, key=lambda one: _mean_length(one, responses, examples, columns, level))


def _mean_length(
    score: AdaptiveScore,
    responses: Responses,
    examples: Examples,
    columns: NDArray[np.intp],
    level: float,
) -> float:
    threshold = upper_quantile(label_scores(responses, score, examples, columns), level)
    thresholds = np.full((1, len(responses.classes)), threshold)
    sizes, _ = sizes_and_hits(chunks_of(responses, score, examples), columns, thresholds)
    return float(sizes.mean())
