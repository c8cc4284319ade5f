"""The top-k losses as modules: replace ``torch.nn.CrossEntropyLoss`` and train on."""

from __future__ import annotations

from torch import Tensor, nn

from .._parameters import VARIANTS, check_k
from . import functional as F
from ._validation import REDUCTIONS, check_choice, check_smoothing
from .functional import Reduction, Variant

__all__ = [
    "OVAHingeLoss",
    "OVALogisticLoss",
    "TopKEntropyLoss",
    "TopKHingeLoss",
    "TruncatedTopKEntropyLoss",
]


class _ClassificationLoss(nn.Module):
    """What the losses share: ``weight`` (a buffer), ``ignore_index``, ``reduction``."""

    weight: Tensor | None

    def __init__(self, weight: Tensor | None, ignore_index: int, reduction: Reduction) -> None:
        super().__init__()
        check_choice("reduction", reduction, REDUCTIONS)
        self.register_buffer("weight", weight)
        self.ignore_index = ignore_index
        self.reduction = reduction

    def extra_repr(self) -> str:
        shown = {name: value for name, value in vars(self).items() if not name.startswith("_")}
        shown.pop("training")
        return ", ".join(f"{name}={value!r}" for name, value in shown.items())


class TopKHingeLoss(_ClassificationLoss):
    """Top-k hinge loss: of the k best wrong labels, how far they come within the label's margin.

    Parameters
    ----------
    k : int
        Length of the shortlist to optimise for, from 1 to the number of classes less one.
    smoothing : float
        gamma of the paper; 0 gives the nonsmooth hinge, whose gradient jumps.
    variant : "alpha" or "beta"
        alpha: hinge of the mean of the k largest margins. beta: mean of the k largest hinges.
    weight, ignore_index, reduction
        As in :class:`torch.nn.CrossEntropyLoss`.
    """

    def __init__(
        self,
        k: int = 1,
        smoothing: float = 1.0,
        variant: Variant = "alpha",
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        check_choice("variant", variant, VARIANTS)
        self.k = check_k(k)
        self.smoothing = check_smoothing(smoothing)
        self.variant = variant

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.topk_hinge_loss(
            input,
            target,
            self.k,
            self.smoothing,
            self.variant,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class TopKEntropyLoss(_ClassificationLoss):
    """Top-k entropy loss: cross-entropy in which no wrong label may take more than its share.

    Parameters
    ----------
    k : int
        Length of the shortlist to optimise for; 1 is cross-entropy.
    variant : "alpha" or "beta"
        A wrong label takes at most 1/k of what all wrong labels take, or at most 1/k.
    weight, ignore_index, reduction
        As in :class:`torch.nn.CrossEntropyLoss`.
    """

    def __init__(
        self,
        k: int = 1,
        variant: Variant = "alpha",
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        check_choice("variant", variant, VARIANTS)
        self.k = check_k(k)
        self.variant = variant

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.topk_entropy_loss(
            input,
            target,
            self.k,
            self.variant,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class TruncatedTopKEntropyLoss(_ClassificationLoss):
    """Truncated top-k entropy: cross-entropy that forgives the k - 1 best wrong labels.

    Not convex for k > 1: start from a net trained with cross-entropy.

    Parameters
    ----------
    k : int
        Length of the shortlist to optimise for; 1 is cross-entropy.
    weight, ignore_index, reduction
        As in :class:`torch.nn.CrossEntropyLoss`.
    """

    def __init__(
        self,
        k: int = 1,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        self.k = check_k(k)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.truncated_topk_entropy_loss(
            input,
            target,
            self.k,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class OVAHingeLoss(_ClassificationLoss):
    """One-vs-all hinge loss: the binary hinge of every class against the rest, summed.

    Parameters
    ----------
    smoothing : float
        Width of the quadratic part of the hinge; 0 gives the nonsmooth hinge.
    weight, ignore_index, reduction
        As in :class:`torch.nn.CrossEntropyLoss`.
    """

    def __init__(
        self,
        smoothing: float = 1.0,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, ignore_index, reduction)
        self.smoothing = check_smoothing(smoothing)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.ova_hinge_loss(
            input,
            target,
            self.smoothing,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )


class OVALogisticLoss(_ClassificationLoss):
    """One-vs-all logistic loss: the binary logistic loss of every class against the rest, summed.

    ``weight``, ``ignore_index`` and ``reduction`` are as in :class:`torch.nn.CrossEntropyLoss`.
    """

    def __init__(
        self,
        *,
        weight: Tensor | None = None,
        ignore_index: int = -100,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight, ignore_index, reduction)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.ova_logistic_loss(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
        )
