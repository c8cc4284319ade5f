"""The Letter data set, embedded: no download, no network."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np

from .containers import DataSplits, LabeledData
from .how_read import Reading

_TRAIN, _VAL = 10_500, 4_500
_LARGEST = 15  # every feature is an integer from 0 to 15

# fmt: off
FEATURE_NAMES = (
    "x-box", "y-box", "width", "high", "onpix", "x-bar", "y-bar", "x2bar",
    "y2bar", "xybar", "x2ybr", "xy2br", "x-ege", "xegvy", "y-ege", "yegvx",
)
# fmt: on

_DESCRIPTION = """\
Letter Recognition (D. J. Slate, UCI Machine Learning Repository, CC BY 4.0): 20000 images of the
26 capital letters in 20 distorted fonts, each as 16 integer moments and edge counts. Order, split
(10500 training, 4500 validation, 5000 test examples) and scaling are those of the LibSVM files
letter.scale.tr, letter.scale.val and letter.scale.t, which the paper uses."""


def _libsvm_scale() -> np.ndarray:
    """Return what LibSVM's files print for the integers 0 to 15: six digits of 2 v / 15 - 1.

    svm-scale maps a feature's range over the 15000 training and validation examples linearly to
    [-1, 1]; that range is 0 to 15 for each of the 16 features. Keeping its six printed digits
    makes the arrays equal, bit for bit, to what a reader of letter.scale sees.
    """
    return np.array([float(f"{2 * v / _LARGEST - 1:.6g}") for v in range(_LARGEST + 1)])


def load_letter(*, dtype: Any = np.float64) -> DataSplits:
    """Load Letter: 26 classes, 16 features in [-1, 1], in the paper's three parts.

    Parameters
    ----------
    dtype : float64 or float32
        Type of the features.

    Returns
    -------
    DataSplits
        ``X_train`` (10500, 16), ``y_train``, ``X_val`` (4500, 16), ``y_val``, ``X_test``
        (5000, 16), ``y_test`` and ``target_names`` ("A" to "Z"). Labels are 0 to 25, so that
        ``target_names[y]`` is the letter; LibSVM's files count from 1.

    Examples
    --------
    >>> from shortlist.datasets import load_letter
    >>> letter = load_letter()
    >>> letter.X_train.shape, letter.target_names[letter.y_train[0]]
    ((10500, 16), 'Z')
    """
    if np.dtype(dtype) not in (np.float64, np.float32):
        raise ValueError(f"dtype must be float64 or float32, got {np.dtype(dtype)}")
    scale = _libsvm_scale().astype(np.dtype(dtype))
    names = tuple(chr(ord("A") + i) for i in range(26))
    reading = Reading("npz", len(FEATURE_NAMES), FEATURE_NAMES, class_names=tuple(enumerate(names)))
    with (
        files(__package__).joinpath("data/letter.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as stored,
    ):
        X, y = scale[stored["X"]], stored["y"].astype(np.int64)

    def part(rows: slice, name: str) -> LabeledData:
        return LabeledData(
            X[rows].copy(),
            y[rows].copy(),
            FEATURE_NAMES,
            names,
            source=f"letter ({name})",
            reading=reading,
        )

    return DataSplits(
        name="letter",
        train=part(slice(0, _TRAIN), "train"),
        val=part(slice(_TRAIN, _TRAIN + _VAL), "val"),
        test=part(slice(_TRAIN + _VAL, None), "test"),
        target_names=names,
        description=_DESCRIPTION,
    )
