"""The words of sections: Jinja templates in ``assets``, one for each experiment.

A template holds blocks, which are called by their names. Blank lines part the paragraphs of a
block; within a paragraph the lines are joined, unless they begin with |, as rows of a table do. The
block of a table, figure, remark or section begins with its title: a paragraph of its own, with # in
front. A paragraph is Markdown in a small way: **strong**, *emphasis*, `code` and [links](#anchor).
"""

import math
import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from shortlist.experiments.report.model import Figure, Remark, Rows, Section, Table, Value
from shortlist.plots.charts import Panel

Facts = Mapping[str, Any]
#: A statement such as "k > 1" is not to be broken over two lines.
_RELATION = re.compile(r"\b([a-zA-Z]) (=|<|>) (?=\d)")


class Prose:
    """The texts of an experiment, ``assets/<name>.md.j2``, and what is made of them.

    ``facts`` are the variables of a block.
    """

    def __init__(self, name: str) -> None:
        self._name = f"{name}.md.j2"

    def paragraphs(self, block: str, **facts: Any) -> list[str]:
        """The paragraphs of a block; those left empty are left out."""
        template = _environment().get_template(self._name)
        text = "".join(template.blocks[block](template.new_context(facts)))
        parts = re.split(r"\n\s*\n|\n(?=\|)", text)
        found = (re.sub(r"[ \n]+", " ", part).strip() for part in parts)
        return [paragraph for paragraph in found if paragraph]

    def remarks(self, block: str, facts: Facts) -> list[Remark]:
        """The remarks of a block, if any: each begins with its topic."""
        told = "\n".join(["", *self.paragraphs(block, **facts)]).split("\n# ")[1:]
        return [Remark(topic, " ".join(texts)) for topic, *texts in map(str.splitlines, told)]

    def figure(self, block: str, panels: Sequence[Panel], facts: Facts, name: str = "") -> Figure:
        title, texts = self._titled(block, facts)
        return Figure(name or block, title, " ".join(texts), panels)

    def table(
        self, block: str, columns: Sequence[str], rows: Rows, facts: Facts, **options: Any
    ) -> Table:
        """A table. Paragraphs with > in front are its notes, the others its caption."""
        name, (title, texts) = options.pop("name", block), self._titled(block, facts)
        notes = [text.removeprefix("> ") for text in texts if text.startswith("> ")]
        caption = " ".join(text for text in texts if not text.startswith(("> ", "|")))
        return Table(name, title, columns, rows, caption, notes, **options)

    def written_table(self, block: str, facts: Facts, **options: Any) -> Table:
        """A table of words. Its block holds the headings, then the rows; |-| begins a group."""
        lines = [text for text in self.paragraphs(block, **facts) if text.startswith("|")]
        starts = [place for place, line in enumerate(lines) if line == "|-|"]
        rows = [line.split("|")[1:-1] for line in lines if line != "|-|"]
        cells = [[cell.strip() for cell in row] for row in rows]
        groups = [place - 1 - number for number, place in enumerate(starts)]
        return self.table(block, cells[0], cells[1:], facts, groups=groups, **options)

    def section(self, name: str, facts: Facts, **parts: Any) -> Section:
        """A section: the block "section", and "headlines", "protocol", "remarks" if there are any.

        A headline is a number between ** and what it is.
        """
        title, paragraphs = self._titled("section", facts)
        known = _environment().get_template(self._name).blocks
        headlines, protocol = (
            self.paragraphs(block, **facts) if block in known else []
            for block in ("headlines", "protocol")
        )
        told = [(n, what.strip()) for _, n, what in (each.split("**") for each in headlines)]
        if "remarks" in known:
            parts["remarks"] = self.remarks("remarks", facts)
        return Section(name, title, paragraphs, headlines=told, protocol=protocol, **parts)

    def _titled(self, block: str, facts: Facts) -> tuple[str, list[str]]:
        title, *texts = self.paragraphs(block, **facts)
        return title.removeprefix("# "), texts


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

    rules = ["emphasis", "backticks", "link", "escape", "balance_pairs", "fragments_join"]
    return MarkdownIt("zero").enable(rules)


def _inline(tokens: Any) -> list[Any]:
    return [child for token in tokens for child in token.children or ()]
