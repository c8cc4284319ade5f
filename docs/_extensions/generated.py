"""Directives whose text is computed from the package: losses, commands, experiments.

{losses-table}        the table of losses
{command-reference}   every command with its options
{experiments-table}   what ``shortlist reproduce`` knows
{results-table}       a table that ``shortlist reproduce`` wrote, from the folder results
{results-ranks}       mean ranks of the methods over several such tables
"""

import csv
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

RESULTS = Path(__file__).parents[1] / "results"


class _Computed(SphinxDirective):
    """Markdown from a function, read as if it stood in the page."""

    compute: Callable[..., str]
    option_spec: ClassVar = {
        "columns": lambda text: [name.strip() for name in text.split(",")],
        "file": str.strip,
        "files": str.split,
    }

    def run(self):
        container = nodes.Element()
        text = type(self).compute(**self.options)
        lines = StringList(text.splitlines(), source=f"<{self.name}>")
        self.state.nested_parse(lines, self.content_offset, container, match_titles=True)
        return container.children


def losses_table(columns: list[str] | None = None) -> str:
    from losses_table import markdown

    return markdown(columns)


def experiments_table() -> str:
    from shortlist.experiments import EXPERIMENTS

    lines = ["| name | of the paper | what | data |", "|---|---|---|---|"]
    for each in EXPERIMENTS.values():
        data = "built in" if not each.extra else f"made (extra `{each.extra}`)"
        if each.takes_data:
            data = "yours" if each.needs_data else "yours, if you like"
        lines.append(f"| `{each.name}` | {each.shows} | {each.summary} | {data} |")
    return "\n".join(lines)


#: Two numbers count as different if a paired test has a smaller p than this.
SIGNIFICANT = 0.05


def results_table(file: str) -> str:
    """Our accuracies with standard errors, behind a stroke the paper's where there are any.

    The best of a column is in bold. Marks tell what paired tests say, where their tables are there.
    """
    rows, columns = _results(file)
    best = {name: max(float(row[name] or 0) for row in rows) for name in columns}
    of_softmax, of_best = (
        _tests(file.replace("accuracy", f"against-{rival}")) for rival in ("softmax", "best")
    )

    def cell(row: dict[str, str], name: str) -> str:
        if not row[name]:
            return "–"
        ours = f"{float(row[name]):.1f}"
        shown = f"**{ours}**" if ours == f"{best[name]:.1f}" else ours
        place = row["Method"], name
        shown += _mark(of_softmax.get(place)) + _equal_mark(of_best.get(place))
        shown += f" ± {float(row[f'{name} standard error']):.1f}"
        theirs = row.get(f"{name} paper")
        return f"{shown} / {float(theirs):.1f}" if theirs else shown

    lines = [f"| method | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for row in rows:
        lines.append(f"| {row['Method']} | {' | '.join(cell(row, name) for name in columns)} |")
    return "\n".join(lines)


def _tests(file: str) -> dict[tuple[str, str], tuple[float, float]]:
    """Differences and p values of a table of paired tests, by method and column."""
    if not (RESULTS / file).is_file():
        return {}
    rows, columns = _results(file)
    return {
        (row["Method"], name): (float(row[name]), float(row[f"{name} p"]))
        for row in rows
        for name in columns
        if row[f"{name} p"]
    }


def _mark(test: tuple[float, float] | None) -> str:
    """Better or worse than softmax, if it can be told."""
    if test is None or test[1] >= SIGNIFICANT:
        return ""
    return "⁺" if test[0] > 0 else "⁻"


def _equal_mark(test: tuple[float, float] | None) -> str:
    """Not to be told from the best of the column."""
    return "°" if test is not None and test[1] > SIGNIFICANT else ""


def results_ranks(files: list[str]) -> str:
    """The mean rank of each method over several tables; the best in bold."""
    from shortlist.experiments.comparison import mean_ranks

    tables = [_results(file) for file in files]
    columns = [name for name in tables[0][1] if all(name in names for _, names in tables)]
    ranks = {
        name: mean_ranks([{row["Method"]: float(row[name]) for row in rows} for rows, _ in tables])
        for name in columns
    }
    lines = [f"| method | {' | '.join(columns)} |", "|---" * (1 + len(columns)) + "|"]
    for method in ranks[columns[0]]:
        cells = [
            f"**{mean[method]:.1f}**"
            if mean[method] == min(mean.values())
            else f"{mean[method]:.1f}"
            for mean in ranks.values()
        ]
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _results(file: str) -> tuple[list[dict[str, str]], list[str]]:
    """The rows of a table of accuracies, and the names of its columns with ours."""
    with open(RESULTS / file, newline="", encoding="utf-8") as text:
        rows = list(csv.DictReader(text))
    return rows, [name for name in rows[0] if name.startswith("Top-") and " " not in name]


def command_reference() -> str:
    import typer

    from shortlist.cli.app import app

    group = typer.main.get_command(app)
    parts = [_command(name, command) for name, command in group.commands.items()]
    return "\n\n".join(parts)


def _command(name: str, command) -> str:
    arguments = [p for p in command.params if p.param_type_name == "argument"]
    options = [p for p in command.params if p.param_type_name == "option"]
    usage = " ".join([f"shortlist {name}", *(_metavar(p) for p in arguments), "[OPTIONS]"])
    parts = [f"## {name}", f"```text\n{usage}\n```", _text(command.help)]
    entries = [f"`{_metavar(p)}`\n: {_help(p)}" for p in arguments]
    entries += [f"`{_flags(p)}`\n: {_help(p)}" for p in options if not p.hidden]
    return "\n\n".join(parts + entries)


def _metavar(parameter) -> str:
    return parameter.metavar or parameter.name.upper()


def _flags(parameter) -> str:
    flags = ", ".join([*parameter.opts, *parameter.secondary_opts])
    return flags if parameter.is_flag else f"{flags} {parameter.metavar or ''}".rstrip()


def _help(parameter) -> str:
    text = " ".join((parameter.help or "").split()).replace("|", r"\|").replace("*", r"\*")
    default = parameter.default
    if parameter.param_type_name == "option" and not parameter.is_flag and default is not None:
        shown = getattr(default, "value", default)
        text += f" Default: `{shown}`."
    return text


def _text(help_text: str) -> str:
    """Paragraphs as they are, examples as code."""
    shown = []
    for paragraph in inspect.cleandoc(help_text).split("\n\n"):
        if "\n  " in paragraph:
            title, _, commands = paragraph.partition("\n")
            code = "\n".join(line.strip() for line in commands.splitlines())
            shown.append(f"{title}\n\n```console\n{code}\n```")
        else:
            shown.append(paragraph.replace("|", r"\|").replace("*", r"\*"))
    return "\n\n".join(shown)


def setup(app):
    for name, function in [
        ("losses-table", losses_table),
        ("experiments-table", experiments_table),
        ("results-table", results_table),
        ("results-ranks", results_ranks),
        ("command-reference", command_reference),
    ]:
        app.add_directive(name, type(name, (_Computed,), {"compute": staticmethod(function)}))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
