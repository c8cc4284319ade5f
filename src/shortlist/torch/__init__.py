"""Top-k losses, a top-k metric and linear probes for PyTorch (extra ``shortlist[torch]``).

>>> import torch
>>> from shortlist.torch import TopKHingeLoss
>>> loss = TopKHingeLoss(k=2)(torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([1]))
>>> round(loss.item(), 3)
0.75
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    raise ImportError(
        "shortlist.torch needs PyTorch, which is not installed: pip install 'shortlist[torch]'"
    ) from missing

from . import functional
from .backbones import features_command
from .bridge import from_linear, to_linear
from .features import FeatureFiles, extract_features
from .images import ImageFolder
from .metrics import TopKAccuracy
from .modules import (
    OVAHingeLoss,
    OVALogisticLoss,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
)

__all__ = [
    "FeatureFiles",
    "ImageFolder",
    "OVAHingeLoss",
    "OVALogisticLoss",
    "TopKAccuracy",
    "TopKEntropyLoss",
    "TopKHingeLoss",
    "TruncatedTopKEntropyLoss",
    "extract_features",
    "features_command",
    "from_linear",
    "functional",
    "to_linear",
]
