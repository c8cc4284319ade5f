"""The words of sections: Jinja templates in ``assets``, one for each experiment.

A template holds blocks, which are called by their names. A block is Markdown: headings (#),
paragraphs, quotes (>) and tables, and within a line **strong**, *emphasis*, `code` and
[links](#anchor). The block of a table, figure, remark or section begins with its title, a heading.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from typing import Any

from shortlist.experiments.report.model import Figure, Remark, Rows, Section, Table, Value
from shortlist.plots.charts import Panel

Facts = Mapping[str, Any]
#: A statement such as "k > 1" is not to be broken over two lines.
_RELATION = re.compile(r"\b([a-zA-Z]) (=|<|>) (?=\d)")


@dataclass
class _Text:
    """A heading and what stands under it; lines are Markdown without breaks."""

    title: str = ""
    paragraphs: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    rows: list[list[str]] = field(default_factory=list)


class Prose:
    """The texts of an experiment, ``assets/<name>.md.j2``, and what is made of them.

    ``facts`` are the variables of a block.
    """

    def __init__(self, name: str) -> None:
        self._name = f"{name}.md.j2"

    def paragraphs(self, block: str, **facts: Any) -> list[str]:
        """The paragraphs of a block."""
        return [line for text in self._texts(block, facts) for line in text.paragraphs]

    def remarks(self, block: str, facts: Facts) -> list[Remark]:
        """The remarks of a block, if any: each begins with its topic."""
        told = self._texts(block, facts)
        return [Remark(text.title, " ".join(text.paragraphs)) for text in told]

    def figure(self, block: str, panels: Sequence[Panel], facts: Facts, name: str = "") -> Figure:
        text = self._titled(block, facts)
        return Figure(name or block, text.title, " ".join(text.paragraphs), panels)

    def table(
        self, block: str, columns: Sequence[str], rows: Rows, facts: Facts, **options: Any
    ) -> Table:
        """A table. The paragraphs of its block are its caption, quotes are its notes."""
        return _table(block, self._titled(block, facts), columns, rows, **options)

    def written_table(self, block: str, facts: Facts, **options: Any) -> Table:
        """A table of words, which its block holds. An empty row begins a group."""
        text = self._titled(block, facts)
        columns, *lines = text.rows
        rows, groups = [], []
        for cells in lines:
            if any(cells):
                rows.append(cells)
            else:
                groups.append(len(rows))
        return _table(block, text, columns, rows, groups=groups, **options)

    def section(self, name: str, facts: Facts, **parts: Any) -> Section:
        """A section: the block "section", and "headlines", "protocol", "remarks" if there are any.

        A headline is a strong number and what it is.
        """
        text = self._titled("section", facts)
        known = _environment().get_template(self._name).blocks
        headlines, protocol = (
            self.paragraphs(block, **facts) if block in known else []
            for block in ("headlines", "protocol")
        )
        if "remarks" in known:
            parts["remarks"] = self.remarks("remarks", facts)
        told = [_headline(line) for line in headlines]
        return Section(
            name, text.title, text.paragraphs, headlines=told, protocol=protocol, **parts
        )

    def _titled(self, block: str, facts: Facts) -> _Text:
        (text,) = self._texts(block, facts)
        return text

    def _texts(self, block: str, facts: Facts) -> list[_Text]:
        """What stands under each heading of a block, or in a block without any."""
        template = _environment().get_template(self._name)
        texts: list[_Text] = []
        tokens = _parser().parse("".join(template.blocks[block](template.new_context(facts))))
        for opening, token in pairwise(tokens):
            line = re.sub(r"[ \n]+", " ", token.content)
            if opening.type == "heading_open":
                texts.append(_Text(line))
                continue
            texts = texts or [_Text()]
            if opening.type == "paragraph_open":
                (texts[-1].notes if opening.level else texts[-1].paragraphs).append(line)
            elif opening.type == "tr_open":
                texts[-1].rows.append([])
            elif opening.type in ("th_open", "td_open"):
                texts[-1].rows[-1].append(line)
        return texts


def _table(
    block: str, text: _Text, columns: Sequence[str], rows: Rows, name: str = "", **options: Any
) -> Table:
    caption = " ".join(text.paragraphs)
    return Table(name or block, text.title, columns, rows, caption, text.notes, **options)


def _headline(line: str) -> tuple[str, str]:
    """The strong text that a line begins with, and the rest; both without marks."""
    tokens = _inline(_parser().parseInline(line))
    end = [token.type for token in tokens].index("strong_close")
    number, rest = ("".join(t.content for t in part) for part in (tokens[:end], tokens[end:]))
    return number, rest.strip()


def templates(*, autoescape: bool) -> Any:
    """The environment of the templates in ``assets``; an unknown variable is an error."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(loader=PackageLoader(__package__, "assets"), autoescape=autoescape)
    environment.undefined = StrictUndefined
    # A line that holds only a condition leaves no blank line: it would part paragraphs.
    environment.trim_blocks = environment.lstrip_blocks = True
    return environment


@cache
def _environment() -> Any:
    environment = templates(autoescape=False)  # texts are Markdown; the page escapes them
    environment.filters["points"] = lambda number, digits=1: f"{number:.{digits}f}"
    environment.filters["signed"] = lambda n, digits=2: Value(n, digits=digits).signed_text(n)
    environment.filters["listed"] = _listed
    environment.tests["finite"] = math.isfinite
    return environment


def _listed(items: Sequence[Any]) -> str:
    *first, last = map(str, items or ["none"])
    return f"{', '.join(first)} and {last}" if first else last


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

    blocks = ["heading", "blockquote", "table"]
    marks = ["emphasis", "backticks", "link", "escape", "balance_pairs", "fragments_join"]
    # No lists and no HTML: a line may begin with "3. " or hold a "<".
    return MarkdownIt("zero").enable([*blocks, *marks])


def _inline(tokens: Any) -> list[Any]:
    return [child for token in tokens for child in token.children or ()]
