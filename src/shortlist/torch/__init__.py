"""Top-k losses, a top-k metric and linear probes for PyTorch (extra ``shortlist[torch]``)."""

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "shortlist.torch needs PyTorch, which is not installed: pip install 'shortlist[torch]'"
    ) from missing

from . import functional
from .modules import (
    OVAHingeLoss,
    OVALogisticLoss,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
)

__all__ = [
    "OVAHingeLoss",
    "OVALogisticLoss",
    "TopKEntropyLoss",
    "TopKHingeLoss",
    "TruncatedTopKEntropyLoss",
    "functional",
]
