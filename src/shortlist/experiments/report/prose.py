"""The prose of sections: Jinja templates in ``assets``, one for each experiment.

A template holds blocks, which are called by their names. Blank lines part the paragraphs of a
block; within a paragraph the lines are joined.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import Any


class Prose:
    """The texts of an experiment, ``assets/<name>.md.j2``."""

    def __init__(self, name: str) -> None:
        self._name = f"{name}.md.j2"

    def paragraphs(self, block: str, **values: Any) -> list[str]:
        """The paragraphs of a block, with its variables set; those left empty are left out."""
        template = _environment().get_template(self._name)
        text = "".join(template.blocks[block](template.new_context(values)))
        found = (re.sub(r"[ \n]+", " ", part).strip() for part in re.split(r"\n\s*\n", text))
        return [paragraph for paragraph in found if paragraph]

    def __call__(self, block: str, **values: Any) -> str:
        """A block of one paragraph; empty if its conditions leave nothing."""
        return " ".join(self.paragraphs(block, **values))


def asset(name: str) -> str:
    """The text of a file in ``assets``."""
    return files(__package__).joinpath("assets", name).read_text(encoding="utf-8")


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    # Texts are Markdown; the page escapes them.
    environment = Environment(
        loader=FunctionLoader(asset), autoescape=False, undefined=StrictUndefined
    )
    # A line that holds only a condition leaves no blank line: it would part paragraphs.
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters["points"] = lambda number, digits=1: f"{number:.{digits}f}"
    return environment
