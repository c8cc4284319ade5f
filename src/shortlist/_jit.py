"""The only place kernels are compiled, and kept on disk.

``njit``         compiles a kernel; ``sums=True`` lets the compiler reorder its sums (SIMD).
``kernel_array`` puts an array into the one layout kernels are compiled for.
``overloaded``   makes a function that picks its kernel by the types of its arguments.
``by_precision`` is the common case of it: one kernel for float32, another for float64.
``is_array``     tells an array's type from others, for such a choice.
``DISABLED``     tells that kernels run as plain Python, by ``NUMBA_DISABLE_JIT=1``.

Kernels can be called from Python and from other kernels. They do not call themselves.

Compiled kernels are kept on disk in a folder named by a hash of all sources that hold kernels,
since a kernel contains the code of the helpers it calls. The folder lies below
``NUMBA_CACHE_DIR`` if that is set, else in ``SHORTLIST_CACHE`` or the user's cache. Where nothing
can be written, or with ``SHORTLIST_JIT_CACHE=0``, kernels compile anew in each process.
"""

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from shortlist import _compiling  # noqa: F401 (it listens to compilations)
from shortlist._jit_cache import KernelCache, cache_directory, kernel_identity

try:
    from shortlist import _jit_compiler
except Exception:
    # This numba has other internals: kernels compile as numba does it, and are not kept.
    _jit_compiler = None  # type: ignore[assignment]

__all__ = ["DISABLED", "by_precision", "is_array", "kernel_array", "njit", "overloaded"]

# Whether kernels run as plain Python.
DISABLED = bool(numba.config.DISABLE_JIT)
# fastmath as a whole would break isnan and isinf. Contraction (FMA) is harmless everywhere;
# reordering is allowed only where a kernel asks for it.
_CAREFUL = {"contract"}
_REORDERED = {"contract", "reassoc", "nsz", "arcp"}
# A maximum is vectorised only if no entry can be NaN.
_MAXIMA = {"nnan", "nsz"}
_OPTIONS = {"nogil": True, "error_model": "numpy"}


def njit(
    function: Callable | None = None,
    *,
    sums: bool = False,
    maxima: bool = False,
    inline: bool = False,
) -> Any:
    """Compile a kernel (lazily, per argument types).

    ``sums`` lets the compiler reorder its sums: its arrays must not overlap, and it returns
    numbers only. ``maxima`` lets it reorder maxima (of numbers that are not NaN). ``inline`` puts
    it into its callers whatever its size, as the scalar functions need whose callers are loops to
    be vectorised.
    """
    if function is None:
        return lambda f: njit(f, sums=sums, maxima=maxima, inline=inline)
    math = _REORDERED if sums else _MAXIMA if maxima else _CAREFUL
    options = {**_OPTIONS, "fastmath": math, "forceinline": inline}
    if DISABLED:
        return function
    if _jit_compiler is None:
        return numba.njit(**options)(function)
    kernel = _dispatcher(function, _jit_compiler.WholeCompiler, options)
    part = _dispatcher(function, _jit_compiler.PartCompiler, options)
    # What numba asks a kernel for when another kernel calls it. A constant is a number like any
    # other: numba would compile the part for its value, and again for its type.
    kernel.get_call_template = lambda types, keywords: part.get_call_template(
        _of_any_value(types), {name: numba.types.unliteral(t) for name, t in keywords.items()}
    )
    kernel.get_overload = lambda types: part.get_overload(_of_any_value(types))
    kernel.unit = cache(lambda: _dispatcher(function, _jit_compiler.UnitCompiler, options))
    return kernel


def _of_any_value(types: Any) -> tuple:
    return tuple(map(numba.types.unliteral, types))


def _dispatcher(function: Callable, compiler: type, options: dict[str, Any]) -> Any:
    dispatcher = numba.njit(pipeline_class=compiler, **options)(function)
    identity, folder = kernel_identity(function), cache_directory()
    if identity is not None and folder is not None:
        settings = f"{compiler.__name__} {sorted((k, str(v)) for k, v in options.items())}"
        dispatcher._cache = KernelCache(folder, identity, settings, _jit_compiler)
    _jit_compiler.guard_compilation(dispatcher)
    return dispatcher


def kernel_array(array: NDArray, dtype: Any) -> NDArray:
    """The array as kernels expect it, copied only where it is not.

    To numba, read-only, strided and unaligned arrays are other types, for each of which it
    would compile everything again.
    """
    return np.require(array, dtype, ["C_CONTIGUOUS", "ALIGNED", "WRITEABLE"])


class _Overloaded:
    """A function that stands for several kernels. numba takes it for a kernel."""

    is_compiling = False  # numba asks, to find kernels that call themselves

    def __init__(self, choose: Callable, apart: bool) -> None:
        self._choose = choose
        self._apart = apart
        self._signature = inspect.signature(choose)
        self.__name__ = choose.__name__
        self.__doc__ = choose.__doc__

    def __call__(self, *arguments: Any) -> Any:
        return self._kernel(map(numba.typeof, arguments))(*arguments)

    def __repr__(self) -> str:
        return f"overloaded({self.__name__})"

    @property
    def _numba_type_(self) -> Any:
        return numba.types.Dispatcher(self)

    def get_call_template(self, types: Any, keywords: Any) -> Any:
        types = _of_any_value(self._signature.bind(*types, **keywords).args)
        return self._called(types).get_call_template(types, {})

    def get_overload(self, types: Any) -> Any:
        types = _of_any_value(types)
        return self._called(types).get_overload(types)

    def _kernel(self, types: Any) -> Any:
        return self._choose(*map(numba.types.unliteral, types))

    def _called(self, types: Any) -> Any:
        """What another kernel calls."""
        kernel = self._kernel(types)
        apart = self._apart and hasattr(kernel, "unit")
        return kernel.unit() if apart and _jit_compiler.can_be_unit(kernel, types) else kernel


def overloaded(choose: Callable | None = None, *, apart: bool = False) -> Any:
    """Make a function whose kernel is chosen by ``choose(*argument_types)``.

    ``choose`` has the parameters of the function and returns a kernel with the same ones. A
    kernel that calls the function makes the choice while it compiles. ``apart``: the chosen kernel
    is compiled once for all kernels that call it, and never becomes part of their code. That is
    for large kernels with several callers: a call passes seven words or more for each array.
    """
    if choose is None:
        return lambda f: overloaded(f, apart=apart)
    return _Overloaded(choose, apart)


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
