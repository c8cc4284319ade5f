"""Imports point one way through the package, those inside functions included."""

import ast
from pathlib import Path

import pytest

import shortlist

PACKAGE = Path(shortlist.__file__).parent
# From the ground up. A module may import its own part and parts on lower floors.
FLOORS = [
    {"_text", "errors", "_json", "_files", "_folders", "_memory", "_sparse"},
    {"_jit_cache", "_jit_compiler", "_compiling", "_jit", "_progress"},
    {"_native", "_encoding", "_state_files", "special", "datasets"},
    {"projections"},
    {"losses"},
    {"solvers", "metrics", "calibration", "_record_checks"},
    {"estimators", "torch"},
    {"_linear_scores", "_model_checks", "persistence", "_responses", "probabilities"},
    {"conformal", "distributed", "onnx", "plots"},
    {"experiments"},
    {"cli", "__main__"},
]
FLOOR = {part: number for number, parts in enumerate(FLOORS) for part in parts}


def part_of(module: str) -> str:
    """The folder or file of the package that a dotted name belongs to; "" is the package."""
    return module.removeprefix("shortlist").lstrip(".").partition(".")[0]


def imports(path: Path) -> set[str]:
    """Parts of the package that a file imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "shortlist":
            if node.module == "shortlist":
                found |= {alias.name for alias in node.names if alias.name in FLOOR}
            else:
                found.add(part_of(node.module))
        elif isinstance(node, ast.Import):
            found |= {part_of(a.name) for a in node.names if a.name.startswith("shortlist.")}
    return found


FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.parent != PACKAGE or path.stem]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_import_points_upwards(path):
    relative = path.relative_to(PACKAGE)
    own = relative.parts[0].removesuffix(".py")
    if own == "__init__":  # the lazy names of the package
        return
    assert own in FLOOR, f"{own} has no floor yet: put it in FLOORS"
    for part in imports(path) - {own, ""}:
        assert part in FLOOR, part
        assert FLOOR[part] <= FLOOR[own], f"{relative} imports {part}, which lies above it"


def test_solver_rooms_build_on_each_other():
    """storage and kernels know nothing of strategy; nobody but strategy chooses between them."""
    below_strategy = [*(PACKAGE / "solvers").glob("*.py")]
    for room in ("storage", "kernels", "records"):
        below_strategy += (PACKAGE / "solvers" / room).glob("*.py")
    for path in below_strategy:
        text = path.read_text(encoding="utf-8")
        assert "solvers.strategy" not in text, path
