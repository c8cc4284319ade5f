"""The Markdown of reports: a line with **strong**, *emphasis*, `code` and [links](#anchor)."""

import re
from functools import cache
from typing import Any

#: A statement such as "k > 1" is not to be broken over two lines.
_RELATION = re.compile(r"\b([a-zA-Z]) (=|<|>) (?=\d)")


def to_html(text: str) -> str:
    """A line as HTML. HTML within it is escaped, and links with scripts are no links."""
    parser = _parser()
    tokens = parser.parseInline(text)
    for token in _inline(tokens):
        if token.type == "text":
            token.content = _RELATION.sub("\\1\u00a0\\2\u00a0", token.content)
    return parser.renderer.render(tokens, parser.options, {})


def to_plain(text: str) -> str:
    """The text without its marks."""
    return "".join(token.content for token in _inline(_parser().parseInline(text)))


def is_strong(text: str) -> bool:
    """Whether all of the text is marked as strong."""
    tokens = _inline(_parser().parseInline(text))
    types = [token.type for token in tokens if token.content or token.nesting]
    return types[:1] == ["strong_open"] and types.index("strong_close") == len(types) - 1


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    rules = ["emphasis", "backticks", "link", "escape", "balance_pairs", "fragments_join"]
    return MarkdownIt("zero").enable(rules)


def _inline(tokens: Any) -> list[Any]:
    return [child for token in tokens for child in token.children or ()]
