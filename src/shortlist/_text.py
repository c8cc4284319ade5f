"""Text for messages: made safe to show, with settings that each reader knows by another name."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

# Control characters, lone surrogates, and the separators that start a new line.
_ESCAPED_CATEGORIES = frozenset(["Cc", "Cs", "Zl", "Zp"])
# Characters that change the direction of what follows: "abc" could be shown as "cba".
_DIRECTIONS = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def escape_controls(text: str) -> str:
    r"""Return text with its control characters written out, as ``\x1b`` or ``\n``.

    A label or a column's name comes from a file. Shown as it is, it could move the cursor, change
    colours or hide what stands before it. Everything else stays: letters of any script, spaces,
    backslashes.

    >>> print(escape_controls("red \x1b[31m"))
    red \x1b[31m
    """
    if text.isprintable():
        return text
    return "".join(_escaped(character) for character in text)


def _escaped(character: str) -> str:
    if character in _DIRECTIONS or unicodedata.category(character) in _ESCAPED_CATEGORIES:
        return character.encode("unicode_escape").decode("ascii")
    return character


class Phrase:
    """Text with settings in it: ``"use " + Setting("loss", "entropy") + "."``."""

    def __init__(self, *parts: str | Setting) -> None:
        self._parts = parts

    @property
    def parts(self) -> tuple[str | Setting, ...]:
        return self._parts

    def __add__(self, other: Words) -> Phrase:
        return Phrase(*self.parts, *_parts_of(other))

    def __radd__(self, other: Words) -> Phrase:
        return Phrase(*_parts_of(other), *self.parts)


@dataclass(frozen=True)
class Setting(Phrase):
    """A parameter that a message speaks of, with the value it should have, if any.

    Python knows it as ``label_type='str'``; the command as ``--label-type str``.
    """

    parameter: str
    value: Any = ...

    @property
    def parts(self) -> tuple[str | Setting, ...]:
        return (self,)

    @property
    def has_value(self) -> bool:
        return self.value is not ...

    def __str__(self) -> str:
        return f"{self.parameter}={self.value!r}" if self.has_value else self.parameter


Words = str | Phrase


def _parts_of(words: Words) -> tuple[str | Setting, ...]:
    return (words,) if isinstance(words, str) else words.parts


def worded(words: Words, name: Callable[[Setting], str] = str) -> str:
    """Return a message with every setting as ``name`` puts it.

    >>> worded("use " + Setting("loss", "entropy") + ".")
    "use loss='entropy'."
    """
    parts = _parts_of(words)
    return "".join(part if isinstance(part, str) else name(part) for part in parts)


def counted(count: float, noun: str) -> str:
    """Return a number with its noun: one of them, or several.

    >>> counted(1, "class"), counted(2, "class"), counted(0, "feature")
    ('1 class', '2 classes', '0 features')
    """
    plural = f"{noun}es" if noun.endswith("s") else f"{noun}s"
    number = f"{count:g}" if isinstance(count, float) else str(count)
    return f"{number} {noun if count == 1 else plural}"


def few(items: Sequence[Any], most: int, show: Callable[[Any], str] = repr) -> str:
    """Return the first items of a list, with an ellipsis if there are more.

    >>> few(["a", "b", "c"], 2)
    "'a', 'b', ..."
    """
    listed = ", ".join(show(item) for item in items[:most])
    return listed if len(items) <= most else f"{listed}, ..."
