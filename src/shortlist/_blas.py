"""Calls from kernels to BLAS.

BLAS is SciPy's, the one behind ``scipy.linalg.cython_blas``. Kernels get its addresses as numbers
(:class:`Blas`), so that compiled code can be kept on disk. Arrays are C-ordered here; BLAS sees
their transposes.
"""

import ctypes
import sys
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from shortlist._jit import DISABLED, njit


class Blas(NamedTuple):
    """Addresses of the BLAS functions of one precision, and of the system's short sleep."""

    gemm: int
    syrk: int
    offer_core: int
    sleep: int


@cache
def blas_for(dtype: Any) -> Blas:
    """The functions for float32 or float64."""
    from scipy.linalg import cython_blas

    letter = "s" if np.dtype(dtype) == np.float32 else "d"
    capsules = cython_blas.__pyx_capi__
    gemm, syrk = (_address(capsules[letter + name]) for name in ("gemm", "syrk"))
    return Blas(gemm, syrk, *_ways_to_wait())


def _address(capsule: Any) -> int:
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
    pointer_of.restype, pointer_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return int(pointer_of(capsule, name_of(capsule)))


def _ways_to_wait() -> list[int]:
    """The addresses of what offers the core to others, and of what sleeps for microseconds."""
    if sys.platform == "win32":
        offer = ctypes.windll.kernel32.SwitchToThread  # it takes no argument, and ignores one
        ways = (offer, offer)
    else:
        library = ctypes.CDLL(None)
        ways = (library.sched_yield, library.usleep)
    return [int(ctypes.cast(way, ctypes.c_void_p).value or 0) for way in ways]


class Call:
    """Writes the call of a C function into a kernel, in LLVM's language.

    The same arithmetic in a kernel of its own takes ten times as long to compile.
    """

    def __init__(self, context: Any, builder: Any, signature: Any, values: Any) -> None:
        self._context, self._builder = context, builder
        self._types, self._values = signature.args, values

    def address(self, name: str) -> Any:
        """A field of the first argument, a :class:`Blas`."""
        return self._builder.extract_value(self._values[0], Blas._fields.index(name))

    def matrix(self, place: int) -> "_Matrix":
        return _Matrix(self._context, self._builder, self._types[place], self._values[place])

    def by_reference(self, value: Any) -> Any:
        # A place on the stack is made once for a kernel, not in every round of its loops.
        with self._builder.goto_entry_block():
            place = self._builder.alloca(value.type)
        self._builder.store(value, place)
        return place

    def letter(self, letter: str) -> Any:
        return self.by_reference(ir.Constant(ir.IntType(8), ord(letter)))

    def integers(self, *numbers: Any) -> list[Any]:
        return [self.by_reference(self._builder.trunc(n, ir.IntType(32))) for n in numbers]

    def factor(self, value: float, place: int) -> Any:
        """A number in the precision of the matrix at ``place``."""
        kind = self._context.get_value_type(self._types[place].dtype)
        return self.by_reference(ir.Constant(kind, value))

    def run(self, address: Any, arguments: list[Any]) -> Any:
        """Call a function whose result is ignored."""
        kind = ir.FunctionType(ir.VoidType(), [argument.type for argument in arguments])
        self._builder.call(self._builder.inttoptr(address, kind.as_pointer()), arguments)
        return self._context.get_dummy_value()


class _Matrix:
    """A two-dimensional array whose rows have no gaps; between rows there may be some."""

    def __init__(self, context: Any, builder: Any, kind: Any, value: Any) -> None:
        array = context.make_array(kind)(context, builder, value)
        self.data = array.data
        self.rows, self.columns = (builder.extract_value(array.shape, axis) for axis in (0, 1))
        # BLAS asks for a stride of at least a row and at least 1, even if it is not used.
        stride = builder.sdiv(builder.extract_value(array.strides, 0), array.itemsize)
        for least in (self.columns, ir.Constant(ir.IntType(64), 1)):
            stride = builder.select(builder.icmp_signed(">", stride, least), stride, least)
        self.stride = stride


def _gemm(of_a: str, of_b: str, beta: float) -> Any:
    """A function of kernels: c = op(a) op(b) + beta c, where T transposes and N does not."""

    @intrinsic
    def product(typingctx: Any, blas: Any, a: Any, b: Any, c: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            call = Call(context, builder, signature, values)
            a, b, c = call.matrix(1), call.matrix(2), call.matrix(3)
            inner = a.rows if of_a == "T" else a.columns
            arguments = [call.letter(of_b), call.letter(of_a)]
            arguments += call.integers(c.columns, c.rows, inner)
            arguments += [call.factor(1.0, 3), b.data, *call.integers(b.stride)]
            arguments += [a.data, *call.integers(a.stride)]
            arguments += [call.factor(beta, 3), c.data, *call.integers(c.stride)]
            return call.run(call.address("gemm"), arguments)

        return types.void(blas, a, b, c), codegen

    return product


@intrinsic
def _syrk(typingctx: Any, blas: Any, x: Any, g: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        call = Call(context, builder, signature, values)
        x, g = call.matrix(1), call.matrix(2)
        # The upper triangle of BLAS is the lower one here.
        arguments = [call.letter("U"), call.letter("T"), *call.integers(x.rows, x.columns)]
        arguments += [call.factor(1.0, 1), x.data, *call.integers(x.stride)]
        arguments += [call.factor(0.0, 1), g.data, *call.integers(g.stride)]
        return call.run(call.address("syrk"), arguments)

    return types.void(blas, x, g), codegen


if DISABLED:
    # Kernels run as plain Python: NumPy multiplies.

    def multiply(blas, a, b, c):
        c[:] = a @ b

    def multiply_add(blas, a, b, c):
        c += a @ b

    def multiply_by_transposed(blas, a, b, c):
        c[:] = a @ b.T

    def multiply_transposed(blas, a, b, c):
        c[:] = a.T @ b.T

    def add_transposed(blas, a, b, c):
        c += a.T @ b

    def add_both_transposed(blas, a, b, c):
        c += a.T @ b.T

    def lower_gram(blas, x, g):
        g[: len(x), : len(x)] = np.tril(x @ x.T)

else:
    _multiply, _multiply_add = _gemm("N", "N", 0.0), _gemm("N", "N", 1.0)
    _multiply_by_transposed, _multiply_transposed = _gemm("N", "T", 0.0), _gemm("T", "T", 0.0)
    _add_transposed, _add_both_transposed = _gemm("T", "N", 1.0), _gemm("T", "T", 1.0)

    @njit
    def multiply(blas, a, b, c):
        """c = a b."""
        _multiply(blas, a, b, c)

    @njit
    def multiply_add(blas, a, b, c):
        """c += a b."""
        _multiply_add(blas, a, b, c)

    @njit
    def multiply_by_transposed(blas, a, b, c):
        """c = a b'."""
        _multiply_by_transposed(blas, a, b, c)

    @njit
    def multiply_transposed(blas, a, b, c):
        """c = a' b'."""
        _multiply_transposed(blas, a, b, c)

    @njit
    def add_transposed(blas, a, b, c):
        """c += a' b."""
        _add_transposed(blas, a, b, c)

    @njit
    def add_both_transposed(blas, a, b, c):
        """c += a' b'."""
        _add_both_transposed(blas, a, b, c)

    @njit
    def lower_gram(blas, x, g):
        """The lower triangle of g = x x'; what lies above it is left as it is."""
        _syrk(blas, x, g)
