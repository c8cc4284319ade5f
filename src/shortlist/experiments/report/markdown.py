"""The little Markdown of reports, as HTML and as plain text."""

from __future__ import annotations

import html
import re

_CODE = re.compile(r"`([^`]+)`")
_STRONG = re.compile(r"\*\*(.+?)\*\*")
_EMPHASIS = re.compile(r"(?<!\w)\*(.+?)\*(?!\w)")
#: A statement such as "k > 1", escaped, is not to be broken over two lines.
_RELATION = re.compile(r"\b([a-zA-Z]) (=|&lt;|&gt;) (?=\d)")
_LINK = re.compile(r"\[([^\]]+)\]\((#[\w-]+)\)")


def to_html(text: str) -> str:
    """A paragraph's contents as HTML; everything else in it is escaped."""
    text, codes = _without_code(text)
    text = html.escape(text, quote=False)
    text = _RELATION.sub("\\1\u00a0\\2\u00a0", text)
    text = _STRONG.sub(r"<strong>\1</strong>", text)
    text = _EMPHASIS.sub(r"<em>\1</em>", text)
    text = _LINK.sub(r'<a href="\2">\1</a>', text)
    return _with_code(text, [f"<code>{html.escape(code)}</code>" for code in codes])


def to_plain(text: str) -> str:
    """The text without its marks."""
    text, codes = _without_code(text)
    text = _LINK.sub(r"\1", text)
    text = _STRONG.sub(r"\1", text)
    text = _EMPHASIS.sub(r"\1", text)
    return _with_code(text, codes)


def is_strong(text: str) -> bool:
    """Whether all of the text is marked as strong."""
    return _STRONG.fullmatch(text) is not None


def _without_code(text: str) -> tuple[str, list[str]]:
    """Code set aside, a numbered place left for each: nothing within it is markup."""
    codes: list[str] = []

    def set_aside(match: re.Match[str]) -> str:
        codes.append(match[1])
        return f"\0{len(codes) - 1}\0"

    return _CODE.sub(set_aside, text), codes


def _with_code(text: str, codes: list[str]) -> str:
    return re.sub("\0(\\d+)\0", lambda match: codes[int(match[1])], text)
