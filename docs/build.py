"""Build the documentation: ``python docs/build.py [FOLDER]``, by default into docs/_build/html.

Needs the packages of the ``docs`` dependency group and no network. A warning is an error.
"""

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
NEEDED = {"sphinx": "sphinx", "furo": "furo", "myst_parser": "myst-parser"}


def build(output: Path, *, quiet: bool = False) -> int:
    """Write the pages into a folder; returns Sphinx's exit code."""
    from sphinx.cmd.build import build_main

    cache = output.parent / f"{output.name}-cache"
    options = ["-b", "html", "-W", "--keep-going", "-d", str(cache), *(["-q"] if quiet else [])]
    return build_main([*options, str(HERE), str(output)])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "_build" / "html")
    parser.add_argument("-q", "--quiet", action="store_true")
    options = parser.parse_args()
    missing = [package for module, package in NEEDED.items() if find_spec(module) is None]
    if missing:
        sys.exit(f"missing: {', '.join(missing)}; pip install --group docs")
    code = build(options.folder, quiet=options.quiet)
    if code == 0:
        sys.stdout.write(f"open {options.folder / 'index.html'}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())
