"""Checks of the losses' parameters, with errors in the user's terms."""

from __future__ import annotations

import math
from numbers import Real

import torch
from torch import Tensor

_INTEGERS = (torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8)
REDUCTIONS = ("none", "mean", "sum")


def check_smoothing(smoothing: float) -> float:
    """Return ``smoothing`` as a float, or say that it must be finite and not negative."""
    if isinstance(smoothing, bool) or not isinstance(smoothing, Real):
        raise TypeError(f"smoothing must be a number, got {smoothing!r}")
    if not 0 <= smoothing < math.inf:
        raise ValueError(
            f"smoothing must be finite and at least 0 (0: no smoothing), got {smoothing}"
        )
    return float(smoothing)


def check_choice(name: str, value: str, allowed: tuple[str, ...]) -> None:
    """Raise unless ``value`` is one of ``allowed``."""
    if value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")


def check_tensors(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    """Raise unless the shapes and dtypes are those cross_entropy takes with class indices."""
    if not input.is_floating_point():
        raise TypeError(f"input must hold floating point scores, got {input.dtype}")
    if target.is_floating_point():
        raise TypeError(
            f"target must hold class indices, got {target.dtype}: "
            "these losses take one label an example, not class probabilities"
        )
    if target.dtype not in _INTEGERS:
        raise TypeError(f"target must hold integer class indices, got {target.dtype}")
    if input.ndim == 0:
        raise ValueError("input must have a class dimension: (C,), (N, C) or (N, C, d1, ...)")
    expected = input.shape[:0] if input.ndim == 1 else input.shape[:1] + input.shape[2:]
    if target.shape != expected:
        raise ValueError(
            f"target must have shape {tuple(expected)} for an input of shape "
            f"{tuple(input.shape)}, got {tuple(target.shape)}"
        )
    n_classes = class_count(input)
    if weight is not None and weight.shape != (n_classes,):
        raise ValueError(
            f"weight must hold one number for each of the {n_classes} classes, "
            f"got shape {tuple(weight.shape)}"
        )


def check_k_fits(k: int, n_classes: int) -> None:
    """Raise unless k labels can leave at least one of ``n_classes`` out."""
    if k >= n_classes:
        raise ValueError(
            f"k must be less than the number of classes: got k={k} for {n_classes} "
            f"{'class' if n_classes == 1 else 'classes'}"
            + (f" (allowed: 1 to {n_classes - 1})" if n_classes > 1 else "")
        )


def class_count(input: Tensor) -> int:
    """Return the size of the class dimension."""
    return input.shape[0] if input.ndim == 1 else input.shape[1]


def all_labels(target: Tensor, n_classes: int, ignore_index: int) -> bool:
    """Tell whether no entry of ``target`` is ignored; raise if one is out of range."""
    if len(target) == 0:
        return True
    low, high = (int(bound) for bound in torch.aminmax(target))
    if low >= 0 and high < n_classes and not low <= ignore_index <= high:
        return True
    outside = (target < 0) | (target >= n_classes)
    bad = target[outside & (target != ignore_index)]
    if len(bad):
        raise ValueError(
            f"target holds the label {int(bad[0])}; labels must lie in [0, {n_classes - 1}] "
            f"(the input has {n_classes} classes) or equal ignore_index"
        )
    return not bool((target == ignore_index).any())
