"""Networks and data sets by name, and the command that turns one's data into the other's features.

A network is named by
    ``timm:NAME``            a pretrained timm model, without its classifier
    ``torchvision:NAME``     a pretrained torchvision model, without its classifier
    ``FILE.pt``              a TorchScript file
    ``MODULE:FUNCTION``      whatever FUNCTION() of an importable module returns
and data by
    a folder of images       one subfolder a class, or none
    ``FILE.npy``             an array of inputs, the first axis being the examples
    ``MODULE:FUNCTION``      whatever data set FUNCTION() returns
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.utils.data import Dataset, Subset

from .features import FeatureFiles, Pool, extract_features
from .images import ImageFolder, preprocess

__all__ = ["features_command", "load_backbone", "load_inputs"]

Transform = Callable[[Any], torch.Tensor]


def features_command(
    model: str,
    source: str,
    output: str | Path,
    *,
    labels: str | Path | None = None,
    batch_size: int = 64,
    num_workers: int = 0,
    image_size: int = 224,
    device: str | None = None,
    dtype: Literal["float32", "float16", "float64"] = "float32",
    pool: Pool = "mean",
    progress: bool | None = None,
) -> FeatureFiles:
    """Write the features that the named network computes for the named data.

    Labels, if the data has any, go to ``labels`` (by default beside ``output``), as class names
    where the data names its classes. The other parameters are those of :func:`extract_features`.
    """
    network, transform = load_backbone(model, image_size)
    data = load_inputs(source, transform)
    names = getattr(data, "classes", None)
    return extract_features(
        network,
        data,
        output,
        labels_path=labels,
        classes=names or None,
        batch_size=batch_size,
        num_workers=num_workers,
        device=device,
        dtype=dtype,
        pool=pool,
        progress=progress,
    )


def load_backbone(name: str, image_size: int = 224) -> tuple[nn.Module, Transform]:
    """Return the named network and what turns an image into its input."""
    if image_size < 1:
        raise ValueError(f"image_size must be at least 1, got {image_size}")
    default = partial(preprocess, size=image_size)
    if name.endswith((".pt", ".ts", ".pth")):
        if not Path(name).is_file():
            raise FileNotFoundError(f"{name}: no such file")
        try:
            return torch.jit.load(name, map_location="cpu"), default
        except RuntimeError as error:
            raise ValueError(
                f"{name}: is not a TorchScript file (save one with torch.jit.save; a state_dict "
                "alone does not say what to run)"
            ) from error
    library, _, model_name = name.partition(":")
    if not model_name:
        raise ValueError(
            "model must be timm:NAME, torchvision:NAME, MODULE:FUNCTION or a .pt file, "
            f"got {name!r}"
        )
    if library == "timm":
        return _from_timm(model_name)
    if library == "torchvision":
        return _from_torchvision(model_name)
    network = _call(name)
    if not isinstance(network, nn.Module):
        raise TypeError(f"{name} must return a torch.nn.Module, got {type(network).__name__}")
    return network, default


def load_inputs(source: str, transform: Transform) -> Dataset:
    """Return the named data; ``transform`` turns images into inputs."""
    if source.endswith(".npy"):
        return _ArrayInputs(source)
    if ":" in source and not Path(source).exists():
        data = _call(source)
        if isinstance(data, Dataset):
            return data
        if not (hasattr(data, "__getitem__") and hasattr(data, "__len__")):
            raise TypeError(f"{source} must return a data set, got {type(data).__name__}")
        return Subset(data, range(len(data)))  # a list of examples works too
    return ImageFolder(source, transform)


def _call(name: str) -> Any:
    module_name, _, attribute = name.partition(":")
    try:
        function = getattr(import_module(module_name), attribute)
    except ImportError as missing:
        raise ValueError(f"{name}: cannot import {module_name} ({missing})") from missing
    except AttributeError:
        raise ValueError(f"{name}: {module_name} has no {attribute!r}") from None
    return function()


def _needed(library: str) -> Any:
    try:
        return import_module(library)
    except ImportError as missing:
        package = library.partition(".")[0]
        raise ImportError(f"this model needs {package}: pip install {package}") from missing


def _from_timm(name: str) -> tuple[nn.Module, Transform]:
    timm = _needed("timm")
    network = timm.create_model(name, pretrained=True, num_classes=0)
    config = timm.data.resolve_model_data_config(network)
    return network, timm.data.create_transform(**config, is_training=False)


def _from_torchvision(name: str) -> tuple[nn.Module, Transform]:
    models = _needed("torchvision.models")
    weights = models.get_model_weights(name).DEFAULT
    network = models.get_model(name, weights=weights)
    for head in ("fc", "classifier", "heads", "head"):  # the names that model families use
        if hasattr(network, head):
            setattr(network, head, nn.Identity())
            return network, weights.transforms()
    raise ValueError(f"torchvision:{name}: its classifier is not where it is in other models")


class _ArrayInputs(Dataset):
    """The rows of a .npy file, read as they are asked for."""

    def __init__(self, path: str) -> None:
        self._rows = np.load(path, mmap_mode="r")
        if self._rows.ndim < 2:
            raise ValueError(f"{path}: must have an axis of examples and others of inputs")

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int) -> torch.Tensor:
        row = np.array(self._rows[index])
        return torch.from_numpy(row if row.dtype.kind == "f" else row.astype(np.float32))
