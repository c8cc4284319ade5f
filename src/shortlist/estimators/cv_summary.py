"""A fitted search as text: a table of C by k for each family, and the choices."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist.estimators.cv_results import FAMILY


def summary_of(search: Any) -> str:
    """The text that ``TopKClassifierCV.summary`` returns."""
    table = search.cv_results_
    families = list(dict.fromkeys(zip(*(table[name].tolist() for name in FAMILY), strict=True)))
    parts = []
    for family in families:
        if len(families) > 1:
            parts.append(", ".join(f"{n}={v}" for n, v in zip(FAMILY, family, strict=True)))
        parts += _aligned(_cells(search, np.flatnonzero(_is_family(table, family))))
    return "\n".join([*parts, *(_choice(search, k) for k in search.ks_)])


def _is_family(table: dict[str, NDArray], family: tuple[Any, ...]) -> NDArray:
    return np.all([table[n] == v for n, v in zip(FAMILY, family, strict=True)], axis=0)


def _chosen_row(search: Any, k: int) -> int:
    table = search.cv_results_
    family = tuple(search.losses_[k][name] for name in FAMILY)
    return int(np.flatnonzero(_is_family(table, family) & (table["C"] == search.C_[k]))[0])


def _cells(search: Any, rows: NDArray) -> list[list[str]]:
    """A header and a line for each row; a star marks the choice for a k."""
    table = search.cv_results_
    spread = any((table[f"std_top{k}"] > 0).any() for k in search.ks_)
    columns = {"C": [f"{table['C'][row]:.4g}" for row in rows]}
    for k in search.ks_:
        chosen = _chosen_row(search, k)
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
    share = search.cv_results_[f"certified_top{k}"][_chosen_row(search, k)]
    certain = f"{share:.1%} of the validation shortlists cannot change"
    chosen = f"k={k}: C={search.C_[k]:.4g}."
    if search.decided_[k]:
        return f"{chosen} The choice of C is decided: {certain}."
    if not np.isfinite(search.cv_results_["relative_gap"][_chosen_row(search, k)]):
        return f"{chosen} A loss that is not convex has no bound on how far its scores may change."
    if search.fit_intercept == "free":
        return f"{chosen} With a free intercept nothing bounds how far its scores may change."
    return f"{chosen} {certain}; with a smaller tol another C might be chosen."
