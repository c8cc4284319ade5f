"""The paper's tables as data: Lapin, Hein and Schiele, CVPR 2016 (long version).

Accuracies are in per cent. A method is named by a key such as ``"lr-multi"`` (softmax) or
``"topk-svm:3"`` (top-3 hinge); a data set by a key such as ``"letter"`` or ``"circle"``. The paper
prints a column's best number in bold; that is the largest throughout (:func:`best_methods`).
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from importlib.resources import files

TITLE = "Loss Functions for Top-k Error: Analysis and Insights"
CITATION = f"M. Lapin, M. Hein, B. Schiele: {TITLE}, CVPR 2016"
LINK = "https://arxiv.org/abs/1512.00486"

# The ks of a data set's columns, where they are not (1, 3, 5, 10).
_KS = {"circle": (1, 2), "fmd": (1, 3, 5)}

_FAMILIES = {
    "svm-ova": "SVM-OVA",
    "lr-ova": "LR-OVA",
    "svm-multi": "SVM-Multi",
    "lr-multi": "LR-Multi",
    "topk-svm": "top-{k} SVM",
    "smooth-topk-svm": "smooth top-{k} SVM",
    "topk-ent": "top-{k} Ent",
    "trunc-ent": "truncated top-{k} Ent",
}

DATASET_NAMES = {
    "circle": "Circle (synthetic)",
    "aloi": "ALOI",
    "letter": "Letter",
    "news20": "News 20",
    "caltech101": "Caltech 101 Silhouettes",
    "indoor67": "Indoor 67",
    "cub": "CUB",
    "flowers": "Flowers",
    "fmd": "FMD",
    "sun397": "SUN 397 (10 splits)",
    "places205": "Places 205 (val)",
    "ilsvrc2012": "ILSVRC 2012 (val)",
}


# Table 2: the circle, columns k = 1, 2.
TABLE_2: dict[str, tuple[float, ...]] = {
    "svm-ova": (54.3, 85.8),
    "lr-ova": (54.7, 81.7),
    "svm-multi": (58.9, 89.3),
    "lr-multi": (54.7, 81.7),
    "smooth-topk-svm:1": (65.7, 83.9),
    "topk-svm:2": (54.4, 87.1),
    "smooth-topk-svm:2": (54.5, 87.0),
    "topk-ent:2": (54.6, 87.6),
    "trunc-ent:2": (58.4, 96.1),
}

# Figure 3: top-1 and top-2 accuracy of the two models shown, each chosen for its own k.
FIGURE_3 = {
    "smooth-topk-svm:1": (65.7, 81.3),
    "trunc-ent:2": (29.4, 96.1),
}


def _read_table_3() -> dict[str, dict[str, tuple[float, ...]]]:
    table: dict[str, dict[str, tuple[float, ...]]] = {}
    text = files(__package__).joinpath("paper_table3.csv").read_text(encoding="utf-8")
    for dataset, method, *numbers in list(csv.reader(text.splitlines()))[1:]:
        row = tuple(float(number) for number in numbers if number)
        table.setdefault(dataset, {})[method] = row
    return table


#: Table 3: data set -> method -> columns k = 1, 3, 5, 10 (FMD has 10 classes: k = 1, 3, 5).
TABLE_3 = _read_table_3()


@dataclass(frozen=True)
class DatasetStatistics:
    """A row of Table 4; the paper rounds what it prints in thousands or millions."""

    n_classes: int
    n_train: int
    n_features: int


TABLE_4 = {
    "aloi": DatasetStatistics(1_000, 54_000, 128),
    "caltech101": DatasetStatistics(101, 4_100, 784),
    "cub": DatasetStatistics(202, 5_994, 4_000),
    "flowers": DatasetStatistics(102, 2_040, 4_000),
    "fmd": DatasetStatistics(10, 500, 4_000),
    "ilsvrc2012": DatasetStatistics(1_000, 1_300_000, 4_000),
    "indoor67": DatasetStatistics(67, 5_354, 4_000),
    "letter": DatasetStatistics(26, 10_500, 16),
    "news20": DatasetStatistics(20, 15_900, 16_000),
    "places205": DatasetStatistics(205, 2_400_000, 4_000),
    "sun397": DatasetStatistics(397, 19_900, 4_000),
}


#: Sparse features before the paper's principal components, which keep all inner products.
RAW_FEATURES = {"news20": 62_060}


@dataclass(frozen=True)
class FineTuning:
    """A half of Table 5: the softmax network before, and networks after fine-tuning."""

    reference: tuple[float, ...]
    fine_tuned: dict[str, tuple[float, ...]]


TABLE_5 = {
    "places205": FineTuning(
        reference=(59.97, 81.39, 88.17, 94.59),
        fine_tuned={
            "smooth-topk-svm:3": (60.73, 82.09, 88.58, 94.56),
            "smooth-topk-svm:5": (60.88, 82.18, 88.78, 94.75),
            "trunc-ent:3": (60.51, 81.86, 88.69, 94.78),
            "trunc-ent:5": (60.48, 81.66, 88.66, 94.8),
            "lr-multi": (60.73, 82.07, 88.71, 94.82),
        },
    ),
    "ilsvrc2012": FineTuning(
        reference=(68.6, 84.29, 88.66, 92.83),
        fine_tuned={
            "smooth-topk-svm:3": (71.66, 86.63, 90.55, 94.17),
            "smooth-topk-svm:5": (71.6, 86.67, 90.56, 94.23),
            "trunc-ent:3": (71.41, 86.8, 90.77, 94.35),
            "trunc-ent:5": (71.2, 86.57, 90.75, 94.38),
            "lr-multi": (72.11, 87.08, 90.88, 94.38),
        },
    ),
}


def datasets() -> tuple[str, ...]:
    """Return the keys of the data sets with accuracies: the circle and Table 3's."""
    return ("circle", *TABLE_3)


def ks(dataset: str) -> tuple[int, ...]:
    """Return the ks of a data set's columns."""
    _rows(dataset)
    return _KS.get(dataset, (1, 3, 5, 10))


def methods(dataset: str) -> tuple[str, ...]:
    """Return the keys of a data set's rows, in the paper's order."""
    return tuple(_rows(dataset))


def accuracy(dataset: str, method: str, k: int) -> float:
    """Return the paper's top-k accuracy (%) of a method on a data set."""
    rows = _rows(dataset)
    if method not in rows:
        raise ValueError(f"method must be one of {', '.join(rows)} for {dataset}, got {method!r}")
    return rows[method][_column(dataset, k)]


def best_methods(dataset: str, k: int) -> tuple[str, ...]:
    """Return the methods with the largest top-k accuracy, those in bold in the paper."""
    column = _column(dataset, k)
    rows = _rows(dataset)
    largest = max(row[column] for row in rows.values())
    return tuple(method for method, row in rows.items() if row[column] == largest)


def split_method(method: str) -> tuple[str, int]:
    """Return a method's family and its k: ("topk-svm", 3) for "topk-svm:3"."""
    family, _, k = method.partition(":")
    topk = "{k}" in _FAMILIES.get(family, "")
    if family not in _FAMILIES or topk != k.isdecimal() or (k and not topk):
        raise ValueError(f"not a method of the paper: {method!r}")
    return family, int(k) if k else 1


def display_name(method: str) -> str:
    """Return a method's name for people: "top-3 SVM" for "topk-svm:3"."""
    family, k = split_method(method)
    return _FAMILIES[family].format(k=k)


def _rows(dataset: str) -> dict[str, tuple[float, ...]]:
    if dataset == "circle":
        return TABLE_2
    if dataset not in TABLE_3:
        raise ValueError(f"dataset must be one of {', '.join(datasets())}, got {dataset!r}")
    return TABLE_3[dataset]


def _column(dataset: str, k: int) -> int:
    columns = ks(dataset)
    if k not in columns:
        raise ValueError(f"k must be one of {columns} for {dataset}, got {k!r}")
    return columns.index(k)
