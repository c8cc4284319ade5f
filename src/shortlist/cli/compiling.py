"""Telling the user why the first run takes longer, and how much longer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from shortlist.cli.options import OutputOptions
from shortlist.cli.output import say

if TYPE_CHECKING:
    from shortlist.solvers.records.clock import CompileTimer


@contextmanager
def told_of_compilation(output: OutputOptions) -> Iterator[CompileTimer]:
    """Say so when numba starts to compile; the timer's seconds grow as it does."""
    from numba.core import event

    from shortlist.solvers.records.clock import CompileTimer

    class Announcing(CompileTimer):
        said = False

        def on_start(self, which: Any) -> None:
            if not self.said:
                self.said = True
                say(output, "compiling for this machine (on first use; it is kept) ...")
            super().on_start(which)

    with event.install_listener("numba:compile", Announcing()) as timer:
        yield timer
