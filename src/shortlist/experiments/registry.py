"""The experiments by name, and the one function that runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from shortlist.experiments.paper import CITATION, read_table
from shortlist.experiments.parts import MissingData

if TYPE_CHECKING:
    from rich.console import Console

    from shortlist.experiments.report import Report, Section
    from shortlist.experiments.units import Context

ALL = "all"
_TITLE_OF_SEVERAL = "Loss functions for top-k error, recomputed"


class UnknownOption(TypeError):
    """An experiment was given an option that it does not have; the message lists those it has."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper that can be computed.

    ``home`` names the function that does it, "module:function" within this package. It is called
    with a :class:`~shortlist.experiments.units.Context` and options by name, and returns a
    :class:`~shortlist.experiments.report.Section`. ``data`` is "taken" or "needed" where it may or
    must be given, and ``hint`` says how. ``dataset`` is handed to it where one function serves
    several data sets; ``extra`` is the extra of the package that it needs.
    """

    name: str
    shows: str
    summary: str
    home: str
    data: str = ""
    dataset: str = ""
    extra: str = ""
    hint: str = ""

    @property
    def takes_data(self) -> bool:
        return self.data != ""

    @property
    def needs_data(self) -> bool:
        return self.data == "needed"

    def function(self) -> Callable[..., Section]:
        module, _, name = self.home.partition(":")
        try:
            function = getattr(import_module(f"shortlist.experiments.{module}"), name)
        except ImportError as error:
            # A missing extra is the user's to install; anything else would be a bug here.
            if not self.extra or (error.name or "").startswith("shortlist"):
                raise
            raise ModuleNotFoundError(
                f"{self.name} needs the package {error.name or self.extra}, which cannot be used. "
                f"Install it with: pip install 'shortlist[{self.extra}]'"
            ) from error
        return partial(function, dataset=self.dataset) if self.dataset else function

    def options(self) -> dict[str, Any]:
        """Its own options, beyond those of :func:`run`, and their defaults."""
        import inspect

        shared = {"context", "data", "test_data", "download", *(["dataset"] * bool(self.dataset))}
        parameters = inspect.signature(self.function()).parameters
        return {name: p.default for name, p in parameters.items() if name not in shared}


#: The experiments by name.
EXPERIMENTS = {name: Experiment(name, *others) for name, *others in read_table("experiments.csv")}


@dataclass(frozen=True)
class Outcome:
    """A report and the files it was written to; ``page`` is the one to open."""

    report: Report
    page: Path
    files: tuple[Path, ...]


def names() -> tuple[str, ...]:
    """What :func:`run` takes: every experiment, and "all"."""
    return (*EXPERIMENTS, ALL)


def run(
    name: str,
    output: str | os.PathLike[str],
    *,
    data: Any = None,
    test_data: str | os.PathLike[str] | None = None,
    download: bool = False,
    jobs: int | None = None,
    seed: int = 0,
    quick: bool = False,
    console: Console | None = None,
    progress: Console | None = None,
    **options: Any,
) -> Outcome:
    """Compute an experiment, or all, and write tables, figures and a report into a folder.

    Every finished part is stored in the folder at once. After a kill the same call goes on from
    there; a call with other parameters computes anew what depends on them.

    Parameters
    ----------
    name : one of :func:`names`.
    output : the folder; made if it does not exist.
    data : the path of the data, for an experiment that takes some; with "all" a mapping from
        experiments to paths. Experiments that need data and have none raise :class:`MissingData`;
        "all" leaves them out and says so.
    test_data : the path of the test examples, where ``data`` holds training examples only.
    download : whether data that LibSVM's site offers may be downloaded.
    jobs : number of processes; None takes as many as there are processors.
    seed : seeds whatever is random.
    quick : a far smaller version, to see that everything works. Its numbers mean little.
    console, progress : rich consoles to print the tables and the progress on; None prints nothing.
    **options : what the experiment itself offers, see ``EXPERIMENTS[name].options()``.
    """
    from joblib import cpu_count

    from shortlist.experiments.report import Report, folder
    from shortlist.experiments.report.terminal import show
    from shortlist.experiments.units import Context

    if name not in EXPERIMENTS and name != ALL:
        raise ValueError(f"the experiment must be one of {', '.join(names())}; got {name!r}")
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs must be a positive integer, got {jobs!r}")
    _check(name, data, options)
    context = Context(Path(output), jobs or cpu_count(), seed, quick, progress)
    wanted = [EXPERIMENTS[name]] if name != ALL else list(EXPERIMENTS.values())
    calls = {each: {**_data_options(each, data, test_data, download), **options} for each in wanted}
    sections: list[Section] = []
    skipped: list[tuple[str, str]] = []
    for section in _sections(calls, context, skipped if name == ALL else None):
        sections.append(section)
        if console is not None:
            show(section, console)
    title = sections[0].title if len(sections) == 1 else _TITLE_OF_SEVERAL
    report = Report(title, sections, _environment(context), skipped)
    files = folder.write(report, context.output)
    return Outcome(report, files[0], tuple(files))


def _sections(
    calls: Mapping[Experiment, Mapping[str, Any]],
    context: Context,
    skipped: list[tuple[str, str]] | None,
) -> Iterator[Section]:
    """Compute each section. Experiments that lack their data or a package go to ``skipped``."""
    from shortlist.experiments.table3 import ranks_section
    from shortlist.experiments.table3_section import Table3Result

    results = []
    try:
        for experiment, call in calls.items():
            try:
                section = experiment.function()(context, **call)
                results += [section.result] if isinstance(section.result, Table3Result) else []
                yield section
            except (MissingData, ModuleNotFoundError) as error:
                if skipped is None:
                    raise
                skipped.append((experiment.name, str(error)))
    except (KeyboardInterrupt, SystemExit):
        if context.progress is not None:
            kept = f"Stopped. What is finished is kept in {context.output}: "
            context.progress.print(kept + "the same command goes on there.", highlight=False)
        raise
    # Mean ranks over the data sets of Table 3, where there are several.
    if len(results) > 1:
        yield ranks_section(results)


def _check(name: str, data: Any, options: Mapping[str, Any]) -> None:
    """Whether data and options go with what is to run."""
    takers = [each.name for each in EXPERIMENTS.values() if each.takes_data]
    if isinstance(data, Mapping):
        if unknown := ", ".join(sorted(set(data) - set(takers))):
            raise ValueError(f"data names {unknown}; data is taken by {', '.join(takers)}")
    elif data is not None and name == ALL:
        raise ValueError("with all, data must say which experiment each file is for")
    elif data is not None and name not in takers:
        raise ValueError(f"{name} takes no data: it makes its own")
    if options and name == ALL:
        raise UnknownOption(f"all takes no options of its own, got {', '.join(options)}")
    for option in options:
        if option not in (known := EXPERIMENTS[name].options()):
            has = ", ".join(known) or "no options"
            raise UnknownOption(f"{name} has no option {option!r}; it has {has}")


def _data_options(
    experiment: Experiment, data: Any, test_data: Any, download: bool
) -> dict[str, Any]:
    """The options by which an experiment gets its data."""
    file = data.get(experiment.name) if isinstance(data, Mapping) else data
    files = {"data": file, "test_data": test_data if experiment.needs_data else None}
    given = {name: Path(each) for name, each in files.items() if each is not None}
    return given | ({"download": download} if experiment.needs_data else {})


def _environment(context: Context) -> dict[str, str]:
    import platform
    from datetime import datetime

    import numba
    import numpy as np

    from shortlist import __version__
    from shortlist._machine import processor_name

    environment = {
        "Paper": CITATION,
        "Shortlist": __version__,
        "Python": f"{platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}",
        "Machine": f"{processor_name()}, {os.cpu_count()} processors, {context.jobs} used",
        "Made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "Seed": str(context.seed),
    }
    if context.quick:
        environment["Note"] = "A quick version: its numbers mean little."
    return environment
