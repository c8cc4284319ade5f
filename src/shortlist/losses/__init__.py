"""Every loss of the paper, defined once: values, gradients, conjugates and dual steps.

>>> from shortlist import losses
>>> loss = losses.get("smooth_hinge", k=3)
>>> round(float(loss.value([0.0, 1.0, 2.0, 0.5, 0.0], 0)), 6)
2.0
"""

from typing import TYPE_CHECKING

from shortlist._lazy import names_of

if TYPE_CHECKING:
    from shortlist.losses.base import Loss
    from shortlist.losses.margins import ldam_margins
    from shortlist.losses.registry import get, mixture_weights, names, table

__all__ = ["Loss", "get", "ldam_margins", "mixture_weights", "names", "table"]
# Loaded on first use: the command asks for names of losses before it needs any.
__getattr__, __dir__, _ = names_of(
    __name__,
    {
        **dict.fromkeys(["get", "mixture_weights", "names", "table"], "registry"),
        "Loss": "base",
        "ldam_margins": "margins",
    },
)
