"""The little Markdown of reports, as HTML and as plain text."""

from __future__ import annotations

import html
import re

_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_EMPHASIS = re.compile(r"(?<!\w)\*(.+?)\*(?!\w)")
_LINK = re.compile(r"\[([^\]]+)\]\((#[\w-]+)\)")


def to_html(text: str) -> str:
    """A paragraph's contents as HTML; everything else in it is escaped."""
    # Code comes first and is set aside: nothing within it is markup.
    codes: list[str] = []

    def set_aside(match: re.Match[str]) -> str:
        codes.append(f"<code>{html.escape(match[1])}</code>")
        return f"\0{len(codes) - 1}\0"

    text = html.escape(_CODE.sub(set_aside, text), quote=False)
    text = _STRONG.sub(r"<strong>\1</strong>", text)
    text = _EMPHASIS.sub(r"<em>\1</em>", text)
    text = _LINK.sub(r'<a href="\2">\1</a>', text)
    return re.sub("\0(\\d+)\0", lambda match: codes[int(match[1])], text)


def to_plain(text: str) -> str:
    """The text without its marks."""
    text = _LINK.sub(r"\1", text)
    text = _STRONG.sub(r"\1", text)
    text = _EMPHASIS.sub(r"\1", text)
    return _CODE.sub(r"\1", text)
