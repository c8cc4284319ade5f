"""Packages whose public names load on first use."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def names_of(
    package: str, homes: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    ``homes`` says for each name which module of the package has it. A home with a dot is a full
    name. A name that is its own home is a module.
    """

    def load(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = import_module(home if "." in home else f"{package}.{home}")
        return module if home == name else getattr(module, name)

    public = sorted(homes)
    return load, lambda: public, public
