"""Download one file over HTTP: resumed where it stopped, in place only when it is whole."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from .errors import DataError

_CHUNK = 2**18
_TIMEOUT = 30.0
# What may go away by itself; "not found" and the like do not.
_NETWORK_ERRORS = (urllib.error.URLError, ConnectionError, TimeoutError, ssl.SSLError)
_RETRIED_STATUS = frozenset([408, 425, 429, 500, 502, 503, 504])


def download(
    url: str, target: Path, *, progress: bool | None = None, retries: int = 3, pause: float = 1.0
) -> None:
    """Download ``url`` to ``target``, which appears only when it is complete.

    What has arrived is kept in ``target.part`` across interruptions, with the server's word on
    which version it was (its ETag or date); a later call asks for the rest of that version.

    Parameters
    ----------
    url : str
    target : Path
    progress : bool or None
        Whether to show a progress bar; None shows it on a terminal.
    retries : int
        How often to go on after an interruption, waiting ``pause`` seconds more each time.
    """
    part = target.with_name(target.name + ".part")
    for attempt in range(retries + 1):
        try:
            _receive(url, part, progress)
            break
        except urllib.error.HTTPError as error:
            if error.code == 416:  # what we hold is not a part of what the server has
                _forget(part)
            elif error.code not in _RETRIED_STATUS or attempt == retries:
                message = f"cannot be downloaded (HTTP {error.code} {error.reason})"
                raise DataError(message, path=url) from None
        except (OSError, http.client.HTTPException) as error:
            if isinstance(error, OSError) and not isinstance(error, _NETWORK_ERRORS):
                raise  # the disk is at fault, not the network: trying again does not help
            if attempt == retries:
                reason = getattr(error, "reason", error)
                raise DataError(f"cannot be downloaded ({reason})", path=url) from None
        time.sleep(pause * attempt)
    else:
        raise DataError("cannot be downloaded (the server refuses every range)", path=url)
    with open(part, "rb") as file:
        os.fsync(file.fileno())
    os.replace(part, target)
    _forget(part)


class _Interrupted(ConnectionError):
    """The connection ended before the file did."""


def _receive(url: str, part: Path, progress: bool | None) -> None:
    """Bring ``part`` to completion with one request."""
    request = urllib.request.Request(url, headers={"User-Agent": "shortlist"})
    held = part.stat().st_size if part.exists() else 0
    version = _version_of(part) if held else None
    if version:
        request.add_header("Range", f"bytes={held}-")
        request.add_header("If-Range", version)
    with urllib.request.urlopen(request, timeout=_TIMEOUT) as response:
        resumed = response.status == 206
        if not resumed:
            held = 0
            _note_version(part, response.headers.get("ETag") or response.headers["Last-Modified"])
        length = response.headers.get("Content-Length")
        total = held + int(length) if length is not None else None
        with open(part, "ab" if resumed else "wb") as file, _bar(part, total, progress) as advance:
            advance(held)
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                advance(len(chunk))
    size = part.stat().st_size
    if total is not None and size != total:
        raise _Interrupted(f"{size} of {total} bytes arrived")


def _version_file(part: Path) -> Path:
    return part.with_name(part.name + ".json")


def _version_of(part: Path) -> str | None:
    with suppress(OSError, ValueError):
        version = json.loads(_version_file(part).read_text(encoding="utf-8"))["version"]
        # A weak ETag does not promise equal bytes: start anew.
        if isinstance(version, str) and not version.startswith("W/"):
            return version
    return None


def _note_version(part: Path, version: str | None) -> None:
    _version_file(part).write_text(json.dumps({"version": version}), encoding="utf-8")


def _forget(part: Path) -> None:
    part.unlink(missing_ok=True)
    _version_file(part).unlink(missing_ok=True)


@contextmanager
def _bar(part: Path, total: int | None, progress: bool | None) -> Iterator[Any]:
    if not (sys.stderr.isatty() if progress is None else progress):
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
        TransferSpeedColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as display:
        task = display.add_task(part.name.removesuffix(".part"), total=total)
        yield lambda amount: display.advance(task, amount)
