"""Imports that take long and are not needed: a command is to start at once.

scikit-learn imports pandas and scipy.stats for tables and tests that no command uses, numba a
parser of C, and SciPy parts of NumPy for writing extensions. Together they take longer than all
the rest.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

#: Modules that others import and hardly ever use. They load at their first use.
LAZY = frozenset(["asyncio", "numpy.f2py", "numpy.testing", "scipy.stats"])
#: Modules that import a package if they can, and go on if they cannot.
_OPTIONAL_IMPORTS = {"sklearn.utils.fixes": "pandas", "numba.core.typing.cffi_utils": "cffi"}


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
                spec.loader = _Without(_OPTIONAL_IMPORTS[name], spec.loader)
        return spec


class _Without(Loader):
    """Loads a module while a package seems not to be installed."""

    def __init__(self, package: str, loader: Loader) -> None:
        self.package = package
        self.loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        if self.package in sys.modules:
            self.loader.exec_module(module)
            return
        sys.modules[self.package] = None  # type: ignore[assignment]
        try:
            self.loader.exec_module(module)
        finally:
            del sys.modules[self.package]


def import_quickly() -> None:
    """Leave out of later imports in this process what no command needs."""
    if not any(isinstance(finder, _QuickFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _QuickFinder())
