"""Compiled kernels on disk: one file for each kernel, argument types and machine.

A file begins with a checksum that is verified before anything in it is used. Files appear under
their names only when they are complete. So a full disk, a damaged file or two processes that
compile the same kernel cost at most a compilation.

Machine code is loaded from here, so no other user may be able to write it. The folder is private,
and its parents are checked.
"""

import contextlib
import hashlib
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

from shortlist import __version__
from shortlist._files import atomic_write, remove_strays
from shortlist._folders import default_cache_dir

PACKAGE = Path(__file__).parent
KEPT_CACHES = 4
SUFFIX = ".kernel"
OFF_SWITCH = "SHORTLIST_JIT_CACHE"

_MAGIC = b"shortlist kernel 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size


@cache
def sources_hash() -> str:
    """Hash of every source file that holds kernels, that is, mentions the module ``_jit``."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"_jit" in text:
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def kernel_identity(function: Callable) -> str | None:
    """A name for a kernel that means the same in every process, or None if it has none.

    Functions from outside the package have none, as their sources are not hashed. Nor have
    functions made by functions and lambdas, as several share a place in the source.
    """
    file = Path(function.__code__.co_filename)
    if not file.is_relative_to(PACKAGE) or "<" in function.__qualname__:
        return None
    module = ".".join(file.relative_to(PACKAGE).with_suffix("").parts)
    return f"{module}.{function.__qualname__}-{function.__code__.co_firstlineno}"


@dataclass(frozen=True)
class Place:
    """Where kernels are kept. ``obstacle`` says why new ones are not, if they are not."""

    folder: Path | None
    obstacle: str = ""


@cache
def cache_place() -> Place:
    """Find the folder for this version of the sources, and make it if it does not exist."""
    if os.environ.get(OFF_SWITCH, "1").lower() in ("0", "off", "false", "no"):
        return Place(None, f"{OFF_SWITCH} is set to 0")
    obstacles = []
    for root in _candidate_roots():
        try:
            return _open_place(root)
        except OSError as error:
            obstacles.append(f"{root}: {error.strerror or error}")
    return Place(None, "; ".join(obstacles))


def cache_directory() -> Path | None:
    """The folder compiled kernels are kept in, or None if there is none."""
    return cache_place().folder


def _candidate_roots() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
        return
    yield default_cache_dir()
    if hasattr(os, "getuid"):
        yield Path(tempfile.gettempdir()) / f"shortlist-{os.getuid()}"


def _open_place(root: Path) -> Place:
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    # Symbolic links are followed once: what is checked is what is used.
    folder = root.resolve() / f"kernels-{sources_hash()}"
    fresh = not folder.exists()
    folder.mkdir(exist_ok=True, mode=0o700)
    check_trusted(folder)
    try:
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        # Kernels that an image was built with can be used where nothing can be written.
        if next(folder.glob(f"*{SUFFIX}"), None) is None:
            raise
        return Place(folder, f"{folder}: {error.strerror}")
    if fresh:
        _drop_old_caches(folder)
    remove_strays(folder)
    return Place(folder)


def check_trusted(folder: Path) -> None:
    """Raise PermissionError if another user could put files into the folder, or replace it."""
    if not hasattr(os, "getuid"):
        return
    if stat.S_IMODE(_check_owner(folder)) & 0o022:
        raise PermissionError(f"{folder} can be written by other users")
    for parent in folder.parents:
        mode = _check_owner(parent)
        own = parent.stat().st_uid == os.getuid()
        # In a folder with the sticky bit, users can only replace what is theirs.
        others = stat.S_IWOTH if own else stat.S_IWOTH | stat.S_IWGRP
        if mode & others and not mode & stat.S_ISVTX:
            raise PermissionError(f"{parent} can be written by other users")


def _check_owner(folder: Path) -> int:
    """The mode of a folder that belongs to this user or to root."""
    facts = folder.lstat()
    if facts.st_uid not in (os.getuid(), 0) or not stat.S_ISDIR(facts.st_mode):
        raise PermissionError(f"{folder} is not a folder of this user")
    return facts.st_mode


def _drop_old_caches(current: Path) -> None:
    """Keep the newest caches, and none in the format of older versions."""
    folders = [path for path in current.parent.glob("kernels-*") if path != current]
    folders.sort(key=lambda path: path.stat().st_mtime, reverse=True)
    outdated = [path for path in folders if next(path.glob("*.nbi"), None)]
    kept = [path for path in folders if path not in outdated][: KEPT_CACHES - 1]
    for folder in folders:
        if folder not in kept:
            shutil.rmtree(folder, ignore_errors=True)


@cache
def _versions() -> str:
    packages = {name: version(name) for name in ("numba", "llvmlite", "numpy")}
    return f"shortlist {__version__} {sources_hash()} python {sys.version} {packages}"


class KernelFile:
    """The file of one key. The key says all that the content depends on."""

    def __init__(self, folder: Path, name: str, key: str) -> None:
        self._key = hashlib.sha256(f"{_versions()}\n{name}\n{key}".encode()).digest()
        self.path = folder / f"{name}.{self._key.hex()[:32]}{SUFFIX}"

    def read(self) -> bytes | None:
        """The content, or None if there is no file or it is not as it was written."""
        try:
            data = self.path.read_bytes()
        except OSError:
            return None
        start = len(_MAGIC) + _DIGEST_BYTES
        head, content = data[:start], data[start:]
        return content if head == _MAGIC + self._checksum(content) else None

    def write(self, content: bytes) -> None:
        """Put the file in its place in one step; raise OSError if that cannot be done."""
        # A file that a power failure damaged is seen by its checksum.
        with atomic_write(self.path, private=True, flushed=False) as part:
            part.write_bytes(_MAGIC + self._checksum(content) + content)

    def _checksum(self, content: bytes) -> bytes:
        """Of the key too, so that a file under another's name is refused."""
        return hashlib.sha256(self._key + content).digest()


class KernelCache:
    """What numba calls before and after it compiles: the attribute ``_cache`` of a dispatcher."""

    def __init__(self, folder: Path, identity: str, options: str, codec: Any) -> None:
        self._folder = folder
        self._identity = identity
        self._options = options
        self._codec = codec
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Forget what is kept of this kernel."""
        for path in self._folder.glob(f"{self._identity}.*{SUFFIX}"):
            with contextlib.suppress(OSError):
                path.unlink()

    def load_overload(self, signature: Any, target_context: Any) -> Any:
        """The kernel compiled for these types, or None."""
        if not self._keeps(signature):
            return None
        # An error here costs a compilation, and nothing else.
        with contextlib.suppress(Exception):
            content = self._file(signature, target_context).read()
            if content is not None:
                target_context.refresh()
                result = self._codec.deserialise(content, target_context)
                if tuple(result.signature.args) == _arguments(signature):
                    return result
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Keep a kernel that has been compiled for these types."""
        if not self._keeps(signature):
            return
        with contextlib.suppress(Exception):
            content = self._codec.serialise(result)
            if content is not None:
                self._file(signature, result.target_context).write(content)

    def _keeps(self, signature: Any) -> bool:
        return self._enabled and self._codec.all_known(_arguments(signature))

    def _file(self, signature: Any, target_context: Any) -> KernelFile:
        types = self._codec.describe(_arguments(signature))
        target = self._codec.describe_target(target_context)
        return KernelFile(self._folder, self._identity, f"{types}\n{target}\n{self._options}")


def _arguments(signature: Any) -> tuple[Any, ...]:
    return tuple(getattr(signature, "args", signature))
