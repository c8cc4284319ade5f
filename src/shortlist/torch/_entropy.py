"""Top-k entropy losses (alpha, beta) and the truncated top-k entropy, over rows of scores.

Notation: u_j = f_j - f_y for j != y. A cap 1/k on probabilities can bind only for the k - 1
largest u_j, so one selection of k - 1 entries splits the row into its *top* and its *rest*; the
rest enters only through its log-sum-exp.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from ._row_loss import Evaluated
from ._selection import largest, wrong_scores

Variant = Literal["alpha", "beta"]


def _split(scores: Tensor, target: Tensor, k: int, label_in_rest: bool) -> _Split:
    """Split u into its k - 1 largest entries and the log-sum-exp of the rest."""
    label = target.unsqueeze(1)
    u = wrong_scores(scores, target).sub_(scores.gather(1, label))
    top, index = largest(u, k - 1)
    if label_in_rest:
        u.scatter_(1, label, 0.0)
    # Minus infinity removes the top from the rest. NaN stays NaN, so that errors show.
    u.scatter_(1, index, top - math.inf)
    # A softmax in place: fresh memory for a batch of scores costs more than the arithmetic.
    peak = u.amax(1, keepdim=True)
    share = u.sub_(peak).exp_()
    total = share.sum(1, keepdim=True)
    return _Split(top, index, share, total, peak + total.log())


@dataclass(frozen=True)
class _Split:
    """``top`` (sorted, n x k-1) at ``index``; the rest's log-sum-exp ``lse``.

    ``share / total`` is the rest's softmax. The caller may overwrite it.
    """

    top: Tensor
    index: Tensor
    share: Tensor
    total: Tensor
    lse: Tensor


@dataclass(frozen=True)
class TopKEntropy:
    """max <u, x> - sum x log x - (1 - s) log(1 - s) over the alpha or the beta set, k >= 2.

    alpha: x = s pi, where pi maximises <u, pi> + H(pi) over the simplex with every pi_j <= 1/k;
    with E that maximum, the best s is sigmoid(E) and the loss is log(1 + exp E).
    beta: the same capped maximum over all classes, where the label itself has no cap.
    """

    k: int
    variant: Variant

    def evaluate(self, scores: Tensor, target: Tensor) -> Evaluated:
        k = self.k
        alpha = self.variant == "alpha"
        split = _split(scores, target, k, label_in_rest=not alpha)
        top = split.top

        # tail[:, i]: log-sum-exp of everything but the i largest.
        tail = torch.cat([split.lse, top.flip(1)], dim=1).logcumsumexp(1).flip(1)
        # With the i largest at the cap, the next one follows iff (1 - i/k) exp(u - tail) > 1/k.
        # Once this fails it fails for all smaller entries, so counting is enough.
        places_left = torch.arange(k, 1, -1, device=top.device, dtype=top.dtype)
        capped = (top + places_left.log() > tail[:, :-1]).to(top.dtype)
        n_capped = capped.sum(1, keepdim=True)
        tail = tail.gather(1, n_capped.long())
        rho = n_capped / k
        log_free = torch.log1p(-rho)
        maximum = (
            (top * capped).sum(1, keepdim=True) / k
            + rho * math.log(k)
            + (1 - rho) * (tail - log_free)
        )

        if alpha:
            value = torch.logaddexp(maximum, torch.zeros_like(maximum))
            mass = torch.sigmoid(maximum)
        else:
            value = maximum
            mass = torch.ones_like(maximum)
        shift = log_free - tail
        x_top = mass * torch.where(capped > 0, 1 / k, torch.exp(top + shift))
        scale = mass * torch.exp(split.lse + shift) / split.total
        x = split.share.mul_(scale).scatter_(1, split.index, x_top)
        label = target.unsqueeze(1)
        gradient = x.scatter_(1, label, -mass if alpha else x.gather(1, label) - 1)
        return Evaluated(value.squeeze(1), gradient)

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        label = target.unsqueeze(1)
        tiny = torch.finfo(gradient.dtype).tiny
        if self.variant == "beta":
            x = _with_label(gradient, label)
            others = x.scatter(1, label, 0.0)
            free = torch.where(_below(others, x.new_tensor(1 / self.k)), x, 0.0)
            return _softmax_curvature(free, direction, tiny)
        s = -gradient.gather(1, label)
        x = gradient.scatter(1, label, 0.0)
        change = direction - direction.gather(1, label)
        free = torch.where(_below(x, s / self.k), x, 0.0)
        along_s = x * ((1 - s) * (x * change).sum(1, keepdim=True) / s.clamp(min=tiny))
        result = along_s + _softmax_curvature(free, change, tiny)
        return result.scatter(1, label, -result.sum(1, keepdim=True))


@dataclass(frozen=True)
class TruncatedTopKEntropy:
    """log(1 + sum of exp u_j over the m - k smallest j != y), k >= 2; not convex."""

    k: int

    def evaluate(self, scores: Tensor, target: Tensor) -> Evaluated:
        split = _split(scores, target, self.k, label_in_rest=True)
        label = target.unsqueeze(1)
        share = split.share.div_(split.total)
        gradient = share.scatter_(1, label, share.gather(1, label) - 1)
        return Evaluated(split.lse.squeeze(1), gradient)

    def curvature(self, gradient: Tensor, target: Tensor, direction: Tensor) -> Tensor:
        label = target.unsqueeze(1)
        share = _with_label(gradient, label)
        return _softmax_curvature(share, direction, torch.finfo(share.dtype).tiny)


def _with_label(gradient: Tensor, label: Tensor) -> Tensor:
    """Undo the -1 at the label: the probabilities that a softmax's gradient was made of."""
    return gradient.scatter(1, label, gradient.gather(1, label) + 1)


def _below(x: Tensor, cap: Tensor) -> Tensor:
    return x < cap * (1 - 4 * torch.finfo(x.dtype).eps)


def _softmax_curvature(x: Tensor, direction: Tensor, tiny: float) -> Tensor:
    """(diag(x) - x x' / <1, x>) direction, row by row."""
    moved = x * direction
    return moved - x * (moved.sum(1, keepdim=True) / x.sum(1, keepdim=True).clamp(min=tiny))
