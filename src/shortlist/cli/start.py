"""Before the libraries load: which imports are left out, and whether the memory has room for them.

scikit-learn imports pandas and scipy.stats for tables and tests that no command uses, numba a
parser of C, and SciPy parts of NumPy for writing extensions. Together they take longer than all
the rest.

BLAS reserves address space for each of its threads when it is loaded. Where a limit (``ulimit -v``)
leaves too little, it hangs or aborts, and other libraries then report that they cannot be found.
"""

import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

from shortlist._memory import address_space_limit

#: Modules that others import and hardly ever use. They load at their first use.
LAZY = frozenset(["asyncio", "numpy.f2py", "numpy.testing", "scipy.stats"])
#: Modules that import a package if they can, and go on if they cannot.
_OPTIONAL_IMPORTS = {"sklearn.utils.fixes": "pandas", "numba.core.typing.cffi_utils": "cffi"}

# Address space that training takes at its peak. Measured with Letter on Linux, Python 3.11: 474 MB
# with one thread, 656 MB with two.
_MB = 1_000_000
_BASE_BYTES, _BYTES_PER_THREAD = 300 * _MB, 185 * _MB
_THREAD_COUNT_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class _QuickFinder(MetaPathFinder):
    """Finds some modules as PathFinder does, and makes them load later, or import less."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in LAZY and name not in _OPTIONAL_IMPORTS:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            if name in LAZY:
                spec.loader = LazyLoader(spec.loader)
            else:
                load = partial(_load_without, _OPTIONAL_IMPORTS[name], spec.loader.exec_module)
                spec.loader.exec_module = load  # type: ignore[method-assign]
        return spec


_FINDER = _QuickFinder()


def _load_without(package: str, load: Callable[[ModuleType], None], module: ModuleType) -> None:
    """Load a module while a package seems not to be installed."""
    if package in sys.modules:
        load(module)
        return
    sys.modules[package] = None  # type: ignore[assignment]
    try:
        load(module)
    finally:
        del sys.modules[package]


def import_quickly() -> None:
    """Leave out of later imports in this process what no command needs."""
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)


def fit_into_address_space() -> None:
    """Let BLAS start as many threads as there is room for; MemoryError if not even one fits."""
    limit = address_space_limit()
    if limit is None:
        return
    threads = (limit - _BASE_BYTES) // _BYTES_PER_THREAD
    if threads < 1:
        raise MemoryError(
            f"the limit on address space is {limit // _MB} MB (ulimit -v), and Shortlist needs "
            f"{(_BASE_BYTES + _BYTES_PER_THREAD) // _MB} MB to start"
        )
    if threads < (os.cpu_count() or 1):
        for name in _THREAD_COUNT_VARIABLES:
            os.environ.setdefault(name, str(threads))
