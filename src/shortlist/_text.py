"""Text from files, made safe to show."""

from __future__ import annotations

import unicodedata

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
