"""Named downloads of LibSVM's data sets, kept in a local cache.

pooch does the downloading: to a temporary file in the same folder, put in place only when it is
whole and its SHA-256 is the known one. What is known is said in the notes of :func:`fetch`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .._files import atomic_write
from .._folders import default_cache_dir
from .._progress import byte_bar
from ..errors import DataError
from .containers import DataSplits, LabeledData
from .splits import halves

BASE_URL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/multiclass/"
CHECKSUMS = "SHA256SUMS"
_RETRIES = 3
_CHUNK_BYTES = 2**18
# Statuses worth another try. "Not found" and similar ones do not change.
_PASSING_STATUS = frozenset([408, 425, 429, 500, 502, 503, 504])


@dataclass(frozen=True)
class _Part:
    """One file, how many examples LibSVM's page says it has, and its SHA-256 where that is known.

    No SHA-256 of LibSVM's files is published, so none is known yet.
    """

    file: str
    n_samples: int
    sha256: str | None = None


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
    Where the SHA-256 of a file is known in advance, only that file is accepted. LibSVM's site
    publishes none, so its files are trusted on first use: the SHA-256 is recorded when a file first
    arrives, in the cache's ``SHA256SUMS`` (which ``sha256sum -c`` understands), and checked every
    time the file is used. A later change is noticed; a file that was wrong from the start is not.
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
    with _exclusive(folder):
        data = {
            split: _obtain(url + part.file, folder / Path(part.file).name, part, source, progress)
            for split, part in parts.items()
        }
    if "all" in data:
        data = halves(data["all"], random_state)
    return DataSplits(
        name=name,
        train=data["train"],
        val=data.get("val"),
        test=data["test"],
        description=f"LibSVM's {name}, from {url}",
    )


@contextmanager
def _exclusive(directory: Path) -> Iterator[None]:
    """Let one process at a time work in a directory; the lock ends with the process that holds it.

    Where the system has no such locks (Windows) processes are not kept apart.
    """
    directory.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(directory / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _obtain(
    url: str, path: Path, part: _Part, source: _Source, progress: bool | None
) -> LabeledData:
    """Return the contents of a verified file, downloading it first if the cache lacks it."""
    recorded = _checksums(path.parent)
    known = part.sha256 or recorded.get(path.name)
    _download(url, path, known, progress)
    if known is not None:
        return _read(path, part, source)
    try:
        data = _read(path, part, source)
    except DataError:
        path.unlink()  # a file that never matched is neither recorded nor kept
        raise
    _record(path.parent, {**recorded, path.name: _sha256(path)})
    return data


class _Refused(Exception):
    """An answer that asking again does not change. pooch repeats a request on others."""


def _download(url: str, path: Path, sha256: str | None, progress: bool | None) -> None:
    """Bring a file into the cache unless it is there, and compare its SHA-256 if one is known."""
    import pooch
    import requests

    keeper = pooch.Pooch(
        path=path.parent,
        base_url="",
        registry={path.name: sha256 and f"sha256:{sha256}"},
        urls={path.name: url},
        retry_if_failed=_RETRIES,
        allow_updates=False,  # a file that changed here is an error
    )
    there = path.exists()
    try:
        with _quiet(pooch.get_logger()), byte_bar(path.name, False if there else progress) as bar:
            keeper.fetch(path.name, downloader=_Downloader(bar))
    except (_Refused, requests.exceptions.RequestException) as error:
        raise DataError(f"cannot be downloaded ({error})", path=url) from None
    except ValueError:
        if there:
            advice = "delete the file to download it again"
        else:
            advice = "the file at its source has changed, or is not what it was"
        raise DataError(
            f"differs from the known checksum: {advice} (recorded ones are in {CHECKSUMS} beside "
            "it)",
            path=path,
        ) from None


class _Downloader:
    """pooch's downloader, except that an answer such as 404 is final."""

    def __init__(self, bar: Any) -> None:
        import pooch

        self._get = pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK_BYTES)

    def __call__(self, url: str, output_file: Any, keeper: Any) -> None:
        import requests

        try:
            self._get(url, output_file, keeper)
        except requests.exceptions.HTTPError as error:
            response = error.response
            if response is None or response.status_code in _PASSING_STATUS:
                raise
            raise _Refused(f"HTTP {response.status_code} {response.reason}") from None


@contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _sha256(path: Path) -> str:
    import pooch

    return str(pooch.file_hash(str(path), alg="sha256"))


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
