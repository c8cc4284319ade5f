"""One-vs-all losses over rows of scores: the sum over classes of a binary loss of +-f_j."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from ._row_loss import Evaluated


def _flip_label(scores: Tensor, target: Tensor) -> Tensor:
    """Return -(+-f_j): minus the scores at the label, the scores themselves elsewhere."""
    label = target.unsqueeze(1)
    return scores.scatter(1, label, -scores.gather(1, label))


@dataclass(frozen=True)
class OVAHinge:
    """sum_j max(0, 1 - z_j) with z_j = +-f_j, smoothed by gamma/2 in the conjugate if gamma > 0."""

    gamma: float

    def evaluate(self, scores: Tensor, target: Tensor) -> Evaluated:
        margins = _flip_label(scores, target).add_(1).clamp_(min=0)
        if self.gamma == 0:
            return Evaluated(margins.sum(1), _flip_label(margins.sign(), target))
        x = (margins / self.gamma).clamp_(max=1)
        value = (x * (margins - x * (self.gamma / 2))).sum(1)
        return Evaluated(value, _flip_label(x, target))

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        if self.gamma == 0:
            return torch.zeros_like(direction)
        size = gradient.abs()
        return torch.where((size > 0) & (size < 1), direction / self.gamma, 0)


@dataclass(frozen=True)
class OVALogistic:
    """sum_j log(1 + exp(-z_j)) with z_j = +-f_j."""

    def evaluate(self, scores: Tensor, target: Tensor) -> Evaluated:
        flipped = _flip_label(scores, target)
        value = -nn.functional.logsigmoid(-flipped).sum(1)
        return Evaluated(value, _flip_label(flipped.sigmoid_(), target))

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        size = gradient.abs()
        return size * (1 - size) * direction
