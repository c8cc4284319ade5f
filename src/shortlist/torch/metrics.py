"""Top-k accuracy for training loops: every k at once, batch by batch, over processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from ._row_loss import values_are_free
from ._validation import all_labels, check_choice, check_k, check_tensors, class_count

__all__ = ["TopKAccuracy"]

TIE_POLICIES = ("optimistic", "pessimistic", "expected")
Ties = Literal["optimistic", "pessimistic", "expected"]


class TopKAccuracy(nn.Module):
    """Top-k accuracy for k = 1, ..., ``max_k``, accumulated over batches.

    Call :meth:`update` on every batch and :meth:`compute` at the end; calling the metric itself
    updates it and returns the batch's own accuracies. Figures from other processes join through
    :meth:`merge_state` or :meth:`all_reduce`. The state is two buffers, so it moves with ``.to()``
    and is kept by ``state_dict``.

    Parameters
    ----------
    max_k : int
        The longest shortlist to score, at most the number of classes.
    ties : "optimistic", "pessimistic" or "expected"
        What happens when the label's score ties with others at the cut, as in
        :func:`shortlist.metrics.topk_error`.
    ignore_index : int
        Examples with this label do not count.

    Examples
    --------
    >>> metric = TopKAccuracy(max_k=2)
    >>> metric.update(torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0]]), torch.tensor([0, 1]))
    >>> metric.compute().tolist()
    [0.5, 1.0]
    """

    hits: Tensor
    total: Tensor

    def __init__(
        self, max_k: int = 5, *, ties: Ties = "optimistic", ignore_index: int = -100
    ) -> None:
        super().__init__()
        check_choice("ties", ties, TIE_POLICIES)
        self.max_k = check_k(max_k, "max_k")
        self.ties = ties
        self.ignore_index = ignore_index
        # Doubles count exactly up to 2^53 examples; single precision stops at 16 million.
        self.register_buffer("hits", torch.zeros(self.max_k, dtype=torch.float64))
        self.register_buffer("total", torch.zeros((), dtype=torch.float64))

    def forward(self, input: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
        """Update with a batch and return its accuracies."""
        hits, total = self._count(input, target, weight)
        self._add(hits, total)
        return hits / total

    def update(self, input: Tensor, target: Tensor, weight: Tensor | None = None) -> None:
        """Count a batch: scores (N, C) or (N, C, d1, ...), labels (N,) or (N, d1, ...).

        ``weight`` of the labels' shape gives examples unequal importance.
        """
        self._add(*self._count(input, target, weight))

    def compute(self) -> Tensor:
        """Return the accuracies for k = 1, ..., max_k; NaN before the first example."""
        return self.hits / self.total

    def reset(self) -> None:
        """Forget everything counted so far."""
        self.hits.zero_()
        self.total.zero_()

    def merge_state(self, metrics: Iterable[TopKAccuracy]) -> Self:
        """Add what other metrics of the same kind have counted."""
        for other in metrics:
            if (other.max_k, other.ties) != (self.max_k, self.ties):
                raise ValueError(
                    f"cannot merge a metric with max_k={other.max_k}, ties={other.ties!r} into one "
                    f"with max_k={self.max_k}, ties={self.ties!r}"
                )
            self._add(other.hits, other.total)
        return self

    def all_reduce(self, group: torch.distributed.ProcessGroup | None = None) -> Self:
        """Replace every process's counts by the sum over the processes of ``group``."""
        state = torch.cat([self.hits, self.total.unsqueeze(0)])
        torch.distributed.all_reduce(state, group=group)
        self.hits.copy_(state[:-1])
        self.total.copy_(state[-1])
        return self

    def extra_repr(self) -> str:
        return f"max_k={self.max_k}, ties={self.ties!r}, ignore_index={self.ignore_index}"

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        # A network's .half() reaches the metrics among its parts: counts follow the device only.
        counts = {name: buffer.detach().clone() for name, buffer in self._buffers.items()}
        super()._apply(fn, recurse)
        for name, count in counts.items():
            device = self._buffers[name].device
            # Without data (to_empty() after "meta") there is nothing to take along.
            self._buffers[name] = (
                torch.zeros_like(count, device=device) if count.is_meta else count.to(device)
            )
        return self

    def _add(self, hits: Tensor, total: Tensor) -> None:
        self.hits.add_(hits.to(self.hits))
        self.total.add_(total.to(self.total))

    @torch.no_grad()
    def _count(self, input: Tensor, target: Tensor, weight: Tensor | None) -> tuple[Tensor, Tensor]:
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
        share = torch.ones_like(labels, dtype=self.hits.dtype)
        if weight is not None:
            share = weight.reshape(-1).to(self.hits.dtype)
        share = torch.where(counted, share, 0)

        own = scores.gather(1, labels.where(counted, 0).unsqueeze(1))
        # A NaN, the label's own too, counts as a larger score: it must not look like a hit.
        n_above = (~(scores <= own)).sum(1, keepdim=True)
        n_tied = (scores == own).sum(1, keepdim=True).clamp(min=1)
        k = torch.arange(1, self.max_k + 1, device=scores.device)
        if self.ties == "optimistic":
            right = (k > n_above).to(share.dtype)
        elif self.ties == "pessimistic":
            right = (k >= n_above + n_tied).to(share.dtype)
        else:
            right = (k - n_above).clamp(min=0).to(share.dtype).div(n_tied).clamp(max=1)
        return (right * share.unsqueeze(1)).sum(0), share.sum()
