"""Let docstrings be written for people who read them as text.

Three habits of such text mean something else in reStructuredText: ``|x|`` is a norm here, not a
substitution; ``coef_`` is an attribute, not a reference; and an indented paragraph is a formula or
a table of names, not a quotation.
"""

import re

_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_MARKUP = re.compile(r"(?<!\\)\||(?<=\w)_(?!\w)")
# A line that starts a construct whose indented lines belong to it, not a formula.
_OWNER = re.compile(r"(\s*(\.\. |:\w|[-*] |\d+\. |>>> )|.*::$)")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def escape(line: str) -> str:
    """Escape bars and trailing underscores outside code."""
    parts = _CODE.split(line)
    parts[::2] = [_MARKUP.sub(r"\\\g<0>", part) for part in parts[::2]]
    return "".join(parts)


def as_literals(lines: list[str]) -> list[str]:
    """Escape, and turn indented paragraphs after ordinary ones into literal blocks."""
    shown: list[str] = []
    literal: int | None = None  # the indentation of the paragraph that owns the literal block
    owner: int | None = None  # the same for a construct whose body is left as it is
    before = ""  # the last line that is not blank
    session = False  # within an interactive example
    for number, line in enumerate(lines):
        if not line.strip():
            shown.append(line)
            session = False
            continue
        session = session or line.lstrip().startswith(">>> ")
        indent = _indent(line)
        if literal is not None and indent <= literal:
            literal = None
        if owner is not None and indent <= owner:
            owner = None
        if literal is None and owner is None:
            if _OWNER.match(line):
                owner = indent
            elif number and not lines[number - 1].strip() and before and indent > _indent(before):
                literal = _indent(before)
                shown += [f"{' ' * literal}::", ""]
        as_it_is = literal is not None or session or line.lstrip().startswith(".. ")
        shown.append(line if as_it_is else escape(line))
        before = line
    return shown


def _process(app, what, name, obj, options, lines):
    lines[:] = as_literals(lines)


def setup(app):
    # After napoleon, which turns sections into field lists.
    app.connect("autodoc-process-docstring", _process, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
