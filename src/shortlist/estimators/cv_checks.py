"""What a search may be asked: its families, ks and counts, checked in the user's terms."""

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal

from shortlist._parameters import PLAIN_LOSS_PARAMETERS, check_k, is_integer
from shortlist._text import Setting
from shortlist.errors import ParameterError, WordedError
from shortlist.estimators.callers import level_outside
from shortlist.estimators.linear import TopKClassifier
from shortlist.estimators.parameters import check_parameters
from shortlist.losses import Loss

# What a family in ``losses`` may not set: C is searched, and these belong to the whole search.
_NOT_PER_FAMILY = frozenset(
    {"C", "normalize", "warm_start", "random_state", "verbose", "checkpoint", "checkpoint_every"}
)

# What the chosen models are trained on: all examples, the first of several subsets, or nothing, as
# the models of the search are taken as they are.
RefitOn = Literal["all", "first", "nothing"]


def families_of(search: Any, multilabel: bool = False) -> list[tuple[TopKClassifier, Loss]]:
    """One unfitted classifier for each family to search, parameters checked, and its loss."""
    names = TopKClassifier._get_param_names()
    shared = {name: getattr(search, name) for name in names if hasattr(search, name)}
    families = []
    for own in _entries(search):
        allowed = sorted(set(names) - _NOT_PER_FAMILY)
        unknown = sorted(set(own) - set(allowed), key=str)
        if unknown:
            may = f" may set {', '.join(allowed)}; got {unknown[0]!r}"
            raise WordedError("a family in " + Setting("losses") + may)
        changes = {"random_state": None, "verbose": max(0, search.verbose - 1)}
        family = TopKClassifier(**{**shared, **own, **changes})
        families.append((family, check_parameters(family, multilabel)))
    if not families:
        raise ParameterError("losses", "must hold at least one family; it is empty")
    return families


def settings_of(search: Any, families: list[TopKClassifier]) -> list[dict[str, Any]]:
    """The ``families_`` of a search: what each of its families is, and what else it set."""
    return [
        {name: getattr(family, name) for name in dict.fromkeys((*PLAIN_LOSS_PARAMETERS, *own))}
        for family, own in zip(families, _entries(search), strict=True)
    ]


def _entries(search: Any) -> list[dict[str, Any]]:
    """What each entry of ``losses`` sets."""
    listed: Sequence[Any] = [search.loss] if search.losses is None else search.losses
    if isinstance(listed, str | dict) or not hasattr(listed, "__iter__"):
        raise TypeError(f"losses must be a list of names or dictionaries; got {listed!r}")
    entries = [{"loss": entry} if isinstance(entry, str) else entry for entry in listed]
    for entry in entries:
        if not isinstance(entry, dict):
            raise TypeError(f"every entry of losses must be a name or a dictionary; got {entry!r}")
    return entries


def usable_ks(ks: Any, n_classes: int) -> tuple[int, ...]:
    """The distinct ks below the number of classes, in increasing order."""
    listed = [ks] if isinstance(ks, Integral) else ks
    if isinstance(listed, str | bytes) or not hasattr(listed, "__iter__"):
        raise TypeError(f"ks must be a list of integers; got {ks!r}")
    listed = list(listed)
    if not listed:
        raise ParameterError("ks", "must hold at least one k; it is empty")
    for k in listed:
        if not is_integer(k) or k < 1:
            problem = f" must be an integer, 1 or larger; got {k!r}"
            raise WordedError("every k in " + Setting("ks") + problem)
    distinct = sorted({int(k) for k in listed})
    usable = tuple(k for k in distinct if k < n_classes)
    if not usable:
        raise ParameterError(
            "ks",
            f"must hold a k below the number of classes, {n_classes}; got {distinct}: "
            "a shortlist of all labels is always right",
        )
    if len(usable) < len(distinct):
        dropped = ", ".join(str(k) for k in distinct if k >= n_classes)
        warnings.warn(
            f"with {n_classes} classes no model is chosen for k={dropped}: a shortlist of all "
            "labels is always right",
            UserWarning,
            stacklevel=level_outside(),
        )
    return usable


def check_counts(search: Any) -> None:
    """Raise ValueError unless the search's whole numbers are such, and large enough."""
    least = {"max_extensions": 0, "refine": 0, "repeats": 1}
    optional = {"patience": 1, "shots": 1}
    for name, smallest in (least | optional).items():
        value = getattr(search, name)
        if value is None and name in optional:
            continue
        if not is_integer(value) or value < smallest:
            or_none = " or None" if name in optional else ""
            raise ParameterError(
                name, f"must be an integer, {smallest} or larger{or_none}; got {value!r}"
            )
    if search.shots is not None and search.cv is not None:
        both = " both say what to train on: give one of them"
        raise WordedError(Setting("shots") + " and " + Setting("cv") + both)


def check_own_k(search: Any, n_classes: int) -> None:
    """Raise unless ``k``, the length of the shortlists it gives, leaves a label out.

    A loss checks its own k, which families in ``losses`` may set.
    """
    check_k(search.k, n_classes - 1, "the number of classes less one")


def check_for_several_labels(search: Any) -> None:
    """Raise ParameterError for what a search takes only with one label per example."""
    several = "is for one label per example; y is an indicator of several"
    if search.class_weight is not None:
        raise ParameterError("class_weight", several)
    if search.shots is not None:
        raise ParameterError("shots", several)
    if search.scoring == "neg_log_loss":
        raise WordedError(Setting("scoring", "neg_log_loss") + f" {several}")


def check_refit(refit: Any) -> None:
    """Raise ValueError unless it is one of the choices."""
    if refit not in ("auto", "all", "train", "train+val"):
        problem = f"must be 'auto', 'all', 'train' or 'train+val'; got {refit!r}"
        raise ParameterError("refit", problem)


def refit_on_what(refit: Any, validation_given: bool, few_shot: bool) -> RefitOn:
    """What the final models are trained on; see :data:`RefitOn`."""
    check_refit(refit)
    if refit == "train+val" and not validation_given:
        raise WordedError(Setting("refit", "train+val") + " needs X_val and y_val")
    if refit in ("all", "train+val") or (refit == "auto" and not (validation_given or few_shot)):
        return "all"
    return "first" if few_shot else "nothing"
