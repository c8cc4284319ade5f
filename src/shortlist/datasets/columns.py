"""What each column of a table is for: features, label, names of examples, weights, nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .._parameters import MISSING_POLICIES, TABLE_FORMATS
from .._text import Phrase, Setting, few
from ..errors import DataError
from .how_read import Column, Reading

# A column with one of these names holds the labels, unless the caller names another.
_LABEL_NAMES = ("label", "labels", "target", "class")
# A column "y" holds the labels too, unless there is a column "x": then it is a coordinate.
_Y, _X = "y", "x"
_SHOWN_NAMES, _SHOWN_EXTRA = 12, 5


@dataclass(frozen=True)
class TableOptions:
    """The roles of a table's columns as the caller gives them, by name or number."""

    label: Column | None = "auto"
    drop: tuple[Column, ...] = ()
    id_column: Column | None = None
    weight_column: Column | None = None
    missing: str = "error"
    n_features: int | None = None
    like: Reading | None = None

    def __post_init__(self) -> None:
        if self.missing not in MISSING_POLICIES:
            listed = ", ".join(MISSING_POLICIES)
            raise ValueError(f"missing must be one of {listed}; got {self.missing!r}")

    @property
    def expected(self) -> int | None:
        """The number of features there must be, if that is known."""
        return self.like.n_features if self.like is not None else self.n_features


@dataclass(frozen=True)
class Roles:
    """The numbers of the columns in each role; ``names`` are those of all columns, if any."""

    names: tuple[str, ...] | None
    features: tuple[int, ...]
    label: int | None = None
    label_guess: str | None = None
    id_column: int | None = None
    weight_column: int | None = None
    drop: tuple[int, ...] = ()

    def column(self, number: int) -> Column:
        return number if self.names is None else self.names[number]

    def shown(self, number: int) -> str:
        """A column for a message."""
        return shown_column(number, self.names)

    def optional(self, number: int | None) -> Column | None:
        return None if number is None else self.column(number)

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        return None if self.names is None else tuple(self.names[i] for i in self.features)

    def reading(self, format: str, n_features: int, **facts: Any) -> Reading:
        """How the table was read."""
        return Reading(
            format,
            n_features,
            columns=self.names,
            label=self.optional(self.label),
            label_guess=self.label_guess,
            drop=tuple(self.column(i) for i in self.drop),
            id_column=self.optional(self.id_column),
            weight_column=self.optional(self.weight_column),
            **facts,
        )


def shown_column(number: int, names: Sequence[str] | None) -> str:
    """A column for a message, by its name, or by the number that options take."""
    return f"column {number} (the first is 0)" if names is None else f"column {names[number]!r}"


def no_feature_hint(roles: Roles, number: int) -> Phrase:
    """The hint for a feature column that holds text."""
    column = roles.column(number)
    hint = " (no feature? " + Setting("drop", (column,)) + " leaves it out"
    if roles.label is not None and roles.label_guess is not None:
        hint = hint + "; the labels? " + Setting("label", column) + " in place of "
        hint = hint + f"{roles.shown(roles.label)}, a guess"
    return hint + ")"


def names_label(names: Sequence[str] | None) -> bool:
    """Whether a column's name says that it holds the labels."""
    lowered = {name.lower() for name in names or ()}
    return bool(lowered & {*_LABEL_NAMES, _Y})


def assign_roles(
    names: Sequence[str] | None,
    width: int,
    options: TableOptions,
    path: str,
    features_per_row: int | None = None,
) -> Roles:
    """Decide what each of ``width`` columns is for.

    ``features_per_row`` is the number of values in a row where columns may hold several each.
    """
    like = options.like
    if like is not None and like.format in TABLE_FORMATS:
        return _roles_like(like, names, width, options, path)
    if like is not None and like.feature_names is not None and names is not None:
        return _roles_by_feature_names(like, names, width, options, path)
    fixed = _fixed_roles(names, width, options, path)
    taken = {fixed.id_column, fixed.weight_column, *fixed.drop} - {None}
    free = [i for i in range(width) if i not in taken]
    values = len(free) if features_per_row is None else features_per_row - len(taken)
    label, guess = fixed.label, None
    # If no column is named like labels and the count is that of the features, all are features.
    if options.label == "auto" and (values != options.expected or _named_labels(names, free)):
        label, guess = _guess_label(names, free, path)
    features = tuple(i for i in free if i != label)
    return replace(fixed, features=features, label=label, label_guess=guess)


def _fixed_roles(
    names: Sequence[str] | None, width: int, options: TableOptions, path: str
) -> Roles:
    """The roles that the caller gave. A column has at most one."""

    def find(column: Column | None) -> int | None:
        return None if column is None else _find(column, names, width, path)

    label = None if options.label == "auto" else find(options.label)
    roles = Roles(
        names=None if names is None else tuple(names),
        features=(),
        label=label,
        id_column=find(options.id_column),
        weight_column=find(options.weight_column),
        drop=tuple(_find(column, names, width, path) for column in options.drop),
    )
    given = [roles.label, roles.id_column, roles.weight_column, *roles.drop]
    used = [number for number in given if number is not None]
    for number in used:
        if used.count(number) > 1:
            message = f"column {roles.column(number)!r} is given more than one use"
            raise DataError(message, path=path)
    return roles


def _find(column: Column, names: Sequence[str] | None, width: int, path: str) -> int:
    if isinstance(column, str):
        if names is None or column not in names:
            listed = few(names or (), _SHOWN_NAMES, str) or "none are named"
            raise DataError(f"has no column {column!r} (columns: {listed})", path=path)
        return list(names).index(column)
    if not -width <= column < width:
        raise DataError(f"has no column {column}, only 0 to {width - 1}", path=path)
    return column % width


def _named_labels(names: Sequence[str] | None, free: Sequence[int]) -> list[int]:
    """The columns whose names say that they hold the labels."""
    if names is None:
        return []
    lowered = {i: names[i].lower() for i in free}
    usual = [i for i in free if lowered[i] in _LABEL_NAMES]
    y = [i for i in free if lowered[i] == _Y]
    return usual if _X in lowered.values() else usual + y


def _guess_label(
    names: Sequence[str] | None, free: list[int], path: str
) -> tuple[int | None, str | None]:
    """The labels' column by its name, else the last one; an error where that is not clear."""
    if not free:
        return None, None
    candidates = _named_labels(names, free)
    if names is None or (not candidates and not names_label([names[i] for i in free])):
        return free[-1], "the last column"
    if len(candidates) == 1:
        return candidates[0], "by its name"
    if candidates:
        listed = " and ".join(repr(names[i]) for i in candidates)
        words = f"columns {listed} may both hold the labels: say which with " + Setting("label")
        raise DataError(words, path=path)
    listed = few([names[i] for i in free], _SHOWN_NAMES, str)
    unclear = (
        f"which column holds the labels is not clear: {_Y!r} beside {_X!r} may be a coordinate"
    )
    words = f"{unclear}. Say which with " + Setting("label") + f" (columns: {listed})"
    raise DataError(words, path=path)


def _roles_like(
    like: Reading, names: Sequence[str] | None, width: int, options: TableOptions, path: str
) -> Roles:
    """The roles that another table's columns had; what the caller says of this one counts more."""
    if names is None and like.columns is not None:
        names = _names_by_place(like, width, path)
    if like.columns is None:
        return _roles_by_place(like, names, width, options, path)
    assert names is not None
    given = replace(
        options,
        label=_present(like.label, names) if options.label == "auto" else options.label,
        id_column=_either(options.id_column, _present(like.id_column, names)),
        weight_column=_either(options.weight_column, _present(like.weight_column, names)),
    )
    roles = _fixed_roles(names, width, given, path)
    if len(set(names)) < len(names):
        features = _same_features(like, names, path)
    else:
        features = _features_by_name(like, names, path)
    used = {roles.label, roles.id_column, roles.weight_column, *features}
    return replace(roles, features=features, drop=tuple(i for i in range(width) if i not in used))


def _roles_by_feature_names(
    like: Reading, names: Sequence[str], width: int, options: TableOptions, path: str
) -> Roles:
    """The roles of a table that goes with a file of another kind, whose features had names."""
    roles = _fixed_roles(names, width, options, path)
    if len(set(names)) < len(names):
        raise _two_of_a_name(path)
    features = _features_by_name(like, names, path)
    others = [i for i in range(width) if i not in features]
    label, guess = roles.label, None
    if options.label == "auto":
        free = [i for i in others if i not in (roles.id_column, roles.weight_column, *roles.drop)]
        candidates = _named_labels(names, free)
        if len(candidates) == 1:
            label, guess = candidates[0], "by its name"
        elif len(free) == 1:
            label, guess = free[0], "the only other column"
    used = {label, roles.id_column, roles.weight_column}
    drop = tuple(i for i in others if i not in used)
    return replace(roles, features=features, label=label, label_guess=guess, drop=drop)


def _features_by_name(like: Reading, names: Sequence[str], path: str) -> tuple[int, ...]:
    wanted: Sequence[str] = feature_columns(like) or like.feature_names or ()
    if like.feature_names is not None and set(like.feature_names) <= set(names):
        wanted = like.feature_names  # what was one column of lists may be many columns here
    _require(wanted, names, path)
    places = {name: i for i, name in enumerate(names)}
    return tuple(places[name] for name in wanted)


def _same_features(like: Reading, names: Sequence[str], path: str) -> tuple[int, ...]:
    """The features of a table with a name that is there twice: only all the same names will do."""
    if tuple(names) != like.columns:
        raise _two_of_a_name(path)
    others = {like.label, like.id_column, like.weight_column, *like.drop}
    return tuple(i for i, name in enumerate(names) if name not in others)


def _two_of_a_name(path: str) -> DataError:
    return DataError("has two columns of the same name, so names do not tell which", path=path)


def feature_columns(like: Reading) -> list[str]:
    """The columns that held the features: those with no other role, in the file's order."""
    others = {like.label, like.id_column, like.weight_column, *like.drop}
    return [name for name in like.columns or () if name not in others]


def differences(found: Reading, like: Reading) -> Iterator[str]:
    """Yield notes on a table whose columns are not those of the other, which it was read like."""
    if found.columns is None or like.feature_names is None:
        return
    expected: Sequence[str] = feature_columns(like) or like.feature_names
    if not set(expected) <= set(found.columns):
        expected = like.feature_names  # a column of lists there may be many columns here
    here = [column for column in found.columns if column in set(expected)]
    if here and here != list(expected):
        yield "columns in another order are matched by name"
    known = {*(like.columns or ()), *expected}
    extra = [column for column in found.drop if column not in known]
    if extra:
        listed = few(extra, _SHOWN_EXTRA)
        yield f"columns that the model does not know are passed over: {listed}"


def _names_by_place(like: Reading, width: int, path: str) -> tuple[str, ...]:
    """Names for a table without any: those of the other table, column by column."""
    if like.columns is not None and width == len(like.columns):
        return like.columns
    features = feature_columns(like)
    if width == len(features):
        return tuple(features)
    raise DataError(
        f"has {width} columns without names, where the model's data had {len(like.columns or ())}",
        path=path,
    )


def _roles_by_place(
    like: Reading, names: Sequence[str] | None, width: int, options: TableOptions, path: str
) -> Roles:
    """The roles of a table whose columns had no names."""
    if width == like.n_features and options.label in ("auto", None):
        return Roles(None if names is None else tuple(names), features=tuple(range(width)))
    given = replace(
        options,
        label=like.label if options.label == "auto" else options.label,
        id_column=_either(options.id_column, like.id_column),
        weight_column=_either(options.weight_column, like.weight_column),
        drop=options.drop or like.drop,
    )
    roles = _fixed_roles(names, width, given, path)
    taken = {roles.label, roles.id_column, roles.weight_column, *roles.drop}
    if options.label is None and isinstance(like.label, int):
        taken.add(like.label)  # the labels are not asked for, and must not become a feature
    return replace(roles, features=tuple(i for i in range(width) if i not in taken))


def _either(given: Column | None, otherwise: Column | None) -> Column | None:
    return otherwise if given is None else given


def _present(column: Column | None, names: Sequence[str]) -> Column | None:
    return column if column in names else None


def features_by_name(
    X: Any, names: tuple[str, ...] | None, like: Reading, path: str
) -> tuple[Any, tuple[str, ...] | None]:
    """Return the features that another file had, in its order, and their names."""
    wanted = like.feature_names
    if names is not None and wanted is not None and len(set(names)) == len(names):
        if names == wanted:
            return X, names
        _require(wanted, names, path)
        places = {name: i for i, name in enumerate(names)}
        return X[:, [places[name] for name in wanted]], wanted
    if X.shape[1] != like.n_features:
        message = f"has {X.shape[1]} features where {like.n_features} are expected"
        raise DataError(message, path=path)
    return X, names


def _require(wanted: Sequence[str], names: Sequence[str], path: str) -> None:
    held = set(names)
    missing = [name for name in wanted if name not in held]
    if missing:
        plural = "s" if len(missing) > 1 else ""
        raise DataError(f"lacks the column{plural} {few(missing, 5)}", path=path)
