"""Telling the user why the first run takes longer, and how much longer."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shortlist.cli.options import OutputOptions
from shortlist.cli.output import say


@dataclass
class Compilation:
    """Seconds spent on translating kernels into machine code so far."""

    seconds: float = 0.0


@contextmanager
def told_of_compilation(output: OutputOptions) -> Iterator[Compilation]:
    """Say so when numba starts to compile; the record's seconds grow as it does.

    Kernels from the cache on disk do not count: they load in no time.
    """
    from numba.core import event

    spent = Compilation()

    class Listener(event.Listener):
        depth = 0
        begun = 0.0
        said = False

        def on_start(self, _: Any) -> None:
            if self.depth == 0:
                self.begun = time.perf_counter()
                if not self.said:
                    self.said = True
                    say(output, "compiling for this machine (on first use; it is kept) ...")
            self.depth += 1

        def on_end(self, _: Any) -> None:
            self.depth -= 1
            if self.depth == 0:
                spent.seconds += time.perf_counter() - self.begun

    with event.install_listener("numba:compile", Listener()):
        yield spent
