"""The package asks losses and storages for traits: it does not know them by name or type."""

import ast

import pytest

from shortlist import losses
from tests.test_layers import FILES, MODULES, PACKAGE, imports, module_of

# What the rest of the package may use of ``losses``. All other files hold certain losses.
FACE = {"base", "domains", "entries", "kernels", "labels", "registry"}
# Calibration has a method for each family. The paper's tables are about certain losses.
KNOW_FAMILIES = ("shortlist.losses", "shortlist.calibration")
KNOW_NAMES = ("shortlist.losses", "shortlist.experiments.paper")
# They make storages of what the user gives.
KNOW_STORAGES = (
    *("shortlist.solvers.storage", "shortlist.estimators.kernel"),
    *("shortlist.estimators.limited", "shortlist.distributed"),
)


def _is_within(module: str, parts: tuple[str, ...]) -> bool:
    return any(module == part or module.startswith(f"{part}.") for part in parts)


def _compared_names(source: str) -> set[str]:
    """Names of losses, or parts of them, that a file compares something with."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            asked = [node.left, *node.comparators]
        elif isinstance(node, ast.match_case):
            asked = [node.pattern]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            of_text = node.func.attr in ("startswith", "endswith", "replace", "removeprefix")
            asked = [*node.args] if of_text else []
        else:
            continue
        within = [each for part in asked for each in ast.walk(part)]
        found |= {each.value for each in within if isinstance(each, ast.Constant) and each.value}
    words = {word for name in losses.names() for word in (name, *name.split("_"))}
    return {text for text in found if isinstance(text, str) and text.strip("_") in words}


def test_every_kind_of_comparison_is_seen():
    source = """
if loss == "hinge" or name in ("entropy", "other"):
    ladder = name.endswith("_hinge") or name.replace("smooth_", "")
match name:
    case "softmax":
        pass
fine = {"hinge": 1}["hinge"], get("ova_logistic")
"""
    assert _compared_names(source) == {"hinge", "entropy", "_hinge", "smooth_", "softmax"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nothing_asks_for_the_name_or_the_family_of_a_loss(path):
    module = module_of(path)
    if not _is_within(module, KNOW_NAMES):
        assert not _compared_names(path.read_text(encoding="utf-8"))
    if not _is_within(module, KNOW_FAMILIES):
        used = {name for name in imports(path) if name.startswith("shortlist.losses.")}
        assert used <= {f"shortlist.losses.{name}" for name in FACE}


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_strategies_see_the_interface_of_storages_only(path):
    if _is_within(module_of(path), KNOW_STORAGES):
        return
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Name) and node.id.endswith("Storage"):
            assert node.id == "Storage"


def test_the_lists_name_modules_that_there_are():
    lists = {*KNOW_FAMILIES, *KNOW_NAMES, *KNOW_STORAGES}
    assert lists | {f"shortlist.losses.{name}" for name in FACE} <= MODULES
