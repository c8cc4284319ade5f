"""The command ``shortlist``. This module imports nothing heavy, so that ``--help`` is instant."""

import gc
from collections.abc import Sequence
from typing import NoReturn

__all__ = ["main"]

# New objects after which Python looks for garbage. Imports make hundreds of thousands of objects,
# and none is garbage: looking after every 700, Python's default, takes a tenth of a command's
# start.
OBJECTS_BETWEEN_COLLECTIONS = 1_000_000


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code; see ``shortlist --help``."""
    from shortlist.cli.run import run

    gc.set_threshold(OBJECTS_BETWEEN_COLLECTIONS)
    code = run(args)
    # The process ends: what is left need not be searched for garbage, which took 0.4 seconds.
    gc.disable()
    gc.freeze()
    raise SystemExit(code)
