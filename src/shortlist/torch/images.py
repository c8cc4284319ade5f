"""A folder of images as a data set, with Pillow as its only need."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.data import Dataset

if TYPE_CHECKING:
    from PIL import Image

__all__ = ["ImageFolder", "preprocess"]

_SUFFIXES = frozenset([".bmp", ".gif", ".jpeg", ".jpg", ".png", ".ppm", ".tif", ".tiff", ".webp"])
# The statistics of ImageNet, which nearly every pretrained backbone was trained with.
_MEAN = np.array([0.485, 0.456, 0.406], dtype=np.float32)
_STD = np.array([0.229, 0.224, 0.225], dtype=np.float32)


class ImageFolder(Dataset):
    """Images of a folder with one subfolder for each class, or without classes.

    Parameters
    ----------
    root : path
        Class names are the names of the subfolders that hold images, at any depth, sorted. If the
        images lie in ``root`` itself there are no classes and items are images alone.
    transform : callable, optional
        Turns an RGB Pillow image into a tensor; :func:`preprocess` by default.

    Attributes
    ----------
    classes : list of str
        Names of the classes, empty if there are none.
    paths : list of Path
        The images, in the order of the items.
    labels : list of int
        For each image the index of its class; empty if there are none.
    """

    def __init__(
        self, root: str | Path, transform: Callable[[Image.Image], torch.Tensor] | None = None
    ) -> None:
        _pillow()
        self.root = Path(root)
        if not self.root.is_dir():
            raise FileNotFoundError(f"{root}: no such folder")
        self.transform = transform or preprocess
        found = {
            folder.name: _images_under(folder)
            for folder in sorted(self.root.iterdir())
            if folder.is_dir()
        }
        own = sorted(path for path in self.root.iterdir() if _is_image(path))
        self.classes = [name for name, paths in found.items() if paths]
        if own and self.classes:
            raise ValueError(
                f"{root}: holds images both of its own ({own[0].name}) and in subfolders "
                f"({self.classes[0]}): it is unclear whether subfolders are classes"
            )
        if not own and not self.classes:
            raise ValueError(f"{root}: holds no images ({', '.join(sorted(_SUFFIXES))})")
        self.paths = own + [path for name in self.classes for path in found[name]]
        self.labels = [i for i, name in enumerate(self.classes) for _ in found[name]]

    def __len__(self) -> int:
        return len(self.paths)

    def __getitem__(self, index: int) -> Any:
        path = self.paths[index]
        try:
            with _pillow().open(path) as opened:
                image = opened.convert("RGB")
        except Exception as error:  # Pillow raises nearly everything for damaged files
            raise ValueError(f"{path}: cannot be read as an image ({error})") from error
        tensor = self.transform(image)
        return (tensor, self.labels[index]) if self.labels else tensor


def preprocess(image: Image.Image, size: int = 224) -> torch.Tensor:
    """Resize the shorter side to ``size`` / 0.875, crop the centre, normalise as for ImageNet."""
    resampling = _pillow().Resampling.BICUBIC
    scale = size / 0.875 / min(image.size)
    width, height = (max(size, round(side * scale)) for side in image.size)
    image = image.resize((width, height), resampling)
    left, top = (width - size) // 2, (height - size) // 2
    pixels = np.asarray(image.crop((left, top, left + size, top + size)), dtype=np.float32) / 255
    return torch.from_numpy((pixels - _MEAN) / _STD).permute(2, 0, 1).contiguous()


def _images_under(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if _is_image(path))


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in _SUFFIXES and path.is_file()


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as missing:
        raise ImportError("image folders need Pillow: pip install pillow") from missing
    return Image
