"""Build the documentation: ``python docs/build.py [FOLDER]``, by default into docs/_build/html.

Needs the packages of the ``docs`` dependency group and no network. A warning is an error. The
scripts of examples/ run in the build, unless they are unchanged since the last one; ``--fast``
shows them without running them.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
NEEDED = {"sphinx": "sphinx", "furo": "furo", "myst_parser": "myst-parser"}
NEEDED |= {"sphinx_gallery": "sphinx-gallery", "matplotlib": "matplotlib"}


def build(output: Path, *, fast: bool = False, quiet: bool = False) -> int:
    """Write the pages into a folder; returns Sphinx's exit code."""
    from sphinx.cmd.build import build_main

    cache = output.parent / f"{output.name}-cache"
    options = ["-b", "html", "-W", "--keep-going", "-d", str(cache), *(["-q"] if quiet else [])]
    if fast:
        options += ["-D", "plot_gallery=0"]
    return build_main([*options, str(HERE), str(output)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "_build" / "html")
    parser.add_argument("--fast", action="store_true", help="show examples without running them")
    parser.add_argument("-q", "--quiet", action="store_true")
    options = parser.parse_args()
    missing = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if missing:
        sys.exit(f"missing: {', '.join(missing)}; pip install --group docs")
    code = build(options.folder, fast=options.fast, quiet=options.quiet)
    if code == 0:
        sys.stdout.write(f"open {options.folder / 'index.html'}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
