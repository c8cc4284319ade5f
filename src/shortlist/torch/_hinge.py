"""Top-k hinge losses (alpha, beta), plain and smooth, over rows of scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ._entropy import Variant
from ._thresholds import hinge_thresholds


@dataclass(frozen=True)
class TopKHinge:
    """alpha: max(0, mean of the k largest 1 + u_j); beta: mean of the k largest max(0, 1 + u_j).

    The gradient is a subgradient at kinks: margins of exactly zero get no weight.
    """

    k: int
    variant: Variant

    def evaluate(self, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        label = target.unsqueeze(1)
        others = scores.scatter(1, label, -math.inf)
        top, index = others.topk(self.k, dim=1)
        margins = 1 + (top - scores.gather(1, label))
        if self.variant == "alpha":
            mean = margins.mean(1, keepdim=True)
            value = mean.clamp(min=0)
            x = (mean > 0).to(scores.dtype).expand_as(margins) / self.k
        else:
            value = margins.clamp(min=0).mean(1, keepdim=True)
            x = (margins > 0).to(scores.dtype) / self.k
        gradient = torch.zeros_like(scores).scatter_(1, index, x)
        return value.squeeze(1), gradient.scatter_(1, label, -x.sum(1, keepdim=True))

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        return torch.zeros_like(direction)


@dataclass(frozen=True)
class SmoothTopKHinge:
    """max <1 + u, x> - gamma/2 |x|^2 over the alpha or the beta set, gamma > 0."""

    k: int
    variant: Variant
    gamma: float

    def evaluate(self, scores: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        label = target.unsqueeze(1)
        others = scores.scatter(1, label, -math.inf)
        found = hinge_thresholds(
            others, scores.gather(1, label), self.k, self.gamma, self.variant == "alpha"
        )
        q = others.sub_(found.pivot).sub_(found.cut).clamp_(min=0)
        q = torch.minimum(q, found.cap)
        # |q|^2 by the norm: one pass where q * q and its sum would take two.
        value = found.offset + q.norm(dim=1, keepdim=True).square() / (2 * self.gamma)
        x = q if self.gamma == 1 else q.div_(self.gamma)
        # Where the sum is slack its rounded value must not read as 1: curvature looks at it.
        eps = torch.finfo(x.dtype).eps
        mass = torch.where(found.binds, 1, x.sum(1, keepdim=True).clamp(max=1 - eps))
        return value.squeeze(1), x.scatter_(1, label, -mass)

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        label = target.unsqueeze(1)
        x = gradient.scatter(1, label, 0.0)
        mass = -gradient.gather(1, label)
        change = direction - direction.gather(1, label)
        k = self.k
        cap = mass / k if self.variant == "alpha" else torch.full_like(mass, 1 / k)
        capped = x >= cap * (1 - 4 * torch.finfo(x.dtype).eps)
        inside = (x > 0) & ~capped
        n_inside = inside.sum(1, keepdim=True)
        inside_sum = torch.where(inside, change, 0).sum(1, keepdim=True)
        binds = mass == 1
        # d tau and d cap, by differentiating the equations that define tau and cap.
        tau = torch.where(binds, inside_sum / n_inside.clamp(min=1), 0)
        moved = change - tau
        result = torch.where(inside, moved, 0)
        if self.variant == "alpha":
            capped &= (x > 0) & ~binds
            n_capped = capped.sum(1, keepdim=True)
            capped_sum = torch.where(capped, change, 0).sum(1, keepdim=True)
            free = k - n_capped
            scale = (free * free + n_inside * n_capped).clamp(min=1)
            d_cap = (free * inside_sum + n_inside * capped_sum) / scale
            d_cap = torch.where(free == 0, capped_sum / k, d_cap)
            d_tau = (n_capped * d_cap - capped_sum) / free.clamp(min=1)
            result = torch.where(
                binds, result, torch.where(inside, change - d_tau, torch.where(capped, d_cap, 0))
            )
        result = result / self.gamma
        return result.scatter(1, label, -result.sum(1, keepdim=True))
