"""Table 3: every method on a data set, each column by the model chosen for that k."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shortlist.experiments import paper
from shortlist.experiments.comparison import Dataset, family_starts, mean_ranks
from shortlist.experiments.descents import STEPS_SHOWN, DescentTask
from shortlist.experiments.parts import Parts, known_parts, read_parts
from shortlist.experiments.protocol import PathResult, PathTask, code_kind, relative_cost
from shortlist.experiments.report import Cell, Prose, Section, Table, Value
from shortlist.experiments.table3_section import DatasetOutcome, Table3Result, section
from shortlist.experiments.units import Context, Unit

#: Passes over the data at each C. Gradient steps of the truncated losses are cheaper, and many.
MAX_EPOCHS = 300
MAX_DESCENT_EPOCHS = 2000
#: The quick version: examples of each part, exponents of C, passes over the data.
_QUICK_EXAMPLES, _QUICK_EXPONENTS, _QUICK_EPOCHS = 600, (-4, -2, 0, 2), 300
#: The paper's range of C.
_MIN_C, _MAX_C = 1e-5, 1e3
_RANKS_PROSE = Prose("ranks")


def run(
    context: Context,
    *,
    dataset: str = "features",
    data: Path | None = None,
    test_data: Path | None = None,
    download: bool = False,
    methods: Sequence[str] | str | None = None,
    tol: float = 1e-3,
    max_epochs: int = MAX_EPOCHS,
    scale: str | None = None,
) -> Section:
    """Run Table 3's methods on a data set and put the outcome beside the paper's, if it has any.

    dataset : one of the paper's, a stand-in, or any name for examples from files.
    methods : some of the paper's methods, a list or with commas between them; all by default.
    tol : the relative duality gap to train to.
    max_epochs : passes over the data after which a model counts as not converged.
    scale : "standard", "minmax" or "l2", for examples from files; the paper does not scale.
    """
    table = Dataset.named(dataset)
    table = replace(table, methods=_check_methods(table, methods))
    if scale is not None and data is None:
        raise ValueError("scale goes with data from files")
    parts = (
        read_parts(data, test_data, seed=context.seed, scale=scale)
        if data is not None
        else known_parts(dataset, seed=context.seed, download=download)
    )
    if context.quick:
        parts = parts.subsample(_QUICK_EXAMPLES, context.seed)
        max_epochs = min(max_epochs, _QUICK_EPOCHS)
    table = table.with_classes(parts.n_classes)
    tasks = {m: _task(context, table, m, parts, tol, max_epochs) for m in table.methods}
    units = [_unit(table, task, parts) for task in tasks.values()]
    if dataset == "letter" and data is None:
        units += _descent_units(context, tasks, parts)
    computed = context.compute(dataset, units)
    results = dict(zip(tasks, computed, strict=False))
    outcome = DatasetOutcome(table, parts, results, computed[len(tasks) :])
    if not context.quick:
        outcome = replace(outcome, on_paper_grid=_on_paper_grid(context, outcome, tasks))
    return section(outcome, tol, explain=not context.quick)


def _check_methods(dataset: Dataset, methods: Sequence[str] | str | None) -> tuple[str, ...]:
    known = dataset.methods
    wanted = methods.split(",") if isinstance(methods, str) else methods
    for method in wanted or ():
        if method not in known:
            raise ValueError(f"methods must be some of {', '.join(known)}; got {method!r}")
    if wanted is not None and not wanted:
        raise ValueError("methods must not be empty")
    return tuple(method for method in known if wanted is None or method in wanted)


def _task(
    context: Context, dataset: Dataset, method: str, parts: Parts, tol: float, max_epochs: int
) -> PathTask:
    task = PathTask(method, dataset.ks, parts.fingerprint, tol, max_epochs, context.seed)
    if context.quick:
        return replace(task, exponents=_QUICK_EXPONENTS, extended_exponents=(-4, 2))
    return replace(task, max_epochs=MAX_DESCENT_EPOCHS) if paper.is_truncated(method) else task


def _unit(dataset: Dataset, task: PathTask, parts: Parts, suffix: str = "") -> Unit:
    name = f"{dataset.key}, {paper.display_name(task.method)}{suffix}"
    return Unit(name, task, parts, relative_cost(task.method), code_kind(task.method))


def _descent_units(context: Context, tasks: Mapping[str, PathTask], parts: Parts) -> list[Unit]:
    Cs = (1.0,) if context.quick else (1.0, 10.0, 100.0, 1000.0)
    steps_shown = STEPS_SHOWN[:4] if context.quick else STEPS_SHOWN
    found = {
        f"letter, gradient descent, {paper.display_name(m)}": DescentTask(
            m, t.data, Cs, steps_shown, t.tol, MAX_EPOCHS, t.seed
        )
        for m, t in tasks.items()
        if paper.is_truncated(m)
    }
    return [Unit(name, t, parts, 1.5, code_kind(t.method)) for name, t in found.items()]


def _on_paper_grid(
    context: Context, outcome: DatasetOutcome, tasks: Mapping[str, PathTask]
) -> dict[str, PathResult]:
    """The convex methods with a far number again, on the grid the paper seems to have used.

    Its values are a decade apart in lambda = 1 / (C n), over the paper's range of C. Only where the
    examples and the validation part are the paper's: else the numbers differ in any case.
    """
    far = {method for method, _ in outcome.far_places if not paper.is_truncated(method)}
    if outcome.parts.val is None or not far or outcome.other_facts:
        return {}
    n = outcome.parts.X_train.shape[0]
    low, high = math.ceil(math.log10(_MIN_C * n)), math.floor(math.log10(_MAX_C * n))
    grid = tuple(range(low, high + 1))
    again = {
        m: replace(task, exponents=grid, extended_exponents=(low, high), per_decade=1, scale=1 / n)
        for m, task in tasks.items()
        if m in far
    }
    units = [_unit(outcome.dataset, t, outcome.parts, ", the paper’s grid") for t in again.values()]
    computed = context.compute(f"{outcome.dataset.key}, the paper’s grid", units)
    return dict(zip(again, computed, strict=True))


def ranks_section(results: Sequence[Table3Result]) -> Section:
    """Mean ranks of the methods over several data sets, ours beside the paper's.

    Data sets that the paper does not have enter a table of their own, which has all of them.
    """
    of_paper = [each for each in results if Dataset.named(each.dataset).in_paper]
    tables = [_ranks_table("ranks", of_paper, beside_paper=True)] if len(of_paper) > 1 else []
    if len(of_paper) < len(results):
        tables.append(_ranks_table("all-ranks", results, beside_paper=False))
    return _RANKS_PROSE.section("ranks", {"n": len(results)}, tables=tables)


def _ranks_table(name: str, results: Sequence[Table3Result], *, beside_paper: bool) -> Table:
    columns = {}
    for k in (1, 3, 5, 10):
        if any(k not in row for each in results for row in each.accuracy.values()):
            continue
        ours = [{m: row[k] for m, row in r.accuracy.items()} for r in results]
        named = [(r.dataset, r.accuracy) for r in results if beside_paper]
        theirs = [{m: paper.accuracy(key, m, k) for m in rows} for key, rows in named]
        columns[f"Top-{k}"] = mean_ranks(ours), mean_ranks(theirs)
    methods = list(columns["Top-1"][0])
    rows: list[list[Cell]] = [
        [paper.display_name(m), *(_rank(m, *each) for each in columns.values())] for m in methods
    ]
    titles = [Dataset.named(result.dataset).title for result in results]
    facts, groups = {"titles": titles, "beside_paper": beside_paper}, family_starts(methods)
    return _RANKS_PROSE.table("ranks", ["Method", *columns], rows, facts, name=name, groups=groups)


def _rank(method: str, ours: Mapping[str, float], theirs: Mapping[str, float]) -> Value:
    best = ours[method] == min(ours.values())
    paper_best = bool(theirs) and theirs[method] == min(theirs.values())
    return Value(ours[method], theirs.get(method), best=best, paper_best=paper_best)
