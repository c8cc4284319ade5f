"""Features of a frozen network, written in batches to .npy files that NumPy can memory-map."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset

from shortlist._files import atomic_write
from shortlist._progress import progress_on
from shortlist._signals import handled, leave

__all__ = ["FeatureFiles", "extract_features"]

Pool = Literal["flatten", "mean"]


@dataclass(frozen=True)
class FeatureFiles:
    """What :func:`extract_features` wrote; ``labels`` is None if the data had none."""

    features: Path
    labels: Path | None
    n_samples: int
    n_features: int
    seconds: float


def extract_features(
    model: nn.Module,
    data: DataLoader | Dataset | Iterable[Any],
    path: str | Path,
    *,
    labels_path: str | Path | None = None,
    classes: Sequence[str] | None = None,
    batch_size: int = 64,
    num_workers: int = 0,
    device: torch.device | str | None = None,
    dtype: Literal["float32", "float16", "float64"] = "float32",
    pool: Pool = "flatten",
    progress: bool | None = None,
) -> FeatureFiles:
    """Run a model over data and write its outputs, one row an example, to a .npy file.

    The files appear when they are complete and not before: an error, Ctrl-C or SIGTERM leaves
    nothing behind and an earlier file untouched. Read them with
    ``numpy.load(path, mmap_mode="r")``; they need not fit in memory, neither here nor when a
    ``TopKClassifier`` is fitted on them.

    Parameters
    ----------
    model : nn.Module
        Maps a batch of inputs to a tensor, one row an example. It runs in evaluation mode and
        without gradients; its mode is restored afterwards.
    data : DataLoader, Dataset or iterable of batches
        A data set is batched in order. Items (batches) are inputs, or (inputs, labels).
    path : path
        The file for the features.
    labels_path : path, optional
        The file for the labels; by default ``path`` with ``.labels.npy`` in place of its suffix,
        if the data has labels.
    classes : sequence of str, optional
        Names to write in place of the labels, which then are indices into it.
    batch_size, num_workers : int
        How a data set is batched and loaded.
    device : device, optional
        Where the model runs; by default where it is.
    dtype : "float32", "float16" or "float64"
        Type of the features in the file.
    pool : "flatten" or "mean"
        What becomes of outputs with more than two dimensions, such as feature maps: all entries,
        or the mean over positions for each channel.
    progress : bool, optional
        Whether to show a progress bar; by default on a terminal.
    """
    if pool not in ("flatten", "mean"):
        raise ValueError(f"pool must be 'flatten' or 'mean', got {pool!r}")
    if dtype not in ("float32", "float16", "float64"):
        raise ValueError(f"dtype must be 'float32', 'float16' or 'float64', got {dtype!r}")
    if isinstance(data, Dataset):
        data = DataLoader(data, batch_size=batch_size, num_workers=num_workers)
    target = Path(path)
    labels_target = Path(labels_path) if labels_path is not None else _labels_path(target)
    if labels_target.resolve() == target.resolve():
        raise ValueError(f"features and labels cannot go to the same file, {target}")
    place = _device_of(model) if device is None else _usable(device)

    start = time.perf_counter()
    with contextlib.ExitStack() as stack:
        stack.enter_context(handled(leave))
        stack.enter_context(_frozen(model.to(place)))
        # The features' file is entered first and so put in place last: labels without features
        # can happen if the disk fills up between the two, features without labels cannot.
        features = stack.enter_context(_NpyWriter.open(target, np.dtype(dtype)))
        labels_part: Path | None = None
        labels: list[np.ndarray] = []
        for inputs, batch_labels in _with_progress(data, progress):
            rows = _rows(model(_to_device(inputs, place)), pool).to(getattr(torch, dtype))
            if not bool(torch.isfinite(rows).all()):
                raise ValueError(
                    f"the model's output is not finite in {dtype}, in rows {features.n_rows} to "
                    f"{features.n_rows + len(rows) - 1}"
                )
            if batch_labels is not None and features.n_rows == 0:
                labels_part = stack.enter_context(atomic_write(labels_target))
            if (labels_part is None) != (batch_labels is None):
                raise ValueError("some batches have labels and some have none")
            if batch_labels is not None:
                named = _named(np.asarray(batch_labels), classes)
                if len(named) != len(rows):
                    raise ValueError(
                        f"the model gave {len(rows)} rows for a batch of {len(named)} labels"
                    )
                labels.append(named)
            features.append(rows.cpu().numpy())
        if features.n_rows == 0:
            raise ValueError("the data holds no examples")
        if labels_part is not None:
            # All at once, so that no batch's type (the longest of its words) cuts another's short.
            with open(labels_part, "wb") as file:
                np.save(file, np.concatenate(labels))
    return FeatureFiles(
        target,
        labels_target if labels else None,
        features.n_rows,
        features.row_shape[0],
        time.perf_counter() - start,
    )


def _labels_path(path: Path) -> Path:
    return path.with_name(f"{path.stem}.labels.npy")


def _named(labels: np.ndarray, classes: Sequence[str] | None) -> np.ndarray:
    return labels if classes is None else np.asarray(classes)[labels]


def _device_of(model: nn.Module) -> torch.device:
    for tensor in (*model.parameters(), *model.buffers()):
        return tensor.device
    return torch.device("cpu")


def _usable(device: torch.device | str) -> torch.device:
    try:
        return torch.empty(0, device=device).device
    except (RuntimeError, AssertionError) as error:  # torch raises both for what is not there
        reason = str(error).partition("\n")[0]
        raise ValueError(f"device {str(device)!r} cannot be used: {reason}") from error


@contextlib.contextmanager
def _frozen(model: nn.Module) -> Iterator[None]:
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in modes.items():
            module.training = training


def _split(batch: Any) -> tuple[Any, Any]:
    if isinstance(batch, list | tuple):
        if len(batch) == 1:
            return batch[0], None
        if len(batch) == 2:
            return batch[0], batch[1]
        raise ValueError(
            f"batches must be inputs or (inputs, labels); these have {len(batch)} parts"
        )
    return batch, None


def _with_progress(data: Iterable[Any], shown: bool | None) -> Iterator[tuple[Any, Any]]:
    from rich.console import Console

    console = Console(stderr=True)
    visible = console.is_terminal if shown is None else shown
    count = len(data) if isinstance(data, Sized) else None
    with progress_on(console if visible else None, "features", count=count) as progress:
        try:
            for number, batch in enumerate(data, 1):
                yield _split(batch)
                progress.finish(f"batch {number}")
        except ValueError as error:
            # A loading process's error comes as a traceback whose last line holds the message.
            if "DataLoader worker process" not in str(error):
                raise
            raise ValueError(str(error).rstrip().splitlines()[-1].partition(": ")[2]) from error


def _to_device(inputs: Any, device: torch.device) -> Any:
    if isinstance(inputs, dict):
        return {key: _to_device(value, device) for key, value in inputs.items()}
    return inputs.to(device) if isinstance(inputs, Tensor) else inputs


def _rows(output: Any, pool: Pool) -> Tensor:
    if not isinstance(output, Tensor):
        raise TypeError(
            f"the model must return a tensor, got {type(output).__name__}: wrap it in a module "
            "that picks the part to keep"
        )
    if output.ndim < 2:
        raise ValueError(
            f"the model must return one row an example, got shape {tuple(output.shape)}"
        )
    if output.ndim > 2:
        output = output.flatten(2).mean(2) if pool == "mean" else output.flatten(1)
    return output.float() if output.dtype == torch.bfloat16 else output


class _NpyWriter:
    """Append rows to a .npy file whose length is not known beforehand."""

    def __init__(self, file: IO[bytes], dtype: np.dtype) -> None:
        self._file = file
        self._dtype = dtype
        self._header_size = 0
        self.row_shape: tuple[int, ...] = ()
        self.n_rows = 0

    @classmethod
    @contextlib.contextmanager
    def open(cls, path: Path, dtype: np.dtype) -> Iterator[_NpyWriter]:
        """Write to ``path``, which appears on success."""
        with atomic_write(path) as part, open(part, "wb") as file:
            writer = cls(file, dtype)
            yield writer
            writer._write_header()

    def append(self, rows: np.ndarray) -> None:
        if self.n_rows == 0:
            self.row_shape = rows.shape[1:]
            self._write_header()
        elif rows.shape[1:] != self.row_shape:
            raise ValueError(
                f"rows must all have the same length: got {rows.shape[1:]} after {self.row_shape}"
            )
        self._file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())
        self.n_rows += len(rows)

    def _write_header(self) -> None:
        # NumPy pads headers so that the first axis may grow without moving the data.
        self._file.seek(0)
        np.lib.format.write_array_header_1_0(
            self._file,
            {
                "descr": np.lib.format.dtype_to_descr(self._dtype),
                "fortran_order": False,
                "shape": (self.n_rows, *self.row_shape),
            },
        )
        if self._header_size and self._file.tell() != self._header_size:
            raise RuntimeError("the header of the .npy file outgrew its place")
        self._header_size = self._file.tell()
        self._file.seek(0, 2)
