"""The command ``shortlist``. This module imports nothing heavy, so that ``--help`` is instant."""

from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code; see ``shortlist --help``."""
    from shortlist.cli.run import run

    raise SystemExit(run(args))
