"""Runs the Python examples of a Markdown page and compares what they print with what it shows.

The convention: the fenced ``python`` blocks of a page run in order, in one namespace. If the next
thing after a block is a fenced ``text`` block, that is what it prints; otherwise it prints
nothing. A block right after the line ``<!-- not run -->`` is only compiled.

Numbers with decimals may differ from those shown by a few units in the last place, since the sums
of two processors do; everything else must be the same but for spaces at the ends of lines.
"""

from __future__ import annotations

import contextlib
import io
import re
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

SKIP = "<!-- not run -->"
UNITS = 3

_FENCE = re.compile(r"^```(?P<language>\w*)[^\n`]*\n(?P<body>.*?)^```[ \t]*$", re.M | re.S)
_DECIMAL = re.compile(r"-?\d+\.\d+(?:e[-+]?\d+)?")


@dataclass(frozen=True)
class Example:
    """A block of code, the line it begins on, and what it is said to print."""

    code: str
    shown: str
    line: int
    runs: bool = True


def examples_in(text: str) -> list[Example]:
    """The Python blocks of a page, in order."""
    blocks = list(_FENCE.finditer(text))
    found = []
    for block, following in zip_longest(blocks, blocks[1:]):
        if block["language"] != "python":
            continue
        shown = ""
        if following is not None and following["language"] == "text":
            between = text[block.end() : following.start()]
            shown = following["body"] if not between.strip() else ""
        line = text.count("\n", 0, block.start("body")) + 1
        runs = not text[: block.start()].rstrip().endswith(SKIP)
        found.append(Example(block["body"], shown, line, runs))
    return found


def run_page(path: Path, text: str | None = None) -> list[str]:
    """Run a page's examples; returns what is wrong, nothing if all is as shown."""
    wrong = []
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for example in examples_in(path.read_text(encoding="utf-8") if text is None else text):
        # Blank lines in front, so that a traceback names the line of the page.
        code = compile("\n" * (example.line - 1) + example.code, str(path), "exec")
        if not example.runs:
            continue
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if not same_text(example.shown, printed.getvalue()):
            wrong.append(
                f"{path.name}, line {example.line}: the page shows\n{example.shown}\n"
                f"but the code prints\n{printed.getvalue()}"
            )
    return wrong


def same_text(shown: str, printed: str) -> bool:
    """Whether both are equal but for trailing spaces and the last places of decimals."""
    left, right = (
        [line.rstrip() for line in text.strip("\n").splitlines()] for text in (shown, printed)
    )
    if [_DECIMAL.sub("#", line) for line in left] != [_DECIMAL.sub("#", line) for line in right]:
        return False
    pairs = zip(_DECIMAL.findall("\n".join(left)), _DECIMAL.findall("\n".join(right)), strict=True)
    return all(_close(a, b) for a, b in pairs)


def _close(shown: str, printed: str) -> bool:
    mantissa, _, exponent = shown.partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(shown) - float(printed)) <= (UNITS + 1e-6) * unit
