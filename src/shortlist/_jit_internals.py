"""The names inside numba that ``_jit_compiler``, ``_jit`` and ``_native`` build on.

``_jit_compiler`` has them checked before it is used.
"""

from numba.core.cgutils import _StructProxy
from numba.core.codegen import JITCodeLibrary, JITCPUCodegen
from numba.core.compiler import CompileResult
from numba.core.dispatcher import Dispatcher

# Each class with the members and attributes that are used or replaced.
INTERNALS = (
    (
        JITCodeLibrary,
        (
            *("_codegen", "_ensure_finalized", "_final_module", "_finalize_dynamic_globals"),
            *("_finalize_final_module", "_finalized", "_get_compiled_object"),
            *("_get_module_for_linking", "_linking_libraries", "_optimize_final_module"),
            *("_optimize_functions", "_reload_init", "_set_compiled_object"),
            *("add_linking_library", "add_llvm_module", "enable_object_caching"),
            "has_dynamic_globals",
        ),
    ),
    (
        JITCPUCodegen,
        (
            "_create_empty_module",
            "_data_layout",
            "_function_pass_manager",
            "magic_tuple",
            "set_env",
        ),
    ),
    (CompileResult, ("_find_referenced_environments", "_rebuild", "_reduce", "_replace")),
    (Dispatcher, ("_cache", "_compiler", "compile", "get_call_template", "get_overload")),
    (_StructProxy, ("_getvalue",)),
)

# Passes of numba for what no kernel of the package does: functions within functions,
# comprehensions, `with`, and loops over tuples of several types. They take 4 % of the time to
# compile, and the machine code is the same without them.
_PASSES_WITHOUT_WORK = {
    "WithLifting",
    "InlineClosureLikes",
    "MakeFunctionToJitFunction",
    "InlineInlinables",
    "InlineOverloads",
    "FindLiterallyCalls",
    "LiteralUnroll",
    "LiteralPropagationSubPipelinePass",
    "DumpParforDiagnostics",
}


def check_internals() -> None:
    """Raise ImportError if this numba lacks one of them."""
    for kind, needed in INTERNALS:
        if missing := set(needed) - _names_in(kind):
            raise ImportError(f"{kind.__name__} of numba has no {sorted(missing)[0]}")


def with_work(passes: list) -> list:
    """numba's passes but for those that have no work in kernels of the package."""
    return [each for each in passes if each[0].__name__ not in _PASSES_WITHOUT_WORK]


def _names_in(kind: type) -> set[str]:
    """The members of a class, and the names in its ``__init__``, where it sets attributes."""
    found = set(dir(kind))
    for each in kind.__mro__:
        code = getattr(vars(each).get("__init__"), "__code__", None)
        found.update(() if code is None else code.co_names)
    return found
