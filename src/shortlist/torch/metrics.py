"""Top-k accuracy for training loops: every k at once, batch by batch, over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from .._parameters import TIE_POLICIES, check_k
from ._row_loss import values_are_free
from ._validation import all_labels, check_choice, check_tensors, class_count

__all__ = ["TopKAccuracy"]

Ties = Literal["expected", "optimistic", "pessimistic"]


class TopKAccuracy(nn.Module):
    """Top-k accuracy for k = 1, ..., ``max_k``, accumulated over batches.

    Call :meth:`update` on every batch and :meth:`compute` at the end; calling the metric itself
    updates it and returns the batch's own accuracies. Figures from other processes join through
    :meth:`merge_state` or :meth:`all_reduce`.

    The counts move with ``.to()`` and are kept by ``state_dict``. They are no buffers: in a network
    under ``DistributedDataParallel`` every process keeps its own.

    Parameters
    ----------
    max_k : int
        The longest shortlist to score, at most the number of classes.
    ties : "expected", "optimistic" or "pessimistic"
        What happens when the label's score ties with others at the cut, as in
        :func:`shortlist.metrics.topk_error`. Expected: the chance of a hit if ties are broken at
        random, so that a network whose scores are all equal gets k / n_classes.
    ignore_index : int
        Examples with this label do not count.

    Examples
    --------
    >>> metric = TopKAccuracy(max_k=2)
    >>> metric.update(torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), torch.tensor([0, 1]))
    >>> metric.compute().tolist()
    [0.5, 1.0]
    """

    def __init__(
        self, max_k: int = 5, *, ties: Ties = "expected", ignore_index: int = -100
    ) -> None:
        super().__init__()
        check_choice("ties", ties, TIE_POLICIES)
        self.max_k = check_k(max_k, name="max_k")
        self.ties = ties
        self.ignore_index = ignore_index
        # Both are sums of :func:`_add`: the hits for every k, and last the number of examples.
        # all_reduce moves what was counted here into what all processes share.
        self._here = torch.zeros(2, self.max_k + 1)
        self._shared = torch.zeros(2, self.max_k + 1)

    @property
    def hits(self) -> Tensor:
        """Return how many examples (or how much of their weight) are right, for every k."""
        return self._counts()[:-1]

    @property
    def total(self) -> Tensor:
        """Return the number of examples, or their weight."""
        return self._counts()[-1]

    def forward(self, input: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Update with a batch and return its accuracies."""
        counts = self._count(input, target, weight)
        self._here = _add(self._here, counts)
        return _ratio(counts)

    def update(self, input: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        """Count a batch: scores (N, C) or (N, C, d1, ...), labels (N,) or (N, d1, ...).

        ``weight`` of the labels' shape gives examples unequal importance.
        """
        self._here = _add(self._here, self._count(input, target, weight))

    def compute(self) -> Tensor:
        """Return the accuracies for k = 1, ..., max_k; NaN before the first example."""
        return _ratio(self._counts())

    def reset(self) -> None:
        """Forget everything counted so far."""
        self._here = torch.zeros_like(self._here)
        self._shared = torch.zeros_like(self._shared)

    def merge_state(self, metrics: Iterable[TopKAccuracy]) -> Self:
        """Add what other metrics of the same kind have counted."""
        for other in metrics:
            if (other.max_k, other.ties) != (self.max_k, self.ties):
                raise ValueError(
                    f"cannot merge a metric with max_k={other.max_k}, ties={other.ties!r} into one "
                    f"with max_k={self.max_k}, ties={self.ties!r}"
                )
            if self._shared.any() and other._shared.any():
                raise ValueError(
                    "cannot merge two metrics after all_reduce: both hold the counts of all "
                    "processes, which would count twice"
                )
            for counts in (*other._here, *other._shared):
                self._here = _add(self._here, counts.to(self._here.device))
        return self

    def all_reduce(self, group: torch.distributed.ProcessGroup | None = None) -> Self:
        """Let every process of ``group`` hold the counts of all of them.

        An example counts once however often this is called: each call shares what was counted
        since the last one.
        """
        parts = [
            torch.empty_like(self._here) for _ in range(torch.distributed.get_world_size(group))
        ]
        torch.distributed.all_gather(parts, self._here, group=group)
        for part in parts:
            for counts in part:
                self._shared = _add(self._shared, counts)
        self._here = torch.zeros_like(self._here)
        return self

    def extra_repr(self) -> str:
        return f"max_k={self.max_k}, ties={self.ties!r}, ignore_index={self.ignore_index}"

    def get_extra_state(self) -> Tensor:
        """Return the counts, for ``state_dict``."""
        return torch.stack([self._here, self._shared])

    def set_extra_state(self, state: Tensor) -> None:
        """Take the counts of a ``state_dict``."""
        expected = (2, *self._here.shape)
        if state.shape != expected:
            raise ValueError(f"these are counts for max_k={state.shape[-1] - 1}, not {self.max_k}")
        self._here, self._shared = state.to(self._here).clone()

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        # A network's .half() reaches the metrics among its parts: counts follow the device only.
        super()._apply(fn, recurse)
        for name in ("_here", "_shared"):
            counts = getattr(self, name)
            device = fn(counts).device
            # After to_empty() on the device "meta" there are no counts to keep.
            moved = torch.zeros_like(counts, device=device) if counts.is_meta else counts.to(device)
            setattr(self, name, moved)
        return self

    def _counts(self) -> Tensor:
        counts = self._shared
        for part in self._here:
            counts = _add(counts, part)
        return counts[0]

    @torch.no_grad()
    def _count(self, input: Tensor, target: Tensor, weight: Tensor | None) -> Tensor:
        """Return the hits of a batch for every k, and last its number of examples."""
        check_tensors(input, target, None)
        n_classes = class_count(input)
        if self.max_k > n_classes:
            raise ValueError(
                f"max_k must be at most the number of classes: got max_k={self.max_k} for "
                f"{n_classes}"
            )
        if weight is not None and weight.shape != target.shape:
            raise ValueError(
                f"weight must have the labels' shape {tuple(target.shape)}, "
                f"got {tuple(weight.shape)}"
            )
        scores = input.unsqueeze(0) if input.ndim == 1 else input.movedim(1, -1).flatten(0, -2)
        labels = target.reshape(-1).long()
        if values_are_free(labels):
            all_labels(labels, n_classes, self.ignore_index)
        counted = labels != self.ignore_index
        share = counted.float()
        if weight is not None:
            share = torch.where(counted, weight.reshape(-1).to(share), 0)

        own = scores.gather(1, labels.where(counted, 0).unsqueeze(1))
        # A NaN, the label's own too, counts as a larger score: it must not look like a hit.
        n_above = (~(scores <= own)).sum(1, keepdim=True)
        n_tied = (scores == own).sum(1, keepdim=True).clamp(min=1)
        k = torch.arange(1, self.max_k + 1, device=scores.device)
        if self.ties == "optimistic":
            right = (k > n_above).float()
        elif self.ties == "pessimistic":
            right = (k >= n_above + n_tied).float()
        else:
            right = (k - n_above).clamp(min=0).float().div(n_tied).clamp(max=1)
        counts = (right * share.unsqueeze(1)).sum(0)
        return torch.cat([counts, share.sum().unsqueeze(0)]).to(self._here.device)


def _ratio(counts: Tensor) -> Tensor:
    return counts[:-1] / counts[-1]


def _add(sums: Tensor, terms: Tensor) -> Tensor:
    """Add ``terms`` (c,) to ``sums`` (2, c), whose second row is what the first has rounded off.

    Single precision alone stops counting at 16 million, and not every device has doubles. Two
    numbers together count exactly to 2^48.
    """
    high, low = sums
    total = high + terms
    from_terms = total - high
    rounded_off = (high - (total - from_terms)) + (terms - from_terms)
    low = low + rounded_off
    high = total + low
    return torch.stack([high, low - (high - total)])
