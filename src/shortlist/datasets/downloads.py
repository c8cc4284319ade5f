"""Named downloads of LibSVM's data sets, kept in a local cache."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import atomic_write
from .cache import default_cache_dir, exclusive
from .containers import DataSplits, LabeledData
from .errors import DataError
from .transfer import download

BASE_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
CHECKSUMS = "SHA256SUMS"


@dataclass(frozen=True)
class _Part:
    """One file, and how many examples LibSVM's page says it has."""

    file: str
    n_samples: int


@dataclass(frozen=True)
class _Source:
    n_features: int
    n_classes: int
    scaled: dict[str, _Part]
    raw: dict[str, _Part] | None = None


SOURCES = {
    "letter": _Source(
        16,
        26,
        {
            "train": _Part("letter.scale.tr", 10_500),
            "val": _Part("letter.scale.val", 4_500),
            "test": _Part("letter.scale.t", 5_000),
        },
    ),
    "news20": _Source(
        62_061,
        20,
        {"train": _Part("news20.scale.bz2", 15_935), "test": _Part("news20.t.scale.bz2", 3_993)},
        {"train": _Part("news20.bz2", 15_935), "test": _Part("news20.t.bz2", 3_993)},
    ),
    "aloi": _Source(
        128,
        1_000,
        {"all": _Part("aloi.scale.bz2", 108_000)},
        {"all": _Part("aloi.bz2", 108_000)},
    ),
    "sector": _Source(
        55_197,
        105,
        {
            "train": _Part("sector/sector.scale.bz2", 6_412),
            "test": _Part("sector/sector.t.scale.bz2", 3_207),
        },
        {
            "train": _Part("sector/sector.bz2", 6_412),
            "test": _Part("sector/sector.t.bz2", 3_207),
        },
    ),
}


def fetch(
    name: str,
    *,
    scaled: bool = True,
    cache_dir: str | os.PathLike[str] | None = None,
    base_url: str | None = None,
    random_state: Any = 0,
    progress: bool | None = None,
) -> DataSplits:
    """Download one of LibSVM's data sets, or take it from the cache.

    Parameters
    ----------
    name : "letter", "news20", "aloi" or "sector"
        (:func:`load_letter` has Letter without any download.)
    scaled : bool
        Whether to take LibSVM's scaled version of the features.
    cache_dir : path-like or None
        None is $SHORTLIST_CACHE if that is set, otherwise the platform's cache directory.
    base_url : str or None
        Another place that has the same files, a mirror; None is LibSVM's own site.
    random_state : int, RandomState instance or None
        ALOI comes in one file. As in the paper it is halved at random into training and test
        examples, class by class; an int gives the same halves in every run.
    progress : bool or None
        Whether to show progress bars; None shows them on a terminal.

    Returns
    -------
    DataSplits
        The labels are the files' own; Letter's count from 1, where :func:`load_letter` counts
        from 0.

    Notes
    -----
    LibSVM's site publishes no checksums. So the SHA-256 of a file is recorded when it first
    arrives, in the cache's ``SHA256SUMS`` (which ``sha256sum -c`` understands), and checked every
    time the file is used: a later change is noticed, a file that was wrong from the start is not.
    Against that, a file is kept only if it has the numbers of examples, features and classes that
    LibSVM's page states.
    """
    if name not in SOURCES:
        raise ValueError(f"name must be one of {', '.join(SOURCES)}, got {name!r}")
    source = SOURCES[name]
    parts = source.scaled if scaled else source.raw
    if parts is None:
        raise ValueError(f"{name} has only a scaled version: use scaled=True")
    folder = Path(cache_dir if cache_dir is not None else default_cache_dir()) / "datasets" / name
    url = (base_url or BASE_URL).rstrip("/") + "/"
    with exclusive(folder):
        data = {
            split: _obtain(url + part.file, folder / Path(part.file).name, part, source, progress)
            for split, part in parts.items()
        }
    if "all" in data:
        data = _halves(data["all"], random_state)
    return DataSplits(
        name=name,
        train=data["train"],
        val=data.get("val"),
        test=data["test"],
        description=f"LibSVM's {name}, from {url}",
    )


def _obtain(
    url: str, path: Path, part: _Part, source: _Source, progress: bool | None
) -> LabeledData:
    """Return the contents of a verified file, downloading it first if the cache lacks it."""
    if not path.exists():
        download(url, path, progress=progress)
    digest = _sha256(path)
    recorded = _checksums(path.parent)
    if path.name in recorded:
        if recorded[path.name] != digest:
            raise DataError(
                f"differs from the checksum in {CHECKSUMS} beside it: "
                "delete the file to download it again, and its line there if the new one is right",
                path=path,
            )
        return _read(path, part, source)
    try:
        data = _read(path, part, source)
    except DataError:
        path.unlink()  # what was never right is neither recorded nor kept
        raise
    _record(path.parent, {**recorded, path.name: digest})
    return data


def _sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _checksums(folder: Path) -> dict[str, str]:
    try:
        text = (folder / CHECKSUMS).read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    pairs = (line.split(maxsplit=1) for line in text.splitlines() if line.strip())
    return {pair[1].strip(): pair[0] for pair in pairs if len(pair) == 2}


def _record(folder: Path, digests: dict[str, str]) -> None:
    lines = [f"{digest}  {name}\n" for name, digest in sorted(digests.items())]
    with atomic_write(folder / CHECKSUMS) as part:
        part.write_text("".join(lines), encoding="utf-8")


def _read(path: Path, part: _Part, source: _Source) -> LabeledData:
    from .libsvm import read_libsvm

    # These files count their features from 1, also where no example has the first one.
    data = read_libsvm(path, n_features=source.n_features, zero_based=False, extra_features="error")
    if data.n_samples != part.n_samples:
        message = f"has {data.n_samples} examples, but LibSVM's page says {part.n_samples}"
        raise DataError(message, path=path)
    n_classes = len(set(data.y.tolist()))
    if n_classes > source.n_classes:
        message = f"has {n_classes} classes, but LibSVM's page says {source.n_classes}"
        raise DataError(message, path=path)
    return data


def _halves(data: LabeledData, random_state: Any) -> dict[str, LabeledData]:
    from sklearn.model_selection import train_test_split

    X_train, X_test, y_train, y_test = train_test_split(
        data.X, data.y, test_size=0.5, stratify=data.y, random_state=random_state
    )
    return {
        "train": LabeledData(X_train, y_train, source=data.source, zero_based=False),
        "test": LabeledData(X_test, y_test, source=data.source, zero_based=False),
    }
