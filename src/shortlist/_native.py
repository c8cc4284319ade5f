"""Calls from kernels to what is not Python: BLAS, and signals between threads.

BLAS is SciPy's, the one behind ``scipy.linalg.cython_blas``. Kernels get its addresses as numbers
(:class:`Blas`), so that compiled code can be kept on disk. Arrays are C-ordered here; BLAS sees
their transposes.

Threads that share a kernel's work wait for each other by :func:`wait_for`, which spins and, after
some time, gives its core away.
"""

import ctypes
import sys
from functools import cache
from typing import Any, NamedTuple

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from shortlist._jit import njit

# Rounds of a waiting loop before the thread gives its core away: some tenths of a millisecond, more
# than a wait takes on a machine that is not busy. On a busy one the thread that is waited for may
# need this core: so the waiting one sleeps, for so many microseconds at a time.
SPINS_BEFORE_SLEEP = 200_000
SLEEP_MICROSECONDS = 50


class Blas(NamedTuple):
    """Addresses of the BLAS functions of one precision, and of the system's short sleep."""

    gemm: int
    syrk: int
    give_way: int


@cache
def blas_for(dtype: Any) -> Blas:
    """The functions for float32 or float64."""
    from scipy.linalg import cython_blas

    letter = "s" if np.dtype(dtype) == np.float32 else "d"
    capsules = cython_blas.__pyx_capi__
    return Blas(
        _address(capsules[f"{letter}gemm"]), _address(capsules[f"{letter}syrk"]), _give_way()
    )


def _address(capsule: Any) -> int:
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer_of(capsule, name_of(capsule)))


def _give_way() -> int:
    if sys.platform == "win32":
        function = ctypes.windll.kernel32.SwitchToThread  # it takes no argument, and ignores ours
    else:
        function = ctypes.CDLL(None).usleep
    return int(ctypes.cast(function, ctypes.c_void_p).value or 0)


@intrinsic
def _call_address(typingctx: Any, address: Any, arguments: Any) -> Any:
    """Call the C function at ``address`` with a tuple of addresses; its result is ignored."""
    if not isinstance(arguments, types.BaseTuple):
        return None
    count = len(arguments)

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        word = ir.IntType(64)
        function_type = ir.FunctionType(ir.VoidType(), [word] * count)
        function = builder.inttoptr(values[0], function_type.as_pointer())
        builder.call(function, [builder.extract_value(values[1], i) for i in range(count)])
        return context.get_dummy_value()

    return types.void(types.int64, arguments), codegen


@intrinsic
def _load_signal(typingctx: Any, address: Any) -> Any:
    """The int64 at an address, as other threads last wrote it."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
        return builder.load_atomic(place, "acquire", 8)

    return types.int64(types.int64), codegen


@intrinsic
def _store_signal(typingctx: Any, address: Any, value: Any) -> Any:
    """Write an int64 so that other threads see it, and all that was written before it."""

    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = builder.inttoptr(values[0], ir.IntType(64).as_pointer())
        builder.store_atomic(values[1], place, "release", 8)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), codegen


@njit
def _gemm(blas, a, transpose_a, b, transpose_b, beta, c):
    """c = op(a) op(b) + beta c. A row's numbers lie together; between rows there may be gaps."""
    n_rows, n_columns = c.shape
    inner = a.shape[0] if transpose_a else a.shape[1]
    item = c.itemsize
    numbers = np.empty(6, np.int32)
    numbers[0], numbers[1], numbers[2] = n_columns, n_rows, inner
    numbers[3] = max(b.strides[0] // item, b.shape[1], 1)
    numbers[4] = max(a.strides[0] // item, a.shape[1], 1)
    numbers[5] = max(c.strides[0] // item, n_columns, 1)
    letters = np.empty(2, np.uint8)
    letters[0] = 84 if transpose_b else 78  # T, N
    letters[1] = 84 if transpose_a else 78
    factors = np.empty(2, c.dtype)
    factors[0], factors[1] = 1, beta
    n, x, f = numbers.ctypes.data, letters.ctypes.data, factors.ctypes.data
    _call_address(
        blas.gemm,
        (
            np.int64(x),
            np.int64(x + 1),
            np.int64(n),
            np.int64(n + 4),
            np.int64(n + 8),
            np.int64(f),
            np.int64(b.ctypes.data),
            np.int64(n + 12),
            np.int64(a.ctypes.data),
            np.int64(n + 16),
            np.int64(f + item),
            np.int64(c.ctypes.data),
            np.int64(n + 20),
        ),
    )
    # The call sees addresses only: keep the arrays until it is done.
    return numbers[0] + letters[0] + factors[0]


@njit
def _syrk(blas, x, g):
    item = x.itemsize
    numbers = np.empty(4, np.int32)
    numbers[0], numbers[1] = x.shape
    numbers[2] = max(x.strides[0] // item, x.shape[1], 1)
    numbers[3] = max(g.strides[0] // item, 1)
    letters = np.empty(2, np.uint8)
    letters[0], letters[1] = 85, 84  # U, T: the upper triangle of BLAS is the lower one here
    factors = np.empty(2, x.dtype)
    factors[0], factors[1] = 1, 0
    n, c, f = numbers.ctypes.data, letters.ctypes.data, factors.ctypes.data
    _call_address(
        blas.syrk,
        (
            np.int64(c),
            np.int64(c + 1),
            np.int64(n),
            np.int64(n + 4),
            np.int64(f),
            np.int64(x.ctypes.data),
            np.int64(n + 8),
            np.int64(f + item),
            np.int64(g.ctypes.data),
            np.int64(n + 12),
        ),
    )
    return numbers[0] + letters[0] + factors[0]


@njit
def _wait_for(blas, signals, place, value):
    address = np.int64(signals.ctypes.data + 8 * place)
    spins = 0
    while _load_signal(address) < value:
        spins += 1
        if spins > SPINS_BEFORE_SLEEP:
            _call_address(blas.give_way, (np.int64(SLEEP_MICROSECONDS),))


@njit
def _announce(signals, place, value):
    _store_signal(np.int64(signals.ctypes.data + 8 * place), np.int64(value))


if numba.config.DISABLE_JIT:
    # Kernels run as plain Python: NumPy multiplies, and no thread waits for another.

    def multiply(blas, a, b, c):
        c[:] = a @ b

    def multiply_add(blas, a, b, c):
        c += a @ b

    def multiply_transposed(blas, a, b, c):
        c[:] = a.T @ b.T

    def add_transposed(blas, a, b, c):
        c += a.T @ b

    def add_both_transposed(blas, a, b, c):
        c += a.T @ b.T

    def lower_gram(blas, x, g):
        g[: len(x), : len(x)] = np.tril(x @ x.T)

    def wait_for(blas, signals, place, value):
        if signals[place] < value:
            raise RuntimeError("kernels without compilation run on one thread")

    def announce(signals, place, value):
        signals[place] = value

else:

    @njit
    def multiply(blas, a, b, c):
        """c = a b."""
        _gemm(blas, a, False, b, False, 0.0, c)

    @njit
    def multiply_add(blas, a, b, c):
        """c += a b."""
        _gemm(blas, a, False, b, False, 1.0, c)

    @njit
    def multiply_transposed(blas, a, b, c):
        """c = a' b'."""
        _gemm(blas, a, True, b, True, 0.0, c)

    @njit
    def add_transposed(blas, a, b, c):
        """c += a' b."""
        _gemm(blas, a, True, b, False, 1.0, c)

    @njit
    def add_both_transposed(blas, a, b, c):
        """c += a' b'."""
        _gemm(blas, a, True, b, True, 1.0, c)

    @njit
    def lower_gram(blas, x, g):
        """The lower triangle of g = x x'; what lies above it is left as it is."""
        _syrk(blas, x, g)

    @njit
    def wait_for(blas, signals, place, value):
        """Return when another thread has announced at least ``value`` at this place."""
        _wait_for(blas, signals, place, value)

    @njit
    def announce(signals, place, value):
        """Let other threads see ``value`` here, and all that this thread wrote before."""
        _announce(signals, place, value)
