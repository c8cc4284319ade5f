"""The paper's tables as data: Lapin, Hein and Schiele, CVPR 2016 (long version).

Accuracies are in per cent. A method is named by a key such as ``"lr-multi"`` (softmax) or
``"topk-svm:3"`` (top-3 hinge); a data set by a key such as ``"letter"`` or ``"circle"``. The paper
prints a column's best number in bold; that is the largest throughout (:func:`best_methods`).
"""

from __future__ import annotations

from dataclasses import dataclass

CITATION = (
    "M. Lapin, M. Hein, B. Schiele: Loss Functions for Top-k Error: Analysis and Insights, "
    "CVPR 2016"
)

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


@dataclass(frozen=True)
class LossProperties:
    """A row of Table 1. ``calibrated`` is None where the paper leaves it open (for k > 1)."""

    key: str
    name: str
    calibrated: bool | None
    convex: bool
    novel: bool


TABLE_1 = (
    LossProperties("svm-ova", "One-vs-all (OVA) SVM", False, True, False),
    LossProperties("lr-ova", "OVA logistic regression", True, True, False),
    LossProperties("svm-multi", "Multiclass SVM", False, True, False),
    LossProperties("lr-multi", "Softmax (maximum entropy)", True, True, False),
    LossProperties("topk-svm-alpha", "Top-k hinge (α)", None, True, False),
    LossProperties("topk-svm-beta", "Top-k hinge (β)", None, True, False),
    LossProperties("smooth-topk-svm-alpha", "Smooth top-k hinge (α)", None, True, True),
    LossProperties("smooth-topk-svm-beta", "Smooth top-k hinge (β)", None, True, True),
    LossProperties("topk-ent", "Top-k entropy", None, True, True),
    LossProperties("trunc-ent", "Truncated top-k entropy", True, False, True),
)

# Table 1's footnote: unlike the plain one, the smoothed one-vs-all hinge is top-k calibrated.
SMOOTHED_OVA_HINGE_CALIBRATED = True

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

# Table 3: columns k = 1, 3, 5, 10 (FMD has 10 classes: k = 1, 3, 5).
TABLE_3: dict[str, dict[str, tuple[float, ...]]] = {
    "aloi": {
        "svm-ova": (82.4, 89.5, 91.5, 93.7),
        "lr-ova": (86.1, 93.0, 94.8, 96.6),
        "svm-multi": (90.0, 95.1, 96.7, 98.1),
        "lr-multi": (89.8, 95.7, 97.1, 98.4),
        "topk-svm:3": (89.2, 95.5, 97.2, 98.4),
        "topk-svm:5": (87.3, 95.6, 97.4, 98.6),
        "topk-svm:10": (85.0, 95.5, 97.3, 98.7),
        "smooth-topk-svm:1": (90.6, 95.5, 96.7, 98.2),
        "smooth-topk-svm:3": (89.6, 95.7, 97.3, 98.4),
        "smooth-topk-svm:5": (87.6, 95.7, 97.5, 98.6),
        "smooth-topk-svm:10": (85.2, 95.6, 97.4, 98.7),
        "topk-ent:3": (89.0, 95.8, 97.2, 98.4),
        "topk-ent:5": (87.9, 95.8, 97.2, 98.4),
        "topk-ent:10": (86.0, 95.6, 97.3, 98.5),
        "trunc-ent:3": (89.3, 95.9, 97.3, 98.5),
        "trunc-ent:5": (87.9, 95.7, 97.3, 98.6),
        "trunc-ent:10": (85.2, 94.8, 97.1, 98.5),
    },
    "letter": {
        "svm-ova": (63.0, 82.0, 88.1, 94.6),
        "lr-ova": (68.1, 86.1, 90.6, 96.2),
        "svm-multi": (76.5, 89.2, 93.1, 97.7),
        "lr-multi": (75.3, 90.3, 94.3, 98.0),
        "topk-svm:3": (74.0, 91.0, 94.4, 97.8),
        "topk-svm:5": (70.8, 91.5, 95.1, 98.4),
        "topk-svm:10": (61.6, 88.9, 96.0, 99.6),
        "smooth-topk-svm:1": (76.8, 89.9, 93.6, 97.6),
        "smooth-topk-svm:3": (74.1, 90.9, 94.5, 97.9),
        "smooth-topk-svm:5": (70.8, 91.5, 95.2, 98.6),
        "smooth-topk-svm:10": (61.7, 89.1, 95.9, 99.7),
        "topk-ent:3": (73.0, 90.8, 94.9, 98.5),
        "topk-ent:5": (69.7, 90.9, 95.1, 98.8),
        "topk-ent:10": (65.0, 89.7, 96.2, 99.6),
        "trunc-ent:3": (63.6, 91.1, 95.6, 98.8),
        "trunc-ent:5": (50.3, 87.7, 96.1, 99.4),
        "trunc-ent:10": (46.5, 80.9, 93.7, 99.6),
    },
    "news20": {
        "svm-ova": (84.3, 95.4, 97.9, 99.5),
        "lr-ova": (84.9, 96.3, 97.8, 99.3),
        "svm-multi": (85.4, 94.9, 97.2, 99.1),
        "lr-multi": (84.5, 96.4, 98.1, 99.5),
        "topk-svm:3": (85.1, 96.6, 98.2, 99.3),
        "topk-svm:5": (84.3, 96.7, 98.4, 99.3),
        "topk-svm:10": (82.7, 96.5, 98.4, 99.3),
        "smooth-topk-svm:1": (85.6, 96.3, 98.0, 99.3),
        "smooth-topk-svm:3": (85.1, 96.6, 98.4, 99.4),
        "smooth-topk-svm:5": (84.5, 96.7, 98.4, 99.4),
        "smooth-topk-svm:10": (82.9, 96.5, 98.4, 99.5),
        "topk-ent:3": (84.7, 96.6, 98.3, 99.4),
        "topk-ent:5": (84.3, 96.8, 98.6, 99.4),
        "topk-ent:10": (82.7, 96.4, 98.5, 99.4),
        "trunc-ent:3": (83.4, 96.4, 98.3, 99.4),
        "trunc-ent:5": (83.2, 96.0, 98.2, 99.4),
        "trunc-ent:10": (82.9, 95.7, 97.9, 99.4),
    },
    "caltech101": {
        "svm-ova": (61.8, 76.5, 80.8, 86.6),
        "lr-ova": (63.2, 80.4, 84.4, 89.4),
        "svm-multi": (62.8, 77.8, 82.0, 86.9),
        "lr-multi": (63.2, 81.2, 85.1, 89.7),
        "topk-svm:3": (63.4, 79.7, 83.6, 88.3),
        "topk-svm:5": (63.3, 80.0, 84.3, 88.7),
        "topk-svm:10": (63.0, 80.5, 84.6, 89.1),
        "smooth-topk-svm:1": (63.9, 80.3, 84.0, 89.0),
        "smooth-topk-svm:3": (63.3, 80.1, 84.0, 89.2),
        "smooth-topk-svm:5": (63.3, 80.5, 84.5, 89.1),
        "smooth-topk-svm:10": (63.1, 80.5, 84.8, 89.1),
        "topk-ent:3": (63.3, 81.1, 85.0, 89.9),
        "topk-ent:5": (63.2, 80.9, 85.2, 89.9),
        "topk-ent:10": (62.5, 80.8, 85.4, 90.1),
        "trunc-ent:3": (60.7, 81.1, 85.2, 90.2),
        "trunc-ent:5": (58.3, 79.8, 85.2, 90.2),
        "trunc-ent:10": (51.9, 78.4, 84.6, 90.2),
    },
    "indoor67": {
        "svm-ova": (81.9, 94.3, 96.5, 98.0),
        "lr-ova": (82.0, 94.9, 97.2, 98.7),
        "svm-multi": (82.5, 95.4, 97.3, 99.1),
        "lr-multi": (82.4, 95.2, 98.0, 99.1),
        "topk-svm:3": (81.6, 95.1, 97.7, 99.0),
        "topk-svm:5": (79.9, 95.0, 97.7, 99.0),
        "topk-svm:10": (78.4, 95.1, 97.4, 99.0),
        "smooth-topk-svm:1": (82.6, 95.2, 97.6, 99.0),
        "smooth-topk-svm:3": (81.6, 95.1, 97.8, 99.0),
        "smooth-topk-svm:5": (80.4, 95.1, 97.8, 99.1),
        "smooth-topk-svm:10": (78.3, 95.1, 97.5, 99.0),
        "topk-ent:3": (81.4, 95.4, 97.6, 99.2),
        "topk-ent:5": (80.3, 95.0, 97.7, 99.0),
        "topk-ent:10": (79.2, 95.1, 97.6, 99.0),
        "trunc-ent:3": (79.8, 95.0, 97.5, 99.1),
        "trunc-ent:5": (76.4, 94.3, 97.3, 99.0),
        "trunc-ent:10": (72.6, 92.8, 97.1, 98.9),
    },
    "cub": {
        "svm-ova": (60.6, 77.1, 83.4, 89.9),
        "lr-ova": (62.3, 80.5, 87.4, 93.5),
        "svm-multi": (61.0, 79.2, 85.7, 92.3),
        "lr-multi": (62.3, 81.7, 87.9, 93.9),
        "topk-svm:3": (61.3, 80.4, 86.3, 92.5),
        "topk-svm:5": (60.9, 81.2, 87.2, 92.9),
        "topk-svm:10": (59.6, 81.3, 87.7, 93.4),
        "smooth-topk-svm:1": (61.9, 80.2, 86.9, 93.1),
        "smooth-topk-svm:3": (61.9, 81.1, 86.6, 93.2),
        "smooth-topk-svm:5": (61.3, 81.3, 87.4, 92.9),
        "smooth-topk-svm:10": (59.8, 81.4, 87.8, 93.4),
        "topk-ent:3": (62.5, 81.8, 87.9, 93.9),
        "topk-ent:5": (62.0, 81.9, 88.1, 93.8),
        "topk-ent:10": (61.2, 81.6, 88.2, 93.8),
        "trunc-ent:3": (62.0, 81.4, 87.6, 93.4),
        "trunc-ent:5": (61.4, 81.2, 87.7, 93.7),
        "trunc-ent:10": (59.7, 80.7, 87.2, 93.4),
    },
    "flowers": {
        "svm-ova": (82.0, 91.7, 94.3, 96.8),
        "lr-ova": (82.6, 92.2, 94.8, 97.6),
        "svm-multi": (82.5, 92.2, 94.8, 96.4),
        "lr-multi": (82.9, 92.4, 95.1, 97.8),
        "topk-svm:3": (81.9, 92.2, 95.0, 96.1),
        "topk-svm:5": (81.7, 92.4, 95.1, 97.8),
        "topk-svm:10": (80.5, 91.9, 95.1, 97.7),
        "smooth-topk-svm:1": (83.0, 92.4, 95.1, 97.6),
        "smooth-topk-svm:3": (82.5, 92.3, 95.2, 97.7),
        "smooth-topk-svm:5": (82.0, 92.5, 95.1, 97.8),
        "smooth-topk-svm:10": (80.6, 91.9, 95.1, 97.7),
        "topk-ent:3": (82.5, 92.0, 95.3, 97.8),
        "topk-ent:5": (82.1, 92.2, 95.1, 97.9),
        "topk-ent:10": (80.9, 92.1, 95.0, 97.7),
        "trunc-ent:3": (82.1, 92.2, 95.2, 97.6),
        "trunc-ent:5": (81.4, 92.0, 95.0, 97.7),
        "trunc-ent:10": (77.9, 91.1, 94.3, 97.3),
    },
    "fmd": {
        "svm-ova": (77.4, 92.4, 96.4),
        "lr-ova": (79.6, 94.2, 98.2),
        "svm-multi": (77.6, 93.8, 97.2),
        "lr-multi": (79.0, 94.6, 97.8),
        "topk-svm:3": (78.8, 94.6, 97.8),
        "topk-svm:5": (78.4, 94.4, 97.6),
        "smooth-topk-svm:1": (78.6, 93.8, 98.0),
        "smooth-topk-svm:3": (79.0, 94.4, 98.0),
        "smooth-topk-svm:5": (79.4, 94.4, 97.6),
        "topk-ent:3": (79.8, 94.8, 98.0),
        "topk-ent:5": (79.4, 94.4, 98.0),
        "trunc-ent:3": (78.4, 95.4, 98.2),
        "trunc-ent:5": (77.2, 94.0, 97.8),
    },
    "sun397": {
        "svm-multi": (65.8, 85.1, 90.8, 95.3),
        "lr-multi": (67.5, 87.7, 92.9, 96.8),
        "topk-svm:3": (66.5, 86.5, 91.8, 95.9),
        "topk-svm:5": (66.3, 87.0, 92.2, 96.3),
        "topk-svm:10": (64.8, 87.2, 92.6, 96.6),
        "smooth-topk-svm:1": (67.4, 86.8, 92.0, 96.1),
        "smooth-topk-svm:3": (67.0, 87.0, 92.2, 96.2),
        "smooth-topk-svm:5": (66.5, 87.2, 92.4, 96.3),
        "smooth-topk-svm:10": (64.9, 87.3, 92.6, 96.6),
        "topk-ent:3": (67.2, 87.7, 92.9, 96.8),
        "topk-ent:5": (66.6, 87.7, 92.9, 96.8),
        "topk-ent:10": (65.2, 87.4, 92.8, 96.8),
    },
    "places205": {
        "svm-multi": (58.4, 78.7, 84.7, 89.9),
        "lr-multi": (59.0, 80.6, 87.6, 94.3),
        "topk-svm:3": (58.6, 80.3, 87.3, 93.3),
        "topk-svm:5": (58.4, 80.5, 87.4, 94.0),
        "topk-svm:10": (58.0, 80.4, 87.4, 94.3),
        "smooth-topk-svm:1": (59.2, 80.5, 87.3, 93.8),
        "smooth-topk-svm:3": (58.9, 80.5, 87.6, 93.9),
        "smooth-topk-svm:5": (58.5, 80.5, 87.5, 94.1),
        "smooth-topk-svm:10": (58.0, 80.4, 87.5, 94.3),
        "topk-ent:3": (58.7, 80.6, 87.6, 94.2),
        "topk-ent:5": (58.1, 80.4, 87.4, 94.2),
        "topk-ent:10": (57.0, 80.0, 87.2, 94.1),
    },
    "ilsvrc2012": {
        "svm-multi": (68.3, 82.9, 87.0, 91.1),
        "lr-multi": (67.2, 83.2, 87.7, 92.2),
        "topk-svm:3": (68.2, 84.0, 88.1, 92.1),
        "topk-svm:5": (67.8, 84.1, 88.2, 92.4),
        "topk-svm:10": (67.0, 83.8, 88.3, 92.6),
        "smooth-topk-svm:1": (68.7, 83.9, 88.0, 92.1),
        "smooth-topk-svm:3": (68.2, 84.1, 88.2, 92.3),
        "smooth-topk-svm:5": (67.9, 84.1, 88.4, 92.5),
        "smooth-topk-svm:10": (67.1, 83.8, 88.3, 92.6),
        "topk-ent:3": (66.8, 83.1, 87.8, 92.2),
        "topk-ent:5": (66.5, 83.0, 87.7, 92.2),
        "topk-ent:10": (65.8, 82.8, 87.6, 92.1),
    },
}

# Table 3's standard deviations, given for SUN 397 only.
TABLE_3_DEVIATIONS: dict[str, dict[str, tuple[float, ...]]] = {
    "sun397": {
        "svm-multi": (0.1, 0.2, 0.1, 0.1),
        "lr-multi": (0.1, 0.2, 0.1, 0.1),
        "topk-svm:3": (0.2, 0.1, 0.1, 0.1),
        "topk-svm:5": (0.2, 0.2, 0.2, 0.1),
        "topk-svm:10": (0.3, 0.2, 0.1, 0.1),
        "smooth-topk-svm:1": (0.2, 0.1, 0.1, 0.1),
        "smooth-topk-svm:3": (0.2, 0.1, 0.1, 0.0),
        "smooth-topk-svm:5": (0.2, 0.1, 0.2, 0.0),
        "smooth-topk-svm:10": (0.3, 0.2, 0.2, 0.1),
        "topk-ent:3": (0.2, 0.2, 0.1, 0.1),
        "topk-ent:5": (0.3, 0.2, 0.1, 0.1),
        "topk-ent:10": (0.3, 0.1, 0.1, 0.1),
    },
}

# Table 3's first line, the best accuracy published elsewhere: data set -> k -> values.
STATE_OF_THE_ART: dict[str, dict[int, tuple[float, ...]]] = {
    "aloi": {1: (93.0,)},
    "letter": {1: (97.98,)},
    "news20": {1: (86.9,)},
    "caltech101": {1: (62.1,), 3: (79.6,), 5: (83.4,)},
    "indoor67": {1: (82.0,)},
    "cub": {1: (62.8, 76.37)},
    "flowers": {1: (86.8,)},
    "fmd": {1: (77.4, 82.4)},
    "sun397": {1: (66.9,)},
    "places205": {1: (60.6,), 5: (88.5,)},
    "ilsvrc2012": {1: (76.3,), 5: (93.2,)},
}


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


def deviation(dataset: str, method: str, k: int) -> float | None:
    """Return the standard deviation that goes with :func:`accuracy`, or None if none is given."""
    accuracy(dataset, method, k)
    if dataset not in TABLE_3_DEVIATIONS:
        return None
    return TABLE_3_DEVIATIONS[dataset][method][_column(dataset, k)]


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
