"""``shortlist cv``: choose C for every k by cross-validation."""

from __future__ import annotations

from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any

from shortlist.cli.data import how_read, labels_in, read_data, say_data
from shortlist.cli.models import (
    check_trainable,
    chosen_for,
    read_validation,
    remember_names,
)
from shortlist.cli.options import (
    CheckpointOptions,
    LossName,
    LossOptions,
    OutputOptions,
    ReadingOptions,
    ShapeOptions,
    SolverOptions,
    class_weights,
    estimator_parameters,
    parse_numbers,
)
from shortlist.cli.output import (
    check_output,
    exit_unless,
    percent,
    print_json,
    print_line,
    print_table,
    save_somewhere,
    saved_line,
    told_of_compilation,
)

if TYPE_CHECKING:
    from shortlist.datasets.containers import LabeledData


@dataclass(frozen=True)
class SearchOptions:
    """Which values of C to try, and how each is measured."""

    costs: str | None = None
    ks: str | None = None
    folds: int | None = None
    validation: str | None = None
    extensions: int | None = None
    refine: int = 0
    patience: int | None = None
    shots: int | None = None
    repeats: int | None = None
    jobs: int = 1

    @property
    def on_folds(self) -> bool:
        """Whether accuracy is measured on folds."""
        return self.shots is None and self.validation is None

    def parameters(self) -> dict[str, Any]:
        """Parameters of TopKClassifierCV without ``ks``; ValueError for options in conflict.

        What is not given is left out, and so has the default of the class.
        """
        if self.folds is not None and self.folds < 2:
            raise ValueError(f"-v must be 2 or more folds; got {self.folds}")
        if self.folds is not None and self.shots is not None:
            raise ValueError("-v and --shots both say what to train on: give one of them")
        if self.jobs == 0:
            raise ValueError("--jobs must be 1 or more, or -1 for all processors; got 0")
        if self.repeats is not None and self.shots is None:
            raise ValueError("--repeats goes with --shots")
        given = {
            "Cs": None if self.costs is None else parse_numbers(self.costs, "--Cs", float),
            "cv": self.folds if self.on_folds else None,
            # A range that was asked for stays as it is, unless more is asked for.
            "max_extensions": 0 if self.costs and self.extensions is None else self.extensions,
            "patience": self.patience,
            "shots": self.shots,
            "repeats": self.repeats,
        }
        said = {name: value for name, value in given.items() if value is not None}
        return {**said, "refine": self.refine, "n_jobs": self.jobs}


def cv(
    *,
    data: str,
    wanted: SearchOptions,
    loss: LossOptions,
    also: list[str] | None = None,
    shape: ShapeOptions,
    solver: SolverOptions,
    checkpoints: CheckpointOptions,
    reading: ReadingOptions,
    model: str | None = None,
    output: OutputOptions,
) -> None:
    """Measure top-k accuracy for a range of C, and choose the best C for every k.

    Prints a table with a row for each C and a column for each k; the best of a column is marked
    with a star. Fits along C start from one another, so that a whole range costs a few fits.
    Ctrl-C, SIGTERM and SIGHUP end the search; C is then chosen from the fits that were finished.

    Examples:
      shortlist cv letter --Cs 0.01:100:5 --val letter
      shortlist cv data.csv --loss smooth_hinge -k 5 --also entropy:5 -v 10 -o model
      shortlist cv embeddings.npz --Cs 1e-6:1e5:12 --refine 2 --patience 3 -o model
    """
    inputs = (data, wanted.validation, reading.labels, reading.names)
    if model is not None:
        check_output(model, inputs=inputs, stdout=False)
    parameters = {
        **estimator_parameters(loss, shape, solver, output),
        **checkpoints.parameters(output, (*inputs, model)),
        **wanted.parameters(),
        "losses": _families(loss, also),
    }
    ks = None if wanted.ks is None else parse_numbers(wanted.ks, "--ks", int)

    examples = read_data(data, reading, "train")
    if wanted.on_folds:
        check_folds(wanted.folds, examples)
    measured = None
    held_out: dict[str, Any] = {}
    if wanted.validation is not None:
        measured = read_validation(how_read(examples), wanted.validation, reading)
        held_out = {"X_val": measured.X, "y_val": measured.y}

    from shortlist import TopKClassifierCV

    labels = labels_in(examples)
    weights = class_weights(shape.class_weight, labels)
    if ks is None:
        usual = signature(TopKClassifierCV).parameters["ks"].default
        ks = [k for k in sorted({*usual, loss.k}) if k < len(labels)] or [1]
    search = TopKClassifierCV(class_weight=weights, ks=tuple(ks), **parameters)
    check_trainable(search, examples)
    say_data(output, examples)
    if measured is not None:
        output.say(measured.describe())
    with told_of_compilation(output):
        search.fit(examples.X, examples.y, sample_weight=examples.weight, **held_out)
    remember_names(search, examples)
    saved = None
    if model is not None:
        saved = save_somewhere(search, model, how_read(examples))
    if not search.interrupted_:
        checkpoints.remove()
    best = {k: float(search.cv_results_[f"mean_top{k}"].max()) for k in search.ks_}
    if output.as_json:
        measured_on = "cross-validation" if measured is None else "validation"
        facts = {
            "data": data,
            "accuracy": {measured_on: {f"top-{k}": share for k, share in best.items()}},
            "chosen": {f"top-{k}": chosen_for(search, k) for k in search.ks_},
            "table": search.cv_results_,
            "model": saved,
        }
        print_json("cv", facts)
    else:
        _print_tables(search)
        for k, share in best.items():
            chosen = search.losses_[k]
            family = f"{chosen['loss']}, k={chosen['k']}, " if also else ""
            print_line(f"best for top-{k}: {family}C={search.C_[k]:.4g} with {percent(share)}%")
        if saved is not None:
            print_line(saved_line(saved))
    exit_unless(saved == model, search.interrupted_)


def check_folds(wanted: int | None, examples: LabeledData) -> None:
    """Raise now what dividing the examples into folds would refuse; None is the usual number."""
    import numpy as np
    from scipy import sparse
    from sklearn.model_selection import check_cv

    folds = check_cv(wanted).get_n_splits()
    if sparse.issparse(examples.y):
        if folds > examples.n_samples:
            raise ValueError(f"-v {folds}: there are only {examples.n_samples} examples")
        return
    largest = int(np.unique(examples.y, return_counts=True)[1].max())
    if folds > largest:
        raise ValueError(f"-v {folds}: the largest class has only {largest} examples")


def _families(loss: LossOptions, also: list[str] | None) -> list[dict[str, Any]] | None:
    """The ``losses`` of TopKClassifierCV; None without ``--also``."""
    if not also:
        return None
    families: list[dict[str, Any]] = [{"loss": loss.name, "k": loss.k}]
    for entry in also:
        name, colon, length = entry.partition(":")
        if name not in list(LossName):
            known = ", ".join(LossName)
            raise ValueError(f"--also: unknown loss {name!r}; choose one of {known}")
        if colon and not length.isdecimal():
            raise ValueError(f"--also must be LOSS or LOSS:K such as smooth_hinge:5; got {entry!r}")
        families.append({"loss": name, "k": int(length) if colon else 1})
    return families


def _print_tables(search: Any) -> None:
    """One table for each loss, a row for each C, a column for each k."""
    table, ks = search.cv_results_, search.ks_
    chosen = {k: search.chosen_row(k) for k in ks}
    folds = (table[f"std_top{ks[0]}"] > 0).any()

    def cell(row: int, k: int) -> str:
        spread = f"±{100 * table[f'std_top{k}'][row]:.1f}" if folds else ""
        star = "* " if row == chosen[k] else ""
        return f"{star}{percent(table[f'mean_top{k}'][row])}{spread}"

    columns = ["C", *(f"top-{k} %" for k in ks), "seconds"]
    for number, rows in search.rows_by_family().items():
        family = search.families_[number]
        costs = [f"{C:.4g}" for C in table["C"][rows]]
        seconds = [f"{mean:.2f}" for mean in table["mean_seconds"][rows]]
        shares = [[cell(row, k) for row in rows] for k in ks]
        cells = zip(costs, *shares, seconds, strict=True)
        places = [(i, j) for i, row in enumerate(rows) for j, k in enumerate(ks, 1)]
        best = [(i, j) for i, j in places if rows[i] == chosen[ks[j - 1]]]
        title = f"{family['loss']}, k={family['k']}"
        print_table(title, columns, cells, text_columns=(), best=best)
