"""The one place that reaches into numba: how a kernel is lowered, linked and serialised.

numba optimises every function it compiles and turns it into machine code, and then does so again
for the copies of it inside each caller. Here a kernel is compiled in two ways instead:

part   what another kernel calls. Its code in LLVM's language only, for its callers to link.
whole  what Python calls. It links its parts, is optimised once, and becomes machine code.

A default fit compiles in about half the time this way. It also makes results reproducible. All
that a whole kernel calls is private to it. In numba a call that is not inlined may end up in any
copy of the function that the process has loaded, and copies differ in their rounding.

Everything here is tied to numba's internals, hence the bound on its version. Importing this
module fails if a name is missing; :func:`guard_compilation` handles what fails later.
"""

import hashlib
import pickle
from collections.abc import Iterable
from typing import Any

from llvmlite import binding as llvm
from numba import types
from numba.core import config, errors
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, CompileResult, DefaultPassBuilder, compile_result
from numba.core.compiler_machinery import LoweringPass, register_pass
from numba.core.typed_passes import AnnotateTypes, NoPythonBackend

from shortlist._jit_cache import kernel_identity

# Settings of numba that change the code it makes.
_SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")


class _Library(JITCodeLibrary):
    """The code of one kernel, which knows the functions that are its own."""

    def __init__(self, codegen: Any, name: str) -> None:
        super().__init__(codegen, name)
        self._own: set[str] = set()

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
        self._hide_all_but(self._own | names)

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True

    def shared_names(self) -> set[str]:
        exported = _exported(self._final_module)
        return exported if self.shared else exported - self._own

    @classmethod
    def from_bitcode(cls, codegen: Any, name: str, bitcode: bytes) -> "_Part":
        """A part from the disk; only shared ones are kept there."""
        self = cls(codegen, name)
        self.shared = True
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


@register_pass(mutates_CFG=False, analysis_only=False)
class _PrepareWhole(_Pass):
    """Before lowering: choose the library, and what to put into it."""

    _name = "shortlist_prepare_whole"

    def run_pass(self, state: Any) -> bool:
        # Nothing calls a kernel through a pointer.
        state.flags.no_cfunc_wrapper = True
        state.library = _Whole(state.targetctx.codegen(), state.func_id.func_qualname)
        # The machine code is kept for the cache.
        state.library.enable_object_caching()
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class _PreparePart(_Pass):
    _name = "shortlist_prepare_part"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_cfunc_wrapper = True
        state.flags.no_cpython_wrapper = True
        state.flags.no_compile = True
        state.library = _Part(state.targetctx.codegen(), state.func_id.func_qualname)
        identity = kernel_identity(state.func_id.func)
        if identity is not None:
            state.library.shared = True
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


def _shared_number(identity: str, arguments: Iterable[Any]) -> int:
    """The number in the name of a shared part, where numba has its count of functions."""
    text = f"{identity}({describe(arguments)})"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16])


def _entry_of_part() -> Any:
    """What numba knows a part by: unique, hashable and a built-in function. Nothing calls it."""
    return [].clear


class WholeCompiler(Compiler):
    """For ``numba.njit(pipeline_class=...)``."""

    def define_pipelines(self) -> list[Any]:
        return [_with_passes(self.state, _PrepareWhole, _FinishWhole)]


class PartCompiler(Compiler):
    """For ``numba.njit(pipeline_class=...)``."""

    def define_pipelines(self) -> list[Any]:
        return [_with_passes(self.state, _PreparePart, _FinishPart)]


def _with_passes(state: Any, prepare: type, finish: type) -> Any:
    passes = DefaultPassBuilder.define_nopython_pipeline(state)
    passes.add_pass_after(prepare, AnnotateTypes)
    passes.add_pass_after(finish, NoPythonBackend)
    passes.finalize()
    return passes


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
    settings = {name: getattr(config, name, None) for name in _SETTINGS}
    return f"{target_context.codegen().magic_tuple()} {settings}"


def serialise(result: Any) -> bytes | None:
    """A compiled kernel as bytes, or None if it holds addresses of this process."""
    if result.library.has_dynamic_globals:
        return None
    if not isinstance(result.library, _Part):
        return pickle.dumps(("whole", result._reduce()))
    fndesc = result.fndesc
    fndesc.typemap = fndesc.calltypes = None  # not needed any more, and large
    environments = tuple(result._find_referenced_environments())
    library = (result.library.name, result.library._get_module_for_linking().as_bitcode())
    facts = (fndesc, result.environment, result.signature, result.reload_init, environments)
    return pickle.dumps(("part", (library, *facts)))


def deserialise(content: bytes, target_context: Any) -> Any:
    """The kernel that :func:`serialise` wrote; the content has been verified."""
    kind, payload = pickle.loads(content)
    if kind == "whole":
        return CompileResult._rebuild(target_context, *payload)
    (name, bitcode), fndesc, environment, signature, reload_init, environments = payload
    for initialise in reload_init:
        initialise()
    return compile_result(
        typing_context=target_context.typing_context,
        target_context=target_context,
        entry_point=_entry_of_part(),
        library=_Part.from_bitcode(target_context.codegen(), name, bitcode),
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
            return compile_here(signature)
        except errors.NumbaError:
            raise  # the kernel's fault
        except Exception:
            dispatcher._compiler.pipeline_class = Compiler
            return compile_here(signature)

    dispatcher.compile = compile
