"""Every loss of shortlist.torch at several parameters, and what it should compute, naively."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from torch import nn

from shortlist.torch import (
    OVAHingeLoss,
    OVALogisticLoss,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
)


@dataclass(frozen=True)
class Case:
    """``make`` builds the module; ``name`` and ``params`` are shortlist.losses.get's."""

    name: str
    params: dict
    make: Callable[..., nn.Module]

    @property
    def k(self) -> int:
        return self.params.get("k", 1)

    def __str__(self) -> str:
        return "-".join([self.name, *map(str, self.params.values())])


def _hinge(k: int, variant: str, smoothing: float) -> Case:
    params = {"k": k, "variant": variant, "smoothing": smoothing}
    if smoothing:
        return Case("smooth_hinge", params, lambda **kw: TopKHingeLoss(k, smoothing, variant, **kw))
    del params["smoothing"]
    return Case("hinge", params, lambda **kw: TopKHingeLoss(k, 0.0, variant, **kw))


def _entropy(k: int, variant: str) -> Case:
    params = {"k": k, "variant": variant}
    return Case("entropy", params, lambda **kw: TopKEntropyLoss(k, variant, **kw))


def _truncated(k: int) -> Case:
    return Case("truncated_entropy", {"k": k}, lambda **kw: TruncatedTopKEntropyLoss(k, **kw))


KS = (1, 3, 5)
CASES = [
    *(
        _hinge(k, variant, smoothing)
        for k in KS
        for variant in ("alpha", "beta")
        for smoothing in (0.0, 0.1, 1.0)
    ),
    *(_entropy(k, variant) for k in KS for variant in ("alpha", "beta")),
    *(_truncated(k) for k in KS),
    Case("ova_hinge", {}, lambda **kw: OVAHingeLoss(0.0, **kw)),
    Case("ova_smooth_hinge", {"smoothing": 0.5}, lambda **kw: OVAHingeLoss(0.5, **kw)),
    Case("ova_smooth_hinge", {"smoothing": 3.0}, lambda **kw: OVAHingeLoss(3.0, **kw)),
    Case("ova_logistic", {}, lambda **kw: OVALogisticLoss(**kw)),
]
SMOOTH = [case for case in CASES if case.name not in ("hinge", "ova_hinge")]


def differences(scores: np.ndarray, label: int) -> np.ndarray:
    """u_j = f_j - f_y over j != y."""
    return np.delete(scores, label) - scores[label]


def support(direction: np.ndarray, k: int, variant: str) -> float:
    """The largest <direction, x> over x in the alpha or the beta set."""
    top = np.sort(direction)[::-1][:k]
    return max(0.0, top.mean()) if variant == "alpha" else np.maximum(top, 0).mean()
