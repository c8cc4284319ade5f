"""``shortlist info``: what a model file holds, or what this installation is."""

from __future__ import annotations

import math
import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from shortlist._text import counted
from shortlist.cli.options import OutputOptions
from shortlist.cli.output import number, print_json, print_line, readable_size

if TYPE_CHECKING:
    from shortlist.persistence import ModelInfo

# Parts of a description that have a section of their own, or say the same as another.
_KNOWN = ("params", "result", "n_iter", "models", "ks", "chosen", "rows", "families", "table")


def info(*, model: str | None = None, output: OutputOptions) -> None:
    """Show what a model file holds: parameters, classes and the record of its training.

    Only the description is read, not the weights, so this is quick whatever the model's size.
    """
    if model is None:
        facts = _installation()
        sections = {"": facts}
    else:
        from shortlist.persistence import describe

        described = describe(model)
        facts, sections = _facts(described), _sections(described)
    if output.as_json:
        print_json("info", facts)
    else:
        _print_pairs(sections)


def _facts(described: ModelInfo) -> dict[str, Any]:
    """All that the file says, for JSON."""
    facts = asdict(described)
    path, kept = facts.pop("path"), facts.pop("data") or {}
    reading = kept.get("reading")
    return {"model": path, **facts, "reading": reading, "bytes": os.path.getsize(path)}


def _sections(described: ModelInfo) -> dict[str, dict[str, Any]]:
    """What there is in sections for people, without what only rebuilds the estimator."""
    steps, told = _steps(described)
    record = dict(told.get("result") or {})
    if "history" in record:
        record["history"] = f"{len(record['history'])} evaluations"
    return {
        "": {
            "file": described.path,
            "size": readable_size(os.path.getsize(described.path)),
            "class": described.estimator,
            "written by": f"Shortlist {described.shortlist_version}",
        },
        "Steps": steps,
        "Parameters": {name: _brief(value) for name, value in told.get("params", {}).items()},
        "Fitted": {name: _brief(value) for name, value in told.items() if name not in _KNOWN},
        "Training data": _data((described.data or {}).get("reading")),
        "Training": record,
        "Chosen models": _chosen(told),
        "Arrays": {
            name: f"{kind} {' x '.join(map(str, shape))}"
            for name, (kind, shape) in described.arrays.items()
            if not name.startswith("meta.")
        },
    }


def _steps(described: ModelInfo) -> tuple[dict[str, str], dict[str, Any]]:
    """The steps of a pipeline, and what is told of its classifier; of a model alone, no steps."""
    meta = described.meta
    if described.estimator != "Pipeline":
        return {}, meta
    name, model = meta["last"]
    steps = {step["name"]: step["estimator"] for step in meta["steps"]}
    return {**steps, name: model["estimator"]}, model["state"]["meta"]


def _data(kept: dict[str, Any] | None) -> dict[str, Any]:
    """How the training data was read, and what its classes are called."""
    if kept is None:
        return {}
    from shortlist.datasets import Reading

    reading = Reading.from_dict(kept)
    told = {"format": reading.format, "read as": reading.describe()}
    if reading.class_names is not None:
        told["class names"] = _brief([f"{label} ({name})" for label, name in reading.class_names])
    return told


def _chosen(meta: dict[str, Any]) -> dict[str, str]:
    """A line for each k with the model that a search chose for it."""
    lines = {}
    for k, place in zip(meta.get("ks", ()), meta.get("chosen", ()), strict=True):
        own = meta["models"][place]["state"]["meta"]
        params, result = own["params"], own["result"]
        gap = result["relative_gap"]
        certified = f", relative gap {gap:.1e}" if math.isfinite(gap) else ""
        lines[f"top-{k}"] = (
            f"{params['loss']}, k={params['k']}, C={params['C']:.4g} ({result['status']} after "
            f"{counted(round(result['epochs'], 1), 'epoch')}{certified})"
        )
    return lines


def _brief(value: Any) -> Any:
    """The beginning of a long list; of a model within, its class."""
    if isinstance(value, dict) and "estimator" in value:
        return value["estimator"]
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        shown = ", ".join(map(str, value[:4]))
        return shown if len(value) <= 4 else f"{shown}, ... ({len(value)})"
    return value


def _print_pairs(sections: dict[str, dict[str, Any]]) -> None:
    width = max(len(name) for pairs in sections.values() for name in pairs)
    for title, pairs in sections.items():
        if not pairs:
            continue
        if title:
            print_line()
            print_line(title)
        for name, value in pairs.items():
            shown = number(value) if isinstance(value, float) else str(value)
            print_line(f"  {name:<{width}}  {shown}")


def _installation() -> dict[str, Any]:
    import platform
    from importlib.metadata import PackageNotFoundError, version

    import shortlist

    facts: dict[str, Any] = {
        "shortlist": shortlist.__version__,
        "folder": os.path.dirname(shortlist.__file__),
        "python": platform.python_version(),
        "system": platform.platform(),
        "cpus": os.cpu_count(),
    }
    used = ["numpy", "scipy", "scikit-learn", "numba", "safetensors", "typer", "rich"]
    for package in [*used, "torch", "matplotlib", "pandas", "pyarrow", "onnx"]:
        try:
            facts[package] = version(package)
        except PackageNotFoundError:
            facts[package] = None if package in used else "not installed (optional)"
    return facts
