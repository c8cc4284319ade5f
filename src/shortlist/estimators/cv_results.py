"""What a search found: the table of all fits, the choice for each k, and what to tell of it."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._parameters import PLAIN_LOSS_PARAMETERS
from shortlist._text import Setting
from shortlist.errors import Worded
from shortlist.estimators.callers import level_outside
from shortlist.estimators.convergence import NotConvergedWarning
from shortlist.estimators.cv_grid import Grid, best_row
from shortlist.estimators.cv_paths import Choice, FitOutcome, SearchPath
from shortlist.estimators.linear import TopKClassifier


def rows_by_family(table: Mapping[str, NDArray]) -> dict[int, NDArray]:
    """The rows of a search's table for each family, by its number."""
    numbers = table["family"]
    return {number: np.flatnonzero(numbers == number) for number in np.unique(numbers).tolist()}


def family_name(family: Mapping[str, Any]) -> str:
    """A family in words: "loss=hinge, k=5, class_weight=balanced".

    Of arrays, dictionaries and functions it says only that they are given.
    """
    plain = str | int | float | None
    return ", ".join(
        f"{name}={value}" if isinstance(value, plain) else f"{name} given"
        for name, value in family.items()
    )


@dataclass(frozen=True)
class Results:
    """A row for each family and value of C, with the outcome on every fold."""

    families: list[TopKClassifier]
    ks: tuple[int, ...]
    rows: list[Choice]
    outcomes: list[list[FitOutcome]]

    def of_folds(self, name: str) -> NDArray:
        """Something measured, by rows and folds."""
        return np.array([[getattr(fit.measured, name) for fit in row] for row in self.outcomes])

    def table(self) -> dict[str, NDArray]:
        """The columns of ``cv_results_``."""
        table = {"family": np.array([number for number, _ in self.rows])}
        for name in PLAIN_LOSS_PARAMETERS:
            table[name] = np.array(
                [getattr(self.families[number], name) for number, _ in self.rows]
            )
        table["C"] = np.array([C for _, C in self.rows])
        accuracies, certified = self.of_folds("accuracies"), self.of_folds("certified")
        for column, k in enumerate(self.ks):
            table[f"mean_top{k}"] = accuracies[:, :, column].mean(axis=1)
            table[f"std_top{k}"] = accuracies[:, :, column].std(axis=1)
            table[f"certified_top{k}"] = certified[:, :, column].mean(axis=1)
        if self.outcomes[0][0].measured.score is not None:
            scores = self.of_folds("score")
            table["mean_score"], table["std_score"] = scores.mean(axis=1), scores.std(axis=1)
        table["mean_seconds"] = np.array(
            [np.mean([fit.seconds for fit in row]) for row in self.outcomes]
        )
        table["relative_gap"] = np.array(
            [max(fit.relative_gap for fit in row) for row in self.outcomes]
        )
        return table

    def decided(self) -> dict[int, bool]:
        """For each k, whether exact optima at all values of C would lead to the same choice.

        By a scorer other than top-k accuracy nothing is known of it.
        """
        if self.outcomes[0][0].measured.score is not None:
            return dict.fromkeys(self.ks, False)
        lowest, highest = (self.of_folds(name).mean(axis=1) for name in ("lowest", "highest"))
        decided = {}
        for column, (k, row) in enumerate(self.chosen_rows().items()):
            least, most = lowest[row, column], highest[:, column]
            # If an earlier value were as good, it would have been chosen.
            decided[k] = bool((most[:row] < least).all() and (most[row + 1 :] <= least).all())
        return decided

    def chosen_rows(self) -> dict[int, int]:
        """The row of the best for each k; of equals the first family and the smallest C."""
        criteria = self.of_folds("criteria").mean(axis=1)
        columns = range(len(self.ks)) if criteria.shape[1] > 1 else [0] * len(self.ks)
        return {
            k: best_row(criteria[:, column]) for k, column in zip(self.ks, columns, strict=True)
        }


def results_of(
    paths: list[SearchPath], families: list[TopKClassifier], ks: tuple[int, ...]
) -> Results:
    """Gather the outcomes of all paths, families in their order, C increasing."""
    rows, outcomes = [], []
    for number in range(len(families)):
        folds = [path for path in paths if path.family == number]
        # An interrupted search may lack all fits of a family.
        for C in sorted(folds[0].outcomes) if folds else []:
            rows.append((number, C))
            outcomes.append([path.outcomes[C] for path in folds])
    return Results(families, ks, rows, outcomes)


def warn_of_interrupt(results: Results, n_folds: int) -> None:
    """Say from what an interrupted search chooses."""
    warnings.warn(
        f"the search was interrupted: C is chosen from {len(results.rows)} values measured on "
        f"{len(results.outcomes[0])} of {n_folds} folds. The chosen models are trained now; Ctrl-C "
        "ends that too.",
        UserWarning,
        stacklevel=level_outside(),
    )


def warn_of_unfinished(results: Results, tol: float) -> None:
    """One warning for all fits of the search that ended short of ``tol``."""
    # A loss without a dual has a gap of NaN and is judged by its status alone.
    fits = [fit for row in results.outcomes for fit in row]
    unfinished = [
        fit
        for fit in fits
        if fit.status == "max_epochs" or (fit.status == "stalled" and fit.relative_gap > tol)
    ]
    if not unfinished:
        return
    gaps = np.array([[fit.relative_gap for fit in row] for row in results.outcomes])
    text = f"{len(unfinished)} of {len(fits)} fits of the search did not reach tol={tol:g}"
    if not np.isnan(gaps).all():
        worst = int(np.nanargmax(gaps)) // gaps.shape[1]
        _, C = results.rows[worst]
        text += f"; the largest relative duality gap is {np.nanmax(gaps):.2g}, at C={C:g}"
    advice = Setting("max_epochs") + " or " + Setting("tol") + ", or leave out the largest C."
    warnings.warn(NotConvergedWarning(f"{text}. Raise " + advice), stacklevel=level_outside())


class OpenGridWarning(Worded, UserWarning):
    """The best C is at an end of the grid."""


def warn_of_open_edges(grids: list[Grid], ks: tuple[int, ...]) -> None:
    """A warning for each end of a grid whose growth the limit alone stopped."""
    for grid in grids:
        for side, wanting in grid.open_edges().items():
            # A scorer chooses one C for all ks.
            open_for = np.broadcast_to(wanting, len(ks))
            names = ", ".join(str(k) for k, open_ in zip(ks, open_for, strict=True) if open_)
            end = grid.Cs[0] if side == "low" else grid.Cs[-1]
            found = (
                f"the best C for k={names} is {end:g}, the end of the grid, after {grid.limit} "
                "extensions. Raise "
            )
            advice = Setting("max_extensions") + " or widen " + Setting("Cs") + "."
            warnings.warn(OpenGridWarning(found + advice), stacklevel=level_outside())


def summary_of(search: Any) -> str:
    """The text that ``TopKClassifierCV.summary`` returns."""
    families = search.rows_by_family()
    parts: list[str] = []
    for number, rows in families.items():
        if len(families) > 1:
            parts.append(family_name(search.families_[number]))
        parts += _aligned(_cells(search, rows))
    return "\n".join([*parts, *(_choice(search, k) for k in search.ks_)])


def _cells(search: Any, rows: NDArray) -> list[list[str]]:
    """A header and a line for each row; a star marks the choice for a k."""
    table = search.cv_results_
    spread = any((table[f"std_top{k}"] > 0).any() for k in search.ks_)
    columns = {"C": [f"{table['C'][row]:.4g}" for row in rows]}
    for k in search.ks_:
        chosen = search.chosen_row(k)
        columns[f"top-{k} %"] = [
            ("* " if row == chosen else "")
            + f"{100 * table[f'mean_top{k}'][row]:.2f}"
            + (f" ± {100 * table[f'std_top{k}'][row]:.2f}" if spread else "")
            for row in rows
        ]
    if "mean_score" in table:
        columns["score"] = [f"{table['mean_score'][row]:.4g}" for row in rows]
    columns["seconds"] = [f"{table['mean_seconds'][row]:.2f}" for row in rows]
    columns["gap"] = [f"{table['relative_gap'][row]:.1e}" for row in rows]
    return [list(columns), *map(list, zip(*columns.values(), strict=True))]


def _aligned(lines: list[list[str]]) -> list[str]:
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return [
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths, strict=True))
        for line in lines
    ]


def _choice(search: Any, k: int) -> str:
    share = search.cv_results_[f"certified_top{k}"][search.chosen_row(k)]
    certain = f"{share:.1%} of the validation shortlists cannot change"
    chosen = f"k={k}: C={search.C_[k]:.4g}."
    if search.decided_[k]:
        return f"{chosen} The choice of C is decided: {certain}."
    if not np.isfinite(search.cv_results_["relative_gap"][search.chosen_row(k)]):
        return f"{chosen} A loss that is not convex has no bound on how far its scores may change."
    if search.fit_intercept == "free":
        return f"{chosen} With a free intercept nothing bounds how far its scores may change."
    return f"{chosen} {certain}; with a smaller tol another C might be chosen."
