"""The paper's tables as data: Lapin, Hein and Schiele, CVPR 2016 (long version).

Accuracies are in per cent. A method is named by a key such as ``"lr-multi"`` (softmax) or
``"topk-svm:3"`` (top-3 hinge); a data set by a key such as ``"letter"`` or ``"circle"``. The paper
prints a column's best number in bold; that is the largest throughout (:func:`best_methods`).
"""

import csv
from dataclasses import dataclass
from importlib.resources import files

TITLE = "Loss Functions for Top-k Error: Analysis and Insights"
CITATION = f"M. Lapin, M. Hein, B. Schiele: {TITLE}, CVPR 2016"
LINK = "https://arxiv.org/abs/1512.00486"

# The ks of a data set's columns, where they are not (1, 3, 5, 10).
_KS = {"circle": (1, 2), "fmd": (1, 3, 5)}
Accuracies = dict[str, tuple[float, ...]]


@dataclass(frozen=True)
class Family:
    """Methods of one kind: how they are named and trained, and where tables and figures have them.

    ``group`` holds rows of a table together; ``panel`` is the figure of gains that shows them. A
    path over C takes about ``cost + cost_per_k * k`` times as long as softmax's, as measured on
    Letter.
    """

    name: str
    loss: str
    group: str
    panel: str
    cost: float
    cost_per_k: float


@dataclass(frozen=True)
class DatasetStatistics:
    """A row of Table 4; the paper rounds what it prints in thousands or millions."""

    name: str
    n_classes: int
    n_train: int
    n_features: int


def read_table(file: str) -> list[list[str]]:
    """Return the rows of a table that comes with this package, without its heading."""
    text = files(__package__).joinpath(file).read_text(encoding="utf-8")
    return list(csv.reader(text.splitlines()))[1:]


def _accuracies(wanted: str) -> dict[str, Accuracies]:
    found: dict[str, Accuracies] = {}
    for table, dataset, method, *numbers in read_table("paper_accuracy.csv"):
        if table == wanted:
            found.setdefault(dataset, {})[method] = tuple(map(float, numbers))
    return found


FAMILIES = {
    key: Family(name, loss, group, panel, float(cost), float(cost_per_k))
    for key, name, loss, group, panel, cost, cost_per_k in read_table("paper_families.csv")
}
#: Tables 2, 3 and 5: data set -> method -> a number for each k of :func:`ks`.
TABLE_2, TABLE_3, TABLE_5 = map(_accuracies, "235")
#: In Table 5, the softmax network before it is fine-tuned.
BEFORE = "before"
#: Table 4, and the circle.
TABLE_4 = {
    dataset: DatasetStatistics(name, *map(int, numbers))
    for dataset, name, *numbers in read_table("paper_datasets.csv")
}
#: Sparse features before the paper's principal components, which keep all inner products.
RAW_FEATURES = {"news20": 62_060}
#: Figure 3: top-1 and top-2 accuracy of the two models shown, each chosen for its own k.
FIGURE_3 = {"smooth-topk-svm:1": (65.7, 81.3), "trunc-ent:2": (29.4, 96.1)}


def datasets() -> tuple[str, ...]:
    """Return the keys of the data sets with accuracies: the circle and Table 3's."""
    return (*TABLE_2, *TABLE_3)


def ks(dataset: str) -> tuple[int, ...]:
    """Return the ks of a data set's columns."""
    _rows(dataset)
    return _KS.get(dataset, (1, 3, 5, 10))


def methods(dataset: str) -> tuple[str, ...]:
    """Return the keys of a data set's rows, in the paper's order."""
    return tuple(_rows(dataset))


def accuracy(dataset: str, method: str, k: int) -> float:
    """Return the paper's top-k accuracy (%) of a method on a data set."""
    rows, columns = _rows(dataset), ks(dataset)
    if method not in rows:
        raise ValueError(f"method must be one of {', '.join(rows)} for {dataset}, got {method!r}")
    if k not in columns:
        raise ValueError(f"k must be one of {columns} for {dataset}, got {k!r}")
    return rows[method][columns.index(k)]


def best_methods(dataset: str, k: int) -> tuple[str, ...]:
    """Return the methods with the largest top-k accuracy, those in bold in the paper."""
    numbers = {method: accuracy(dataset, method, k) for method in methods(dataset)}
    return tuple(method for method in numbers if numbers[method] == max(numbers.values()))


def split_method(method: str) -> tuple[str, int]:
    """Return a method's family and its k: ("topk-svm", 3) for "topk-svm:3"."""
    family, _, k = method.partition(":")
    topk = family in FAMILIES and "{k}" in FAMILIES[family].name
    if family not in FAMILIES or topk != k.isdecimal() or (k and not topk):
        raise ValueError(f"not a method of the paper: {method!r}")
    return family, int(k) if k else 1


def family_of(method: str) -> Family:
    """Return a method's family."""
    return FAMILIES[split_method(method)[0]]


def is_truncated(method: str) -> bool:
    """Return whether a method trains a truncated loss, which is not convex."""
    return family_of(method).loss == "truncated_entropy"


def display_name(method: str) -> str:
    """Return a method's name for people: "top-3 SVM" for "topk-svm:3"."""
    return family_of(method).name.format(k=split_method(method)[1])


def _rows(dataset: str) -> Accuracies:
    if dataset not in datasets():
        raise ValueError(f"dataset must be one of {', '.join(datasets())}, got {dataset!r}")
    return (TABLE_2 | TABLE_3)[dataset]
