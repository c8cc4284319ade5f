"""The experiments by name, and the one function that runs them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

    from shortlist.experiments.report import Report, Section

ALL = "all"


class MissingData(ValueError):
    """An experiment needs data that was not given; the message says how to give it."""


@dataclass(frozen=True)
class Experiment:
    """A table or figure of the paper that can be computed.

    ``home`` names the function that does it, "module:function" within this package. It is called
    with a :class:`~shortlist.experiments.context.Context` and options by name, and returns a
    :class:`~shortlist.experiments.report.Section`.
    """

    name: str
    shows: str
    summary: str
    home: str
    takes_data: bool = False
    needs_data: bool = False

    def function(self) -> Callable[..., Section]:
        module, _, name = self.home.partition(":")
        try:
            return getattr(import_module(f"shortlist.experiments.{module}"), name)
        except ModuleNotFoundError as error:
            # A missing extra is the user's to install; anything else would be a bug here.
            if error.name and error.name.startswith("shortlist"):
                raise
            raise ModuleNotFoundError(
                f"{self.name} needs the package {error.name}, which is not installed"
            ) from error

    def options(self) -> dict[str, Any]:
        """Its own options, beyond those of :func:`run`, and their defaults."""
        import inspect

        shared = {"context", "data", "test_data", "download"}
        parameters = inspect.signature(self.function()).parameters
        return {name: p.default for name, p in parameters.items() if name not in shared}


_LIST = (
    Experiment(
        "circle",
        "Table 2, Figure 3",
        "Three overlapping classes on the circle: what losses made for the top 2 are good for.",
        "circle:run",
    ),
    Experiment(
        "letter",
        "Table 3",
        "Every method on Letter, which comes with the package.",
        "table3:letter",
    ),
    Experiment(
        "caltech101",
        "Table 3",
        "Every method on Caltech 101 Silhouettes.",
        "table3:caltech101",
        takes_data=True,
        needs_data=True,
    ),
    Experiment(
        "news20",
        "Table 3",
        "Every method on News 20.",
        "table3:news20",
        takes_data=True,
        needs_data=True,
    ),
    Experiment(
        "aloi",
        "Table 3",
        "Every method on ALOI, 1000 objects.",
        "table3:aloi",
        takes_data=True,
        needs_data=True,
    ),
    Experiment(
        "convergence",
        "Figures 1 and 2",
        "Duality gap and accuracy against time, and against FISTA and L-BFGS.",
        "convergence:run",
        takes_data=True,
    ),
    Experiment(
        "lambert",
        "Lambert W figure",
        "V(t) = W(exp t) and its two approximations; how exact and how fast ours is.",
        "lambert:run",
    ),
    Experiment(
        "losses",
        "Losses",
        "Every loss along a line through score space.",
        "loss_slices:run",
    ),
    Experiment(
        "calibration",
        "Table 1",
        "Which losses are top-k calibrated, recomputed by search for counterexamples.",
        "calibrated:run",
    ),
    Experiment(
        "finetune",
        "Table 5",
        "Fine-tuning a network with top-k losses.",
        "finetune:run",
        takes_data=True,
    ),
)
EXPERIMENTS: dict[str, Experiment] = {experiment.name: experiment for experiment in _LIST}


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
    name : str
        One of :func:`names`.
    output : path-like
        The folder; made if it does not exist.
    data : path-like, or a mapping from experiments to path-likes for "all"
        The data file of an experiment that takes one. Experiments that need data and have none
        raise :class:`MissingData`; "all" leaves them out and says so.
    test_data : path-like
        The test examples, where ``data`` is a file with training examples only.
    download : bool
        Whether data that LibSVM's site offers may be downloaded.
    jobs : int or None
        Number of processes; None takes as many as there are processors.
    seed : int
        Seeds whatever is random.
    quick : bool
        A far smaller version, to see that everything works. Its numbers mean little.
    console, progress : rich.console.Console or None
        Where to print the tables, and the progress; None prints nothing.
    **options
        What the experiment itself offers, see ``EXPERIMENTS[name].options()``.
    """
    from shortlist.experiments.context import Context
    from shortlist.experiments.progress import reporter_for
    from shortlist.experiments.report import Report, files
    from shortlist.experiments.report.terminal import show
    from shortlist.experiments.workers import default_jobs

    if name not in EXPERIMENTS and name != ALL:
        raise ValueError(f"the experiment must be one of {', '.join(names())}; got {name!r}")
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise ValueError(f"jobs must be a positive integer, got {jobs!r}")
    folder = Path(output)
    jobs = jobs or default_jobs()
    context = Context(folder, jobs, seed, quick, reporter_for(progress))
    given = _Given(data, test_data, download)
    wanted = list(EXPERIMENTS) if name == ALL else [name]
    calls = {}
    for one in wanted:
        calls[one] = {**given.for_experiment(EXPERIMENTS[one], name), **options}
        if name != ALL:
            _check_options(EXPERIMENTS[one], options)
    if name == ALL and options:
        raise TypeError(f"all takes no options of its own, got {', '.join(options)}")
    sections: list[Section] = []
    skipped: list[tuple[str, str]] = []
    try:
        for one in wanted:
            try:
                section = EXPERIMENTS[one].function()(context, **calls[one])
            except (MissingData, ModuleNotFoundError) as error:
                if name != ALL:
                    raise
                skipped.append((one, str(error)))
                continue
            sections.append(section)
            if console is not None:
                show(section, console)
    except KeyboardInterrupt:
        if progress is not None:
            progress.print(
                f"Stopped. What is finished is kept in {folder}: the same command goes on there.",
                highlight=False,
            )
        raise
    title = (
        sections[0].title if len(sections) == 1 else "Loss functions for top-k error, recomputed"
    )
    report = Report(title, sections, _environment(jobs, seed, quick), skipped)
    page, *others = files.write(report, folder)
    return Outcome(report, page, (page, *others))


@dataclass(frozen=True)
class _Given:
    """The data given for a run, and which experiment gets what of it."""

    data: Any
    test_data: Any
    download: bool

    def for_experiment(self, experiment: Experiment, name: str) -> dict[str, Any]:
        if isinstance(self.data, Mapping):
            unknown = set(self.data) - {e.name for e in _LIST if e.takes_data}
            if unknown:
                takers = ", ".join(e.name for e in _LIST if e.takes_data)
                raise ValueError(
                    f"data names {', '.join(sorted(unknown))}; data is taken by {takers}"
                )
            data = self.data.get(experiment.name)
        else:
            data = self.data
            if data is not None and name == ALL:
                raise ValueError("with all, data must say which experiment each file is for")
        if not experiment.takes_data:
            if data is not None:
                raise ValueError(f"{experiment.name} takes no data: it makes its own")
            return {}
        given: dict[str, Any] = {"data": None if data is None else Path(data)}
        if experiment.needs_data:
            given["test_data"] = None if self.test_data is None else Path(self.test_data)
            given["download"] = self.download
        return given


def _check_options(experiment: Experiment, options: Mapping[str, Any]) -> None:
    if not options:
        return
    known = experiment.options()
    for option in options:
        if option not in known:
            raise TypeError(
                f"{experiment.name} has no option {option!r}; "
                f"it has {', '.join(known) or 'no options'}"
            )


def _environment(jobs: int, seed: int, quick: bool) -> dict[str, str]:
    import platform
    from datetime import datetime

    import numba
    import numpy as np

    from shortlist import __version__
    from shortlist.experiments.paper import CITATION

    environment = {
        "Paper": CITATION,
        "Shortlist": __version__,
        "Python": f"{platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}",
        "Machine": f"{_processor()}, {os.cpu_count()} processors, {jobs} used",
        "Made": datetime.now().astimezone().strftime("%Y-%m-%d %H:%M %Z"),
        "Seed": str(seed),
    }
    if quick:
        environment["Note"] = "A quick version: its numbers mean little."
    return environment


def _processor() -> str:
    import platform

    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
