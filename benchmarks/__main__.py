"""Run a benchmark: ``python -m benchmarks [--narrow] NAME [options]``; without a name, all of them.

``--narrow`` does without AVX-512, as most machines have to: our kernels, BLAS and torch alike.

A benchmark is a module of this folder that says what it measures in its first line and has a
function ``main()`` that reads its own options from the command line.
"""

import ast
import os
import sys
from importlib import import_module
from pathlib import Path

from benchmarks.machine import NARROW


def available() -> dict[str, str]:
    """Every benchmark's name and the first line of its docstring."""
    found = {}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        module = ast.parse(path.read_text(encoding="utf-8"))
        functions = {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
        if "main" in functions and not path.stem.startswith("_"):
            found[path.stem] = (ast.get_docstring(module) or "").partition("\n")[0]
    return found


def main() -> None:
    """Hand over to the benchmark that is named."""
    if sys.argv[1:2] == ["--narrow"]:
        command = [sys.executable, "-m", "benchmarks", *sys.argv[2:]]
        os.execve(sys.executable, command, {**os.environ, **NARROW})
    known = available()
    name, options = (sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else ("", [])
    if name in ("-h", "--help") or (name and name not in known):
        print(__doc__)
        print("\n".join(f"  {each:14} {line}" for each, line in known.items()))
        sys.exit(0 if name.startswith("-") else f"\nthere is no benchmark {name!r}")
    for each in [name] if name else known:
        print(f"== {each}: {known[each]}")
        sys.argv = [f"python -m benchmarks {each}", *options]
        import_module(f"benchmarks.{each}").main()


if __name__ == "__main__":
    main()
