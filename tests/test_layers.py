"""Imports point one way through the package, those inside functions and lazy ones included."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import shortlist

PACKAGE = Path(shortlist.__file__).parent
# From the ground up. A module may import its own part and parts on lower floors.
FLOORS = [
    {
        "_text",
        "errors",
        "_json",
        "_lazy",
        "_files",
        "_folders",
        "_machine",
        "_memory",
        "_parameters",
        "_signals",
        "_sparse",
    },
    {"_jit_cache", "_jit_compiler", "_jit_internals", "_compiling", "_jit", "_progress"},
    {"_blas", "_native", "_encoding", "_state_files", "special", "datasets"},
    {"projections"},
    {"losses"},
    {"solvers", "metrics", "calibration", "_record_checks", "_pipelines"},
    {"estimators", "torch"},
    {"_linear_scores", "_model_checks", "_responses", "probabilities"},
    {"conformal", "distributed", "onnx", "plots"},
    {"persistence"},
    {"experiments"},
    {"cli", "__main__"},
]
FLOOR = {part: number for number, parts in enumerate(FLOORS) for part in parts}


# Rooms of solvers from the ground up; its other files are below strategy.
SOLVER_ROOMS = ["kernels", "storage", "records", "strategy"]
# What CONTRIBUTING says of files.
MAX_LINES = 450
FILES = sorted(PACKAGE.rglob("*.py"))


def module_of(path: Path) -> str:
    """The dotted name of a file: "shortlist.losses.base"."""
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path) for path in FILES}


def imports(path: Path, source: str | None = None) -> set[str]:
    """Modules of the package that a file imports, wherever in it.

    A string that names a module, or a function as "module:function", counts: it is looked up later.
    """
    package = module_of(path) if path.name == "__init__.py" else module_of(path.parent)
    tree = ast.parse(path.read_text(encoding="utf-8") if source is None else source)
    found = {name for node in ast.walk(tree) for name in _names(node, package)}
    return {name for name in found if name.partition(".")[0] == "shortlist"}


def _names(node: ast.AST, package: str) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        above = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
        home = ".".join([*above, *filter(None, [node.module])])
        members = [f"{home}.{alias.name}" for alias in node.names]
        yield from (member if member in MODULES else home for member in members)
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        named = node.value.partition(":")[0]
        if named in MODULES:
            yield named


def part_of(module: str) -> str:
    """The folder or file of the package that a module belongs to; "" is the package."""
    return module.removeprefix("shortlist").lstrip(".").partition(".")[0]


def test_every_kind_of_import_is_seen():
    source = """
def f():
    import shortlist.solvers
    from shortlist.estimators import TopKClassifier
    from shortlist import torch, __version__
    from .. import metrics
    from ..plots.charts import Chart
    from . import registry
    import_module("shortlist.onnx")
    home = "shortlist.conformal:ShortlistConformal"
"""
    found = imports(PACKAGE / "losses" / "base.py", source)
    assert {part_of(name) for name in found} == {
        *("solvers", "estimators", "torch", "", "metrics", "plots", "losses", "onnx", "conformal")
    }


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_points_upwards(path):
    own = part_of(module_of(path))
    if not own:  # the lazy names of the package
        return
    assert own in FLOOR, f"{own} has no floor yet: put it in FLOORS"
    for part in {part_of(name) for name in imports(path)} - {own, ""}:
        assert part in FLOOR, part
        assert FLOOR[part] <= FLOOR[own], f"{module_of(path)} imports {part}, which lies above it"


def test_parts_on_one_floor_do_not_import_each_other_in_a_circle():
    graph = {part: set() for part in FLOOR}
    for path in FILES:
        if own := part_of(module_of(path)):
            graph[own] |= {part_of(name) for name in imports(path)} - {own, ""}
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the circle


def test_modules_do_not_import_each_other_in_a_circle():
    """Imports inside functions and those for type checking count too.

    The package itself is left out: any module may take its version or its lazy names.
    """
    graph = {module_of(path): imports(path) - {"shortlist", module_of(path)} for path in FILES}
    TopologicalSorter(graph).prepare()


def test_no_file_is_too_long():
    lengths = {module_of(path): len(path.read_text("utf-8").splitlines()) for path in FILES}
    assert {module for module, length in lengths.items() if length > MAX_LINES} == set()


def test_solver_rooms_build_on_each_other():
    """Nothing but strategy imports strategy; it alone chooses between the others."""
    rooms = {room: number for number, room in enumerate(SOLVER_ROOMS)}
    beside = rooms["records"]
    for path in (PACKAGE / "solvers").rglob("*.py"):
        own = beside if path.parent.name == "solvers" else rooms[path.parent.name]
        for name in imports(path):
            room = name.removeprefix("shortlist.solvers").lstrip(".").partition(".")[0]
            assert rooms.get(room, 0) <= own, f"{module_of(path)} imports {name}"
