"""A small package with kernels, to be installed in a folder and run in fresh processes."""

import os
import shutil
from pathlib import Path

import pytest

import shortlist

PACKAGE = Path(shortlist.__file__).parent
AS_ROOT = hasattr(os, "getuid") and os.getuid() == 0
POSIX = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owner here")

# A kernel in one module, what it inlines in another: small, so that compiling takes no time.
HELPER = (
    "from shortlist._jit import njit\n\n@njit(inline=True)\ndef helper(x):\n    return x + {}\n"
)
CALLER = """
from shortlist._jit import njit
from shortlist._probe_helper import helper


@njit
def kernel(x):
    return helper(x)
"""
# Two kernels that call the same one, which is compiled apart, and another one through it.
APART = """
from shortlist._jit import njit, overloaded


@njit
def root_of_any(x):
    if x < 0.0:
        raise ValueError("negative")
    return x**0.5


@overloaded(apart=True)
def root(x):
    return root_of_any


@njit
def step_of_any(x):
    return 2.0 * root(x)


@overloaded(apart=True)
def step(x):
    return step_of_any


@njit
def one_more(x):
    return step(x) + 1.0


@njit
def two_more(x):
    return step(x) + 2.0
"""
PROBE = """
import json
from shortlist._jit_cache import cache_place
from shortlist._probe import kernel
answer = kernel(40.0)
stats = kernel.stats
print(json.dumps({
    "answer": answer,
    "loaded": sum(stats.cache_hits.values()),
    "compiled": len(kernel.overloads) - sum(stats.cache_hits.values()),
    "folder": str(cache_place().folder),
    "obstacle": cache_place().obstacle,
}))
"""


def install(site: Path) -> Path:
    (site / "shortlist").mkdir(parents=True)
    needed = (
        "__init__",
        "_lazy",
        "_compiling",
        "_files",
        "_folders",
        "_jit",
        "_jit_cache",
        "_jit_compiler",
        "_jit_internals",
    )
    for name in needed:
        shutil.copy(PACKAGE / f"{name}.py", site / "shortlist")
    (site / "shortlist" / "_probe.py").write_text(CALLER)
    (site / "shortlist" / "_probe_helper.py").write_text(HELPER.format("2.0"))
    (site / "shortlist" / "_probe_apart.py").write_text(APART)
    return site


def files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}


def kernels(folder: Path, pattern: str = "*") -> list[Path]:
    return sorted(folder.rglob(f"{pattern}.kernel"))
