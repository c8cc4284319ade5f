"""Saving a model that may have taken hours: if not here, then elsewhere."""

import itertools
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from shortlist.cli.output import is_standard_output, written_to


def save_somewhere(model: Any, path: str, data: Mapping[str, Any]) -> str:
    """Save a model and return where.

    Where ``path`` cannot be written to, its disk being full, the first of this folder, the home
    folder and the folder for temporary files takes it, and the user is told.
    """
    import shortlist

    try:
        with written_to(path) as place:
            shortlist.save(model, place, data=data)
        return path
    except BrokenPipeError:  # the reader of standard output has gone
        raise
    except OSError as error:
        reason = error
    for other in _other_places(path):
        try:
            shortlist.save(model, other, data=data)
        except OSError:
            continue
        said = reason.strerror or str(reason)
        sys.stderr.write(f"shortlist: {path}: {said}; the model is saved in {other} instead\n")
        return str(other)
    raise reason


def _other_places(path: str) -> Iterator[Path]:
    """A name that is not taken in each folder that there is."""
    name = "model" if is_standard_output(path) else os.path.basename(path)
    for folder in (Path.cwd(), Path.home(), Path(tempfile.gettempdir())):
        names = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(1)))
        yield next(folder / each for each in names if not os.path.lexists(folder / each))
