"""Checkpoints on the command line: ``--checkpoint PATH --resume``."""

import os
import shutil
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shortlist.cli.options import OutputOptions
from shortlist.cli.output import say


@dataclass(frozen=True)
class CheckpointOptions:
    """Where training is kept while it runs."""

    checkpoint: str | None = None
    checkpoint_every: float = 60.0
    resume: bool = False

    def parameters(self, output: OutputOptions, others: Iterable[str | None]) -> dict[str, Any]:
        """The estimator's parameters for checkpoints; an error if a checkpoint would be lost.

        ``others`` are the files that the command reads or writes: a checkpoint is removed at the
        end, and must be none of them.
        """
        if self.checkpoint is None:
            if self.resume:
                raise ValueError("--resume: say from where: --checkpoint PATH")
            return {}
        place = os.path.realpath(self.checkpoint)
        if place in (os.path.realpath(other) for other in others if other is not None):
            raise ValueError(
                f"--checkpoint {self.checkpoint}: is read or written here, and would be lost"
            )
        if os.path.lexists(self.checkpoint):
            if not self.resume:
                raise ValueError(
                    f"--checkpoint {self.checkpoint}: exists; go on from it with --resume, or "
                    "delete it"
                )
            say(output, f"going on from {self.checkpoint}")
        elif self.resume:
            say(output, f"{self.checkpoint}: no checkpoint yet, beginning anew")
        return {"checkpoint": self.checkpoint, "checkpoint_every": self.checkpoint_every}

    def remove(self) -> None:
        """Remove the checkpoint of training that is over."""
        if self.checkpoint is not None and os.path.isdir(self.checkpoint):
            shutil.rmtree(self.checkpoint, ignore_errors=True)
        elif self.checkpoint is not None:
            Path(self.checkpoint).unlink(missing_ok=True)
