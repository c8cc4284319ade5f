"""Who calls: where warnings point, and whether scikit-learn searches with an estimator."""

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any


def level_outside() -> int:
    """The stacklevel of the first caller outside this package and scikit-learn's decorator."""
    inside = (__name__.partition(".")[0], "sklearn.callback")
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None:
        module = frame.f_globals.get("__name__", "")
        if not any(_is_within(package, module) for package in inside):
            break
        frame, level = frame.f_back, level + 1
    return level


# scikit-learn does not tell an estimator that it is part of a search, nor how it will be judged:
# clones and set_params look the same with any ``scoring``, and metadata goes to ``score`` only if
# the user routes it. So a search over k by each model's own score is recognised by the frames that
# call. Frames are read, never changed: if scikit-learn renames things, only the warning is missing.
# A note that clones share would not do: a search in other processes copies it, and its warning is
# lost there.


def is_called_from(package: str) -> bool:
    """Whether a function of that package is among the callers."""
    return next(_callers(package), None) is not None


def is_refitted_by_own_score() -> bool:
    """Whether a search of scikit-learn without ``scoring`` is among the callers.

    The search refits its choice in the user's process. It may have scored models in other
    processes, whose warnings do not reach a notebook.
    """
    for frame in _callers("sklearn.model_selection"):
        search: Any = frame.f_locals.get("self")
        if hasattr(search, "scoring") and hasattr(search, "best_params_"):
            return bool(search.scoring is None)
    return False


def _callers(package: str) -> Iterator[FrameType]:
    """The frames of that package's functions among the callers."""
    frame = sys._getframe(1).f_back
    while frame is not None:
        if _is_within(package, frame.f_globals.get("__name__", "")):
            yield frame
        frame = frame.f_back


def _is_within(package: str, module: str) -> bool:
    return module == package or module.startswith(f"{package}.")
