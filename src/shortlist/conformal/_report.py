"""How sets did on labelled examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta, betabinom

#: The confidence of the intervals around a measured coverage.
_CONFIDENCE = 0.95
#: How many of the classes with the lowest coverage a report names.
_WORST_CLASSES = 10


class CoverageReport(dict[str, Any]):
    """What ``ConformalShortlist.coverage_report`` returns: a dictionary that prints as a table."""

    def __str__(self) -> str:
        goal = self["confidence_level"]
        low, high = self["coverage_interval"]
        worst = self["worst_classes"][0]
        lines = [
            ("coverage", f"{self['coverage']:.4f} (95% interval {low:.4f} to {high:.4f})"),
            ("wanted", "no level: average size" if goal is None else f"{goal:g}"),
            ("mean length", f"{self['mean_length']:.3f} (median {self['median_length']:g})"),
            ("empty sets", f"{self['share_empty']:.1%}"),
            ("single labels", f"{self['share_singletons']:.1%}"),
            ("worst class", f"{worst['label']!r}: {worst['coverage']:.3f} of {worst['n_samples']}"),
            ("worst by size", f"{self['size_stratified_coverage']:.3f}"),
            ("examples", f"{self['n_samples']} (calibrated on {self['n_calibration']})"),
        ]
        return "\n".join(f"{name:14} {value}" for name, value in lines)


def make_report(
    sizes: NDArray[np.intp],
    hits: NDArray[np.bool_],
    columns: NDArray[np.intp],
    classes: NDArray,
    **told: Any,
) -> CoverageReport:
    """Summarise the sizes of the sets and whether they hold the label."""
    n = len(sizes)
    coverage = float(hits.mean())
    per_class = _per_class(sizes, hits, columns, classes)
    by_size = _by_size(sizes, hits)
    return CoverageReport(
        **told,
        n_samples=n,
        coverage=coverage,
        coverage_standard_error=float(np.sqrt(coverage * (1 - coverage) / n)),
        coverage_interval=exact_interval(int(hits.sum()), n),
        mean_length=float(sizes.mean()),
        median_length=float(np.median(sizes)),
        share_empty=float((sizes == 0).mean()),
        share_singletons=float((sizes == 1).mean()),
        size_counts=np.bincount(sizes, minlength=len(classes) + 1),
        per_class=per_class,
        mean_class_coverage=float(per_class["coverage"].mean()),
        worst_classes=_worst(per_class),
        by_size=by_size,
        size_stratified_coverage=float(by_size["coverage"].min()),
    )


def exact_interval(hits: int, n_samples: int) -> tuple[float, float]:
    """Clopper and Pearson's 95% interval of a share."""
    tail = (1 - _CONFIDENCE) / 2
    low = beta.ppf(tail, hits, n_samples - hits + 1) if hits > 0 else 0.0
    high = beta.ppf(1 - tail, hits + 1, n_samples - hits) if hits < n_samples else 1.0
    return float(low), float(high)


def expected_interval(n_samples: int, n_calibration: int, rank: int) -> tuple[float, float]:
    """Where the coverage of ``n_samples`` new examples lies with a probability of 95%.

    Given the calibration data it is binomial; over calibration data it is beta-binomial, if scores
    do not tie. With ties coverage is higher.
    """
    tail = (1 - _CONFIDENCE) / 2
    ends = betabinom.ppf([tail, 1 - tail], n_samples, rank, n_calibration + 1 - rank) / n_samples
    return float(ends[0]), float(ends[1])


def _per_class(
    sizes: NDArray[np.intp], hits: NDArray[np.bool_], columns: NDArray[np.intp], classes: NDArray
) -> dict[str, NDArray]:
    """A table with a row for each class that occurs; ``pandas.DataFrame`` takes it."""
    counts = np.bincount(columns, minlength=len(classes))
    seen = counts > 0

    def mean(values: NDArray) -> NDArray:
        return np.bincount(columns, values, minlength=len(classes))[seen] / counts[seen]

    return {
        "label": classes[seen],
        "n_samples": counts[seen],
        "coverage": mean(hits),
        "mean_length": mean(sizes),
    }


def _worst(per_class: dict[str, NDArray]) -> list[dict[str, Any]]:
    # Of classes with the same coverage, take the one with more examples: its estimate is better.
    order = np.lexsort((-per_class["n_samples"], per_class["coverage"]))[:_WORST_CLASSES]
    rows = zip(*(column[order].tolist() for column in per_class.values()), strict=True)
    return [dict(zip(per_class, row, strict=True)) for row in rows]


def _by_size(sizes: NDArray[np.intp], hits: NDArray[np.bool_]) -> dict[str, NDArray]:
    """Coverage by the size of the set, in strata 0, 1, 2-3, 4-7, ..., those that occur."""
    strata = np.where(sizes > 0, np.frexp(sizes)[1], 0)
    present, counts = np.unique(strata, return_counts=True)
    return {
        "smallest": np.array([sizes[strata == one].min() for one in present]),
        "largest": np.array([sizes[strata == one].max() for one in present]),
        "n_samples": counts,
        "coverage": np.array([hits[strata == one].mean() for one in present]),
    }
