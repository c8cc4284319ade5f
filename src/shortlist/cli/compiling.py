"""Telling the user why the first run takes longer, and how much longer."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from shortlist.cli.options import OutputOptions
from shortlist.cli.output import say

if TYPE_CHECKING:
    from shortlist._compiling import CompileTimer


def told_of_compilation(output: OutputOptions) -> AbstractContextManager[CompileTimer]:
    """Say so when numba starts to compile; the timer's seconds grow as it does."""
    from shortlist._compiling import compilation_told

    return compilation_told(lambda text: say(output, text))
