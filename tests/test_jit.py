"""Compilation by numba: kernels give the same results compiled, loaded or as plain Python."""

import ast
import gc
from pathlib import Path
from typing import NamedTuple

import numba
import numpy as np
import pytest
from numba import types

from shortlist import _blas, _jit, _jit_compiler, _jit_internals, _native, losses
from shortlist._jit import by_precision, is_array, kernel_array, njit, overloaded
from shortlist._jit_compiler import can_be_unit
from shortlist._jit_internals import INTERNALS, check_internals
from shortlist.losses.kernels import gap_share
from tests.processes import run


@njit(inline=True)
def _double(x):
    return x + x


@njit
def _double_all(x):
    for i in range(x.size):
        x[i] = _double(x[i])


@overloaded
def twice(x):
    """A number or an array, doubled."""
    return _double_all if is_array(x) else _double


@njit
def _square_single(x):
    return x * x


@njit
def _square_double(x):
    return x * x + 1000.0


square = by_precision(_square_single, _square_double, "square")


def test_a_kernel_is_called_from_python_and_from_kernels():
    @njit
    def caller(x):
        return _double(x) + 1.0

    assert _double(2.0) == 4.0
    assert caller(2.0) == 5.0
    assert _double(3.0) == 6.0


@pytest.mark.parametrize("enabled", [True, False])
def test_garbage_collection_rests_while_a_kernel_compiles(enabled):
    seen = []

    @overloaded
    def same(x):
        seen.append(gc.isenabled())
        return _double

    @njit
    def caller(x):
        return same(x)

    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        assert caller(2.0) == 4.0
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
    assert seen
    assert not any(seen)


def test_kernels_of_one_name_are_told_apart():
    def make(shift):
        @njit
        def kernel(x):
            return x + shift

        return kernel

    first, second = make(1.0), make(10.0)

    @njit
    def both(x):
        return first(x) * second(x)

    assert both(1.0) == 22.0


def test_a_kernel_can_be_called_by_a_function_that_numba_alone_compiles():
    @numba.njit
    def foreign(x):
        return _double(x) - 1.0

    assert foreign(2.0) == 3.0


def test_a_kernel_from_outside_may_do_what_those_of_the_package_do_not():
    """The passes of numba for such things run for it, and are left out for them."""

    @njit
    def kernel(x):
        def squared(v):
            return v * v

        return sum([squared(v) for v in x])

    assert kernel(np.array([1.0, 2.0, 3.0])) == 14.0


# What the passes of numba are for that are left out of the package's kernels.
LEFT_OUT = (
    *(ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
    *(ast.With, ast.Yield),
)


def test_kernels_of_the_package_need_no_pass_that_is_left_out():
    kernels = [
        node
        for path in Path(_jit.__file__).parent.rglob("*.py")
        if "@njit" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        and any("'njit'" in ast.dump(decorator) for decorator in node.decorator_list)
    ]
    assert len(kernels) > 300
    for kernel in kernels:
        inside = [node for node in ast.walk(kernel) if node is not kernel]
        assert not any(isinstance(node, LEFT_OUT) for node in inside), kernel.name
        names = {node.id for node in inside if isinstance(node, ast.Name)}
        assert names.isdisjoint({"literally", "literal_unroll"}), kernel.name


def test_a_kernel_with_an_error_says_so():
    @njit
    def broken(x):
        return x.no_such_attribute

    with pytest.raises(numba.TypingError, match="no_such_attribute"):
        broken(1.0)


def test_errors_raised_in_a_kernel_reach_python():
    @njit
    def refuse(x):
        if x < 0.0:
            raise ValueError("negative")
        return x

    @njit
    def caller(x):
        return refuse(x)

    assert caller(1.0) == 1.0
    with pytest.raises(ValueError, match="negative"):
        caller(-1.0)


def test_overloaded_chooses_by_type():
    @njit
    def in_a_kernel(x, numbers):
        twice(numbers)
        return twice(x)

    numbers = np.array([1.0, 2.0])
    assert in_a_kernel(4.0, numbers) == 8.0
    assert numbers.tolist() == [2.0, 4.0]
    assert twice(4.0) == 8.0  # from Python too
    assert twice.__name__ == "twice"
    assert twice.__doc__ == "A number or an array, doubled."


class _Outside(NamedTuple):
    scale: float


def test_only_what_is_of_the_package_is_compiled_apart():
    """The sources of others are not hashed, and may change between processes."""
    own, outside = losses.get("hinge").spec, _Outside(2.0)
    scores = np.zeros(3)
    for kernel, arguments, apart in [
        (gap_share, (own, scores), True),
        (gap_share, (outside, scores), False),
        (gap_share, ((own, 1), scores), True),
        (gap_share, ((own, (1.0, outside)), scores), False),
        (_double, (1.0,), False),
    ]:
        assert can_be_unit(kernel, map(numba.typeof, arguments)) is apart


def test_overloaded_takes_arguments_by_name():
    @njit
    def in_a_kernel(value):
        return twice(x=value)

    assert in_a_kernel(1.5) == 3.0


def test_by_precision():
    @njit
    def in_a_kernel(x):
        return square(x)

    for call in (square, in_a_kernel):
        assert call(np.float32(3.0)) == 9.0
        assert call(3.0) == 1009.0


def test_is_array():
    assert is_array(types.float64[::1])
    assert not is_array(types.float64)
    assert not is_array(types.UniTuple(types.int64, 2))


def test_kernel_array_copies_only_what_it_must():
    fine = np.zeros((3, 2))
    assert kernel_array(fine, np.float64) is fine
    frozen = np.zeros(3)
    frozen.flags.writeable = False
    for other in (fine.T, frozen, fine.astype(np.float32)):
        made = kernel_array(other, np.float64)
        assert made.flags.c_contiguous
        assert made.flags.writeable
        assert made.dtype == np.float64


FIT = """
import hashlib, json
import numpy as np
from shortlist import TopKClassifier
rng = np.random.default_rng(0)
y = rng.integers(0, 37, 400)
X = (rng.normal(size=(37, 30))[y] + 2 * rng.normal(size=(400, 30))) / 5
bits = {}
for loss in LOSSES:
    model = TopKClassifier(loss, C=0.3, tol=1e-4, random_state=0).fit(X, y)
    result = model.result_
    bits[loss] = [
        hashlib.sha256(model.coef_.tobytes()).hexdigest(), result.primal.hex(), result.dual.hex()
    ]
print(json.dumps(bits))
"""


@pytest.mark.slow
def test_the_same_bits_whichever_process_compiled_the_kernels(tmp_path):
    forwards = FIT.replace("LOSSES", "['softmax', 'hinge']")
    compiled = run(forwards, NUMBA_CACHE_DIR=tmp_path)
    assert run(forwards, NUMBA_CACHE_DIR=tmp_path) == compiled
    # A process that loads the parts of kernels, and compiles the kernels in another order.
    whole = [*tmp_path.rglob("*visit_in_turn*"), *tmp_path.rglob("*certify*")]
    assert whole
    for path in whole:
        path.unlink()
    backwards = FIT.replace("LOSSES", "['hinge', 'softmax']")
    assert run(backwards, NUMBA_CACHE_DIR=tmp_path) == compiled


WITHOUT_INTERNALS = """
import json
import numba.core.typed_passes
del numba.core.typed_passes.NoPythonBackend  # as if numba had given it another name
from shortlist import _jit, special
assert _jit._jit_compiler is None
print(json.dumps(special.lambertw_exp(1.0)))
"""

WITHOUT_MEMBER = """
import json
from numba.core.codegen import CodeLibrary
del CodeLibrary._set_compiled_object  # as if numba had given it another name
from shortlist import _jit, special
assert _jit._jit_compiler is None
print(json.dumps(special.lambertw_exp(1.0)))
"""

WITHOUT_EVENTS = """
import json, sys, types
import numba, numpy as np
sys.modules["numba.core.event"] = types.ModuleType("event")  # as if numba had emptied it
from shortlist._compiling import compilation, compilation_told
from shortlist._blas import blas_for, multiply
a = np.eye(3)
c = np.empty((3, 3))
with compilation_told(print) as timer:
    multiply(blas_for(np.float64), a, 2 * a, c)
print(json.dumps([c.tolist(), timer.seconds, compilation.seconds]))
"""

FAILING_INTERNALS = """
import json
from shortlist import _jit_compiler, special

def fail(*_):
    raise AttributeError("as if numba had changed")

_jit_compiler.CLASS.METHOD = fail
print(json.dumps(special.lambertw_exp(1.0)))
"""


@pytest.mark.parametrize("code", [WITHOUT_INTERNALS, WITHOUT_MEMBER])
def test_a_numba_with_other_internals_still_compiles(code, tmp_path):
    assert run(code, NUMBA_CACHE_DIR=tmp_path) == 1.0


@pytest.mark.parametrize(("kind", "names"), INTERNALS)
def test_members_that_a_numba_lacks_are_missed_at_import(kind, names, monkeypatch):
    check_internals()
    for name in names:
        renamed = ((kind, (*names, f"{name}_of_old")),)
        monkeypatch.setattr(_jit_internals, "INTERNALS", renamed)
        with pytest.raises(ImportError, match=f"{kind.__name__} of numba has no {name}_of_old"):
            check_internals()


@pytest.mark.parametrize(
    ("module", "own"),
    [
        (_jit_compiler, {"_own", *vars(_jit_compiler._Library)}),
        (_jit, {"_choose", "_apart", "_signature", *vars(_jit._Overloaded)}),
        (_native, set()),
        (_blas, {"_context", "_builder", "_types", "_values", "_fields"}),
    ],
)
def test_every_private_name_of_numba_is_checked(module, own):
    """Those that a module uses and does not define itself, and what it sets on a dispatcher."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    used = {node.attr for node in attributes}
    used |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    private = {name for name in used if name.startswith("_") and not name.startswith("__")}
    replaced = {
        node.attr
        for node in attributes
        if isinstance(node.ctx, ast.Store)
        and isinstance(node.value, ast.Name)
        and node.value.id in ("kernel", "dispatcher")
    }
    checked = {name for _, names in INTERNALS for name in names}
    assert private - ({*own, *vars(module)} - checked) <= checked
    assert replaced - checked <= {"unit"}  # our own: the kernel compiled apart


def test_a_numba_that_does_not_tell_of_compilations_still_compiles():
    product, told, heard = run(WITHOUT_EVENTS, SHORTLIST_JIT_CACHE=0)
    assert product == [[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0]]
    assert (told, heard) == (0.0, 0.0)


@pytest.mark.parametrize(
    "place",
    [
        "_PreparePart.run_pass",
        "_FinishPart.run_pass",
        "_PrepareWhole.run_pass",
        "_Whole._optimize_final_module",
        "_Part._optimize_final_module",
    ],
)
def test_internals_that_fail_are_done_without(place):
    kind, method = place.split(".")
    code = FAILING_INTERNALS.replace("CLASS", kind).replace("METHOD", method)
    assert run(code, SHORTLIST_JIT_CACHE=0) == 1.0


@pytest.mark.parametrize("place", ["_PrepareUnit.run_pass", "_FinishUnit.run_pass"])
def test_kernels_are_not_compiled_apart_where_that_fails(place, tmp_path):
    kind, method = place.split(".")
    code = FAILING_INTERNALS.replace("CLASS", kind).replace("METHOD", method)
    value = 'losses.get("ova_hinge").value([0.0, 2.0], 0)'
    code = "from shortlist import losses\n" + code.replace("special.lambertw_exp(1.0)", value)
    for _ in range(2):
        assert run(code, NUMBA_CACHE_DIR=tmp_path) == 4.0


def test_a_kernel_that_cannot_be_serialised_is_compiled_each_time(tmp_path):
    code = FAILING_INTERNALS.replace("CLASS.METHOD", "serialise")
    assert run(code, NUMBA_CACHE_DIR=tmp_path) == 1.0
    assert not [*tmp_path.rglob("*.kernel")]
