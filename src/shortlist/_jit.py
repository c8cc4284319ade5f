"""The only door to numba: how every kernel of the package is compiled and cached.

``njit``         compiles a kernel; ``sums=True`` lets the compiler reorder its sums (SIMD).
``kernel_array`` puts an array into the one layout kernels are compiled for.
``overloaded``   makes a function that picks its kernel by the types of its arguments.
``by_precision`` is the common case of it: one kernel for float32, another for float64.
``is_array``     tells an array's type from others, for such a choice.

Machine code is kept on disk in a folder named by a hash of all sources that hold kernels, since
numba alone would not notice an edit in a helper that another file's kernel has inlined. The
folder lies below ``NUMBA_CACHE_DIR`` if that is set, else in the user's cache. Where nothing can
be written, or with ``SHORTLIST_JIT_CACHE=0``, kernels compile anew in each process.
"""

import contextlib
import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    _CacheLocator,
)
from numba.extending import overload
from numpy.typing import NDArray

PACKAGE = Path(__file__).parent
KEPT_CACHES = 4

# fastmath as a whole would break isnan and isinf. Contraction (FMA) is harmless everywhere;
# reordering is allowed only where a kernel asks for it.
_CAREFUL = {"contract"}
_REORDERED = {"contract", "reassoc", "nsz", "arcp"}
# A maximum is vectorised only if no entry can be NaN.
_MAXIMA = {"nnan", "nsz"}
_OPTIONS = {"nogil": True, "error_model": "numpy"}


@cache
def sources_hash() -> str:
    """Hash of every source file that holds kernels, that is, mentions this module."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_bytes()
        if b"_jit" in text:
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + text)
    return digest.hexdigest()[:16]


def _candidate_roots() -> Iterator[Path]:
    if chosen := os.environ.get("NUMBA_CACHE_DIR"):
        yield Path(chosen)
        return
    if sys.platform == "win32":
        home = os.environ.get("LOCALAPPDATA")
    elif sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Caches")
    else:
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if home:
        yield Path(home) / "shortlist"
    if hasattr(os, "getuid"):
        yield Path(tempfile.gettempdir()) / f"shortlist-{os.getuid()}"


def _drop_old_caches(root: Path) -> None:
    folders = sorted(root.glob("kernels-*"), key=lambda p: p.stat().st_mtime, reverse=True)
    for folder in folders[KEPT_CACHES:]:
        shutil.rmtree(folder, ignore_errors=True)


@cache
def cache_directory() -> Path | None:
    """The folder compiled kernels are kept in, or None if there is none to write to."""
    if os.environ.get("SHORTLIST_JIT_CACHE", "1").lower() in ("0", "off", "false", "no"):
        return None
    for root in _candidate_roots():
        folder = root / f"kernels-{sources_hash()}"
        try:
            fresh = not folder.exists()
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            # Machine code is loaded from here: never from a folder another user could fill.
            if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
                continue
            tempfile.TemporaryFile(dir=folder).close()
            if fresh:
                _drop_old_caches(root)
        except OSError:
            continue
        return folder
    return None


class _Locator(_CacheLocator):
    """Where numba keeps one function: the shared folder, the module's path in the file name."""

    def __init__(self, function: Callable, file: str, folder: Path) -> None:
        self._folder = folder
        relative = Path(file).resolve().relative_to(PACKAGE.resolve()).with_suffix("")
        self._name = "-".join([*relative.parts, str(function.__code__.co_firstlineno)])

    def get_cache_path(self) -> str:
        return str(self._folder)

    def get_source_stamp(self) -> str:
        return sources_hash()

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Callable, py_file: str) -> "_Locator | None":
        folder = cache_directory()
        return cls(py_func, py_file, folder) if folder else None


class _CacheImpl(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012 (numba's own interface)


class _CacheFiles(IndexDataCacheFile):
    def save(self, key: tuple, data: Any) -> None:
        # numba numbers the data files: two processes that compile for different types at the
        # same time take the same number, and one would load the other's code. A name made of
        # the key cannot be mistaken; the worst is an entry missing from the index.
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        name = self._index_name.removesuffix(".nbi") + f".{digest}.nbc"
        self._save_data(name, data)
        self._save_index({**self._load_index(), key: name})


class _KernelCache(FunctionCache):
    """A cache that costs at most a compilation when it is full, gone, cut short or garbled."""

    _impl_class = _CacheImpl

    def __init__(self, function: Callable) -> None:
        super().__init__(function)
        self._cache_file = _CacheFiles(
            self._cache_path, self._impl.filename_base, self._impl.locator.get_source_stamp()
        )

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super()._load_overload(sig, target_context)
        except Exception:
            self.flush()  # so that what is compiled now replaces what could not be read
            return None

    @contextlib.contextmanager
    def _guard_against_spurious_io_errors(self) -> Iterator[None]:
        try:
            yield
        except Exception:
            self.disable()


def njit(
    function: Callable | None = None,
    *,
    sums: bool = False,
    maxima: bool = False,
    inline: bool = False,
) -> Any:
    """Compile a kernel (lazily, per argument types).

    ``sums`` lets the compiler reorder its sums, ``maxima`` its maxima (of numbers that are not
    NaN); ``inline`` puts it into its callers whatever its size, as the scalar functions need
    whose callers are loops to be vectorised.
    """
    if function is None:
        return lambda f: njit(f, sums=sums, maxima=maxima, inline=inline)
    math = _REORDERED if sums else _MAXIMA if maxima else _CAREFUL
    kernel = numba.njit(fastmath=math, forceinline=inline, **_OPTIONS)(function)
    ours = Path(function.__code__.co_filename).is_relative_to(PACKAGE)
    # (NUMBA_DISABLE_JIT gives back the plain function)
    if ours and kernel is not function and cache_directory() is not None:
        kernel._cache = _KernelCache(kernel.py_func)
    return kernel


def kernel_array(array: NDArray, dtype: Any) -> NDArray:
    """The array as kernels expect it, copied only where it is not.

    To numba, read-only, strided and unaligned arrays are other types, for each of which it
    would compile everything again.
    """
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])


def overloaded(choose: Callable) -> Callable:
    """Make a function whose kernel is chosen, at compile time, by ``choose(*argument_types)``.

    ``choose`` has the parameters of the function and returns a kernel with the same ones.
    The result can be called inside kernels only.
    """
    names = choose.__code__.co_varnames[: choose.__code__.co_argcount]
    arguments = ", ".join(names)

    scope: dict[str, Any] = {}
    exec(f"def {choose.__name__}({arguments}): raise TypeError('for kernels only')", scope)
    stub = scope[choose.__name__]
    stub.__doc__ = choose.__doc__

    def implementation(*types: Any) -> Callable:
        kernel = choose(*types)
        inner: dict[str, Any] = {"kernel": kernel}
        exec(f"def call({arguments}): return kernel({arguments})", inner)
        return inner["call"]

    wrapper: dict[str, Any] = {"implementation": implementation}
    exec(f"def pick({arguments}): return implementation({arguments})", wrapper)
    options = {**_OPTIONS, "fastmath": _CAREFUL, "forceinline": True}
    overload(stub, jit_options=options)(wrapper["pick"])
    return stub


def is_array(argument_type: Any) -> bool:
    """Whether an argument of :func:`overloaded` is an array, not a number or a tuple."""
    return isinstance(argument_type, numba.types.Array)


def by_precision(single: Callable, double: Callable, name: str) -> Callable:
    """One scalar function of one argument: ``single`` for float32, ``double`` for the rest."""

    def choose(x: Any) -> Callable:
        return single if x == numba.types.float32 else double

    choose.__name__ = name
    choose.__doc__ = double.__doc__
    return overloaded(choose)
