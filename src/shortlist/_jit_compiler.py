"""The one place that reaches into numba: how a kernel is lowered, linked and serialised.

numba optimises every function it compiles and turns it into machine code, and then does so again
for the copies of it inside each caller. Here a kernel is compiled in two ways instead:

part   what another kernel calls. Its code in LLVM's language only, for its callers to link.
unit   what several kernels call and is large: a value with its gradient, a dual step. It links
       its parts and becomes machine code, which its callers call by name.
whole  what Python calls. It links its parts, is optimised once, and becomes machine code.

A default fit compiles in about half the time this way. It also makes results reproducible. The
parts of a unit and of a whole kernel are private to it, and a process has one copy of a unit. In
numba a call that is not inlined may end up in any copy of the function that the process has
loaded, and copies differ in their rounding.

Everything here is tied to numba's internals, hence the bound on its version. The import fails if a
name is missing (see ``_jit_internals``); :func:`guard_compilation` handles what fails later.
"""

import hashlib
import pickle
from collections.abc import Iterable
from functools import cache
from typing import Any

from llvmlite import binding as llvm
from numba import types
from numba.core import config, errors
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, DefaultPassBuilder, compile_result
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import AnnotateTypes, NoPythonBackend

from shortlist._compiling import no_garbage_collection
from shortlist._jit_cache import kernel_identity
from shortlist._jit_internals import check_internals, with_work

check_internals()

# Settings of numba that change the code it makes.
_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
# Every module has a copy of these. A pass of LLVM knows them by their names, and takes out pairs
# that cancel: copies that are hidden in a part would get other names in its callers.
_REFERENCE_COUNTS = {"NRT_incref", "NRT_decref"}


class _Library(JITCodeLibrary):
    """The code of one kernel, which knows the functions that are its own."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._own: set[str] = set()
        self.units: dict[str, _Unit] = {}  # those it calls, or its parts do, by their symbols

    def add_linking_library(self, library: Any) -> None:
        super().add_linking_library(library)
        if isinstance(library, _Unit):
            self.units[library.symbol] = library
        elif isinstance(library, _Library):
            self.units.update(library.units)

    def add_llvm_module(self, ll_module: Any) -> None:
        self._own.update(_defined(ll_module))
        super().add_llvm_module(ll_module)

    def _optimize_functions(self, ll_module: Any) -> None:
        # numba sets up the passes anew for each function, even for those that are only declared.
        ll_module.data_layout = self._codegen._data_layout
        manager, builder = self._codegen._function_pass_manager()
        for function in ll_module.functions:
            if not function.is_declaration:
                manager.run(function, builder)

    def _hide_all_but(self, names: set[str]) -> None:
        for function in self._final_module.functions:
            if not function.is_declaration and function.name not in names:
                function.linkage = llvm.Linkage.internal


class _Whole(_Library):
    def _optimize_final_module(self) -> None:
        self._hide_all_but(self._own)
        super()._optimize_final_module()


class _Unit(_Whole):
    """Machine code that other kernels call by a name that no other function has.

    A process has one copy of it. The files of its callers hold the machine code too, so that
    each can be loaded by itself.
    """

    symbol = ""
    object_code = b""
    environments: tuple[Any, ...] = ()

    def _get_module_for_linking(self) -> Any:
        """Nothing: callers declare what they call."""
        return llvm.parse_assembly(str(self._codegen._create_empty_module(self.name)))

    def _finalize_final_module(self) -> None:
        known = _units.get(self.symbol)
        if known is None:
            super()._finalize_final_module()
            self.object_code = self.object_code or self._get_compiled_object()
            _units[self.symbol] = self
        else:  # its machine code came with the file of a caller
            self._finalize_dynamic_globals()
            self._finalized = True
            self.object_code, self.environments = known.object_code, known.environments

    def keep(self, environments: Iterable[Any]) -> None:
        """Let the code see the environments, unless it does already."""
        if not self.environments:
            self.environments = tuple(environments)
            for environment in self.environments:
                self.codegen.set_env(environment.env_name, environment)

    def facts(self) -> tuple[Any, ...] | None:
        """What :meth:`load` needs; None if the code holds addresses of this process."""
        if self.has_dynamic_globals:
            return None
        called = [unit.facts() for unit in self.units.values()]
        if None in called:
            return None
        begin = tuple(self._reload_init)
        return (self.name, self.symbol, self.object_code, self.environments, begin, called)

    @classmethod
    def load(cls, codegen: Any, facts: tuple[Any, ...]) -> "_Unit":
        name, symbol, object_code, environments, begin, called = facts
        units = [cls.load(codegen, unit) for unit in called]
        if symbol in _units:
            return _units[symbol]
        for initialise in begin:
            initialise()
        self = cls(codegen, name)
        self._reload_init.update(begin)
        self.symbol, self.object_code = symbol, object_code
        self.units = {unit.symbol: unit for unit in units}
        self.enable_object_caching()
        self._set_compiled_object(object_code)
        self._finalize_final_module()
        self.keep(environments)
        return self


# All that this process has loaded, by their symbols.
_units: dict[str, _Unit] = {}


class _Part(_Library):
    """Code to be linked.

    A ``shared`` part has a name that no other function has, in any process. A caller that gets
    it from several of its parts keeps one copy. All else in a part is hidden: its name holds
    numba's count of functions in this process, and could mean another function in a process
    that loads the part.
    """

    shared = False

    def _optimize_final_module(self) -> None:
        linked = [library for library in self._linking_libraries if isinstance(library, _Part)]
        names = set().union(*(library.shared_names() for library in linked))
        self._hide_all_but(self._own | names | _REFERENCE_COUNTS)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def shared_names(self) -> set[str]:
        exported = _exported(self._final_module)
        return exported if self.shared else exported - self._own

    @classmethod
    def load(cls, codegen: Any, name: str, bitcode: bytes, units: Iterable[Any]) -> "_Part":
        """A part from the disk; only shared ones are kept there."""
        self = cls(codegen, name)
        self.shared = True
        for facts in units:
            unit = _Unit.load(codegen, facts)
            self.units[unit.symbol] = unit
        self._final_module = llvm.parse_bitcode(bitcode)
        self._finalize_final_module()
        return self


def _defined(module: Any) -> set[str]:
    return {function.name for function in module.functions if not function.is_declaration}


def _exported(module: Any) -> set[str]:
    hidden = (llvm.Linkage.internal, llvm.Linkage.private)
    return {
        function.name
        for function in module.functions
        if not function.is_declaration and function.linkage not in hidden
    }


class _Pass(LoweringPass):
    def __init__(self) -> None:
        super().__init__()


def _promise_no_overlap(flags: Any) -> None:
    """Let LLVM know that the arrays of a kernel that may reorder its sums do not overlap.

    Otherwise LLVM makes two loops of one: with SIMD, and without for arrays that might overlap. It
    would choose by how far apart they lie in memory, so that a fit would not have the same bits
    twice.
    """
    flags.noalias = "reassoc" in flags.fastmath.flags


@register_pass(mutates_CFG=False, analysis_only=False)
class _PrepareWhole(_Pass):
    """Before lowering: choose the library, and what to put into it."""

    _name = "shortlist_prepare_whole"

    def run_pass(self, state: Any) -> bool:
        # Nothing calls a kernel through a pointer.
        state.flags.no_cfunc_wrapper = True
        _promise_no_overlap(state.flags)
        state.library = _Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        # The machine code is kept for the cache.
        state.library.enable_object_caching()
        return True


def _called_by_kernels_only(flags: Any) -> None:
    _promise_no_overlap(flags)
    flags.no_cfunc_wrapper = True
    flags.no_cpython_wrapper = True
    flags.no_compile = True


@register_pass(mutates_CFG=False, analysis_only=False)
class _PreparePart(_Pass):
    _name = "shortlist_prepare_part"

    def run_pass(self, state: Any) -> bool:
        _called_by_kernels_only(state.flags)
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        identity = kernel_identity(state.func_id.func)
        if identity is not None:
            state.library.shared = True
            state.func_id.unique_id = _shared_number(identity, state.args)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _PrepareUnit(_Pass):
    _name = "shortlist_prepare_unit"

    def run_pass(self, state: Any) -> bool:
        _called_by_kernels_only(state.flags)
        state.library = _Unit(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library.enable_object_caching()
        identity = f"unit {kernel_identity(state.func_id.func)}"
        state.func_id.unique_id = _shared_number(identity, state.args)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _FinishWhole(_Pass):
    """After lowering: make the result ready for its callers."""

    _name = "shortlist_finish_whole"

    def run_pass(self, state: Any) -> bool:
        # numba sets the environment of a function when it loads it, but parts are never loaded.
        for environment in state.cr._find_referenced_environments():
            state.library.codegen.set_env(environment.env_name, environment)
        return False


@register_pass(mutates_CFG=False, analysis_only=False)
class _FinishPart(_Pass):
    _name = "shortlist_finish_part"

    def run_pass(self, state: Any) -> bool:
        state.library._ensure_finalized()
        state.reload_init.extend(state.library._reload_init)
        state.cr = state.cr._replace(entry_point=_entry_of_part())
        state.targetctx.insert_user_function(state.cr.entry_point, state.cr.fndesc, [state.library])
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _FinishUnit(_FinishPart):
    _name = "shortlist_finish_unit"

    def run_pass(self, state: Any) -> bool:
        state.library.symbol = state.cr.fndesc.llvm_func_name
        super().run_pass(state)
        state.library.keep(state.cr._find_referenced_environments())
        return True


def _shared_number(identity: str, arguments: Iterable[Any]) -> int:
    """The number in the name of a shared part, where numba has its count of functions."""
    text = f"{identity}({describe(arguments)})"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])


def _entry_of_part() -> Any:
    """What numba knows a part by: unique, hashable and a built-in function. Nothing calls it."""
    return [].clear


class WholeCompiler(Compiler):
    """For ``numba.njit(pipeline_class=...)``, as its two relatives are."""

    prepare: type = _PrepareWhole
    finish: type = _FinishWhole

    def define_pipelines(self) -> list[Any]:
        passes = DefaultPassBuilder.define_nopython_pipeline(self.state)
        # Kernels from outside the package may do all that numba knows.
        if kernel_identity(self.state.func_id.func) is not None:
            passes.passes = with_work(passes.passes)
        passes.add_pass_after(self.prepare, AnnotateTypes)
        passes.add_pass_after(self.finish, NoPythonBackend)
        passes.finalize()
        return [passes]


class PartCompiler(WholeCompiler):
    prepare, finish = _PreparePart, _FinishPart


class UnitCompiler(WholeCompiler):
    prepare, finish = _PrepareUnit, _FinishUnit


def can_be_unit(kernel: Any, arguments: Iterable[Any]) -> bool:
    """Whether a kernel for these types means the same in every process.

    One for a loss from outside the package may not: its sources are not hashed.
    """
    return kernel_identity(kernel.py_func) is not None and all_known(arguments)


def describe(arguments: Iterable[Any]) -> str:
    """Argument types in words; unlike numba's, they tell classes of the same name apart."""
    return ", ".join(map(_describe_type, arguments))


def _describe_type(argument: Any) -> str:
    if not isinstance(argument, types.BaseTuple):
        return str(argument)
    kind = getattr(argument, "instance_class", tuple)
    return f"{kind.__module__}.{kind.__qualname__}({describe(argument.types)})"


def all_known(arguments: Iterable[Any]) -> bool:
    """Whether the classes among the arguments' types are the package's own.

    Kernels are chosen by such classes. Those of a class from outside are from outside too, and
    their sources are not hashed.
    """
    for argument in arguments:
        if isinstance(argument, types.BaseTuple):
            kind = getattr(argument, "instance_class", None)
            if kind is not None and kind.__module__.partition(".")[0] != __package__:
                return False
            if not all_known(argument.types):
                return False
    return True


def describe_target(target_context: Any) -> str:
    """The machine and the settings that code is made for."""
    settings = tuple((name, str(getattr(config, name, None))) for name in _SETTINGS)
    return _describe_code(target_context.codegen(), config.CPU_NAME, settings)


@cache
def _describe_code(codegen: Any, _cpu: str | None, settings: tuple[Any, ...]) -> str:
    # LLVM asks the processor for its name every time, which takes a while on virtual machines.
    return f"{codegen.magic_tuple()} {dict(settings)}"


def serialise(result: Any) -> bytes | None:
    """A compiled kernel as bytes, or None if it holds addresses of this process."""
    library = result.library
    if not isinstance(library, _Library):
        return None  # numba compiled it by itself, and it may call units that are not known
    units = [unit.facts() for unit in library.units.values()]
    if library.has_dynamic_globals or None in units:
        return None
    if isinstance(library, _Unit):
        return pickle.dumps(("unit", library.facts(), _facts_of_callee(result)))
    if isinstance(library, _Part):
        code = (library.name, library._get_module_for_linking().as_bitcode(), units)
        return pickle.dumps(("part", code, _facts_of_callee(result)))
    return pickle.dumps(("whole", units, result._reduce()))


def _facts_of_callee(result: Any) -> tuple[Any, ...]:
    fndesc = result.fndesc
    fndesc.typemap = fndesc.calltypes = None  # not needed any more, and large
    environments = tuple(result._find_referenced_environments())
    return (fndesc, result.environment, result.signature, result.reload_init, environments)


def deserialise(content: bytes, target_context: Any) -> Any:
    """The kernel that :func:`serialise` wrote; the content has been verified."""
    kind, code, facts = pickle.loads(content)
    codegen = target_context.codegen()
    if kind == "whole":
        for unit in code:
            _Unit.load(codegen, unit)
        return CompileResult._rebuild(target_context, *facts)
    fndesc, environment, signature, reload_init, environments = facts
    for initialise in reload_init:
        initialise()
    return compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        entry_point=_entry_of_part(),
        library=_Unit.load(codegen, code) if kind == "unit" else _Part.load(codegen, *code),
        signature=signature,
        objectmode=False,
        lifted=(),
        fndesc=fndesc,
        environment=environment,
        reload_init=reload_init,
        referenced_envs=environments,
    )


def guard_compilation(dispatcher: Any) -> None:
    """Compile as numba does by itself if this module fails, as it might with a later numba."""
    compile_here = dispatcher.compile

    def compile(signature: Any) -> Any:
        try:
            with no_garbage_collection():
                return compile_here(signature)
        except errors.NumbaError:
            raise  # the kernel's fault
        except Exception:
            dispatcher._compiler.pipeline_class = Compiler
            return compile_here(signature)

    dispatcher.compile = compile
