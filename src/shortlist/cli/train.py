"""``shortlist train``: fit a model, here or on workers, anew or from a saved one, and save it."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shortlist._parameters import LOSS_PARAMETERS
from shortlist._text import Phrase, Setting, counted, few
from shortlist.cli.cv import check_folds
from shortlist.cli.data import how_read, is_named, labels_in, read_data, reader_options, say_data
from shortlist.cli.declare import changed
from shortlist.cli.models import (
    check_kind_of_labels,
    check_trainable,
    load_model,
    make_classifier,
    read_validation,
    reading_of,
    remember_names,
    say_differences,
)
from shortlist.cli.options import (
    CheckpointOptions,
    KernelOptions,
    LossOptions,
    MachineOptions,
    OutputOptions,
    ReadingOptions,
    ShapeOptions,
    SolverOptions,
    class_weights,
    estimator_parameters,
    weights_hint,
)
from shortlist.cli.output import (
    check_output,
    exit_unless,
    number,
    percent,
    print_json,
    print_line,
    report,
    save_somewhere,
    saved_line,
    told_of_compilation,
)
from shortlist.errors import DataError

if TYPE_CHECKING:
    from shortlist import TopKClassifier
    from shortlist.cli.ranking import Ranking
    from shortlist.datasets.containers import LabeledData
    from shortlist.datasets.how_read import Reading

_SHOWN_LABELS = 5
# What is told of the record of training.
_RECORD = ("status", "primal", "dual", "relative_gap", "epochs", "seconds")


def train(
    *,
    data: str,
    loss: LossOptions,
    cost: float = 1.0,
    shape: ShapeOptions,
    kernel: KernelOptions,
    solver: SolverOptions,
    machine: MachineOptions,
    checkpoints: CheckpointOptions,
    warm_start: str | None = None,
    folds: int | None = None,
    validation: str | None = None,
    reading: ReadingOptions,
    model: str | None = None,
    output: OutputOptions,
) -> None:
    """Train a classifier for its shortlist of k labels, and save it.

    Training minimises 1/2 |W|^2 + C times the sum of the losses, and stops with a certificate of
    how close to the best possible it is. There is no step size to choose. Ctrl-C saves the model
    as it then is and exits with code 130; SIGTERM and SIGHUP do the same, with codes 143 and 129.

    Examples:
      shortlist train letter -o letter.model --loss smooth_hinge -k 5 -C 0.1
      shortlist train data.svm.gz -o model -s 4 -c 10 -e 0.01 -B -1 -q
      shortlist train data.csv -o model --kernel rbf --gamma 0.1 -C 10
      shortlist train more.csv -o model2 --warm-start model
      zcat data.csv.gz | shortlist train - --format csv --label species -o model
    """
    given = (loss, shape, solver, kernel, machine, reading, output)
    if folds is not None:
        if model is not None:
            raise ValueError("-v measures accuracy and makes no model: leave out -o, or -v")
        for _, flag in changed(machine):
            raise ValueError(f"{flag} is for training a model: leave it out, or -v")
        if warm_start is not None:
            raise ValueError("--warm-start is for training a model: leave it out, or -v")
        if checkpoints.checkpoint is not None:
            raise ValueError("-v keeps no checkpoints: leave out --checkpoint, or use cv")
        if folds < 2:
            raise ValueError(f"-v must be 2 or more folds; got {folds}")
        with _prepared(data, cost, *given, folds=folds) as (trained, examples, _, _):
            _cross_validate(data, trained, examples, folds, output)
        return
    if model is None:
        raise ValueError("say where to save the model: -o MODEL (or -v N to cross-validate)")

    inputs = (data, validation, warm_start, reading.labels, reading.names)
    check_output(model, inputs=inputs, as_json=output.as_json)
    kept_in = checkpoints.parameters(output, (*inputs, model))
    prepared = _prepared(data, cost, *given, validation, warm_start, kept_in)
    with prepared as (trained, examples, held_out, like):
        facts = _fit(data, trained, examples, held_out, machine, output)

    saved = save_somewhere(trained, model, like)
    interrupted = facts["status"] == "interrupted"
    if interrupted:
        output.say(f"the model reached so far is saved in {saved}")
    else:
        checkpoints.remove()
    lines = [*_lines(facts), saved_line(saved)]
    report(output, "train", {**facts, "model": saved}, lines, beside=model)
    exit_unless(saved == model, interrupted)


@contextmanager
def _prepared(
    name: str,
    cost: float,
    loss: LossOptions,
    shape: ShapeOptions,
    solver: SolverOptions,
    kernel: KernelOptions,
    machine: MachineOptions,
    reading: ReadingOptions,
    output: OutputOptions,
    validation: str | None = None,
    warm_start: str | None = None,
    kept_in: dict[str, Any] | None = None,
    *,
    folds: int | None = None,
) -> Iterator[tuple[Any, LabeledData, LabeledData | None, Reading]]:
    """A classifier to be trained, its examples, those of --val, and how its data is read."""
    parameters = estimator_parameters(loss, shape, solver, output)
    machine.check(kernel)
    start, like = None, None
    if warm_start is not None:
        start, like = _open_start(warm_start, parameters, kernel, machine)
    with _training_data(name, reading, like, machine) as examples:
        if folds is not None:
            check_folds(folds, examples)
        if start is not None:
            _check_labels(start, str(warm_start), examples)
        labels = labels_in(examples)
        weights = class_weights(shape.class_weight, labels)
        limit = machine.memory_limit
        parameters.update(C=cost, class_weight=weights, memory_limit=limit, **(kept_in or {}))
        if start is None:
            model = make_classifier(kernel, **parameters)
        else:
            model = start.set_params(**parameters, warm_start=True)
        check_trainable(model, examples)
        like = like or how_read(examples)
        held_out = read_validation(like, validation, reading) if validation is not None else None
        say_data(output, examples, weights_hint(loss.liblinear_type, weights, labels))
        if held_out is not None:
            say_differences(output, held_out, like)
        yield model, examples, held_out, like
    if start is not None:
        model.set_params(warm_start=False)


def _fit(
    name: str,
    model: Any,
    examples: LabeledData,
    held_out: LabeledData | None,
    machine: MachineOptions,
    output: OutputOptions,
) -> dict[str, Any]:
    """Fit a classifier, here or on workers, and return what there is to tell of it."""
    with told_of_compilation(output) as compilation:
        if machine.workers is None or _with_workers(examples.X):
            model.fit(examples.X, examples.y, sample_weight=examples.weight)
        else:
            from shortlist import distributed

            where: dict[str, Any] = {"n_workers": machine.workers, "address": machine.ray}
            where["sample_weight"] = examples.weight
            distributed.fit(model, examples.X, examples.y, **where)
    remember_names(model, examples)
    measured = {"training": _accuracies(model, examples)}
    if held_out is not None:
        measured["validation"] = _accuracies(model, held_out)
    return {
        "data": name,
        "n_samples": examples.n_samples,
        "n_features": examples.n_features,
        "n_classes": len(model.classes_),
        **{name: getattr(model, name) for name in ("loss", "k", "C")},
        **{name: getattr(model.result_, name) for name in _RECORD},
        "compile_seconds": compilation.seconds,
        "accuracy": measured,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    """The report for people."""
    seconds = f"{facts['seconds']:.2f} s"
    if facts["compile_seconds"] > 0.1:
        seconds += f" and {facts['compile_seconds']:.1f} s of compiling"
    status = "not converged" if facts["status"] == "max_epochs" else facts["status"]
    epochs = counted(round(facts["epochs"], 1), "epoch")
    trained = f"{facts['loss']}, k={facts['k']}, C={facts['C']:g}: {status} after {epochs}"
    objective = f"objective {number(facts['primal'])}"
    if math.isfinite(facts["relative_gap"]):
        objective += f", within {facts['relative_gap']:.2%} of the best possible (certified)"
    lines = [f"{trained} ({seconds})", objective]
    for name, shares in facts["accuracy"].items():
        shown = ", ".join(f"{k} {percent(share)}%" for k, share in shares.items())
        lines.append(f"{name} accuracy: {shown}")
    return lines


def _cross_validate(
    name: str, model: Any, examples: LabeledData, folds: int, output: OutputOptions
) -> None:
    """LIBLINEAR's ``-v``: print the accuracy that one C has on held-out folds."""
    from sklearn.model_selection import check_cv

    from shortlist.cli.ranking import rank_labels

    rankings = []
    splitter = check_cv(folds, examples.y, classifier=True)
    with told_of_compilation(output):
        for trained_on, held_out in splitter.split(examples.X, examples.y):
            weight = None if examples.weight is None else examples.weight[trained_on]
            model.fit(examples.X[trained_on], examples.y[trained_on], sample_weight=weight)
            if model.result_.status == "interrupted":
                raise KeyboardInterrupt
            part = replace(examples, X=examples.X[held_out], y=examples.y[held_out])
            rankings.append(rank_labels(model, part, "expected"))
    ks = sorted({1, model.k})
    shares = {f"top-{k}": [ranking.accuracy(k) for ranking in rankings] for k in ks}
    means = {k: sum(of_folds) / folds for k, of_folds in shares.items()}
    if output.as_json:
        facts = {"loss": model.loss, "k": model.k, "C": model.C, "folds": shares}
        print_json("train", {"data": name, "accuracy": {"cross-validation": means}, **facts})
        return
    shown = ", ".join(f"{k} {percent(mean)}%" for k, mean in means.items())
    print_line(f"{folds}-fold cross-validation accuracy: {shown}")


def _open_start(
    path: str, parameters: dict[str, Any], kernel: KernelOptions, machine: MachineOptions
) -> tuple[TopKClassifier, Reading]:
    """The model of --warm-start, and how its data was read.

    The loss must be its own; C and all else may differ.
    """
    from shortlist import TopKClassifier

    if kernel.kernel is not None or machine.workers is not None:
        other = "--kernel" if kernel.kernel is not None else "--workers"
        raise ValueError(f"--warm-start does not go with {other}")
    saved = load_model(path)
    model = saved.model_for(parameters["k"])
    if not isinstance(model, TopKClassifier):
        raise DataError("has a kernel; --warm-start takes a model of linear scores", path=path)
    wanted = TopKClassifier(**parameters)
    loss = wanted.make_loss(model.multilabel_)
    if not wanted.starts_from_weights(model.multilabel_):
        hinge = "is trained by its duals, which model files do not keep: leave out --warm-start"
        raise ValueError(f"{wanted.loss} {hinge}")
    if model.make_loss(model.multilabel_) != loss:
        words = Phrase("was trained with ")
        for name in LOSS_PARAMETERS:
            if getattr(model, name) != getattr(wanted, name):
                words = words + Setting(name, getattr(model, name)) + ", "
        raise DataError(words + "and a warm start takes the same loss", path=path)
    return model, reading_of(saved)


def _check_labels(model: TopKClassifier, path: str, data: LabeledData) -> None:
    """Raise unless data has labels of the kind that the model of a file knows, and just these."""
    if check_kind_of_labels(model, data, path):
        return  # several labels: they are read for those of the model
    labels, known = labels_in(data), set(model.classes_.tolist())
    for some, told in (
        (labels - known, f"has labels that {path} has not"),
        (known - labels, f"lacks labels that {path} has"),
    ):
        if some:
            raise DataError(f"{told}: {few(sorted(some), _SHOWN_LABELS)}", path=data.source)


@contextmanager
def _training_data(
    name: str, options: ReadingOptions, like: Reading | None, machine: MachineOptions
) -> Iterator[LabeledData]:
    """The examples to train on. Workers hold those that they read until the context ends."""
    if not _workers_read(name, options, machine):
        on_disk = machine.memory_limit is not None
        yield read_data(name, options, "train", like=like, on_disk=on_disk)
        return
    from shortlist.datasets import with_class_names
    from shortlist.distributed.cluster import Cluster
    from shortlist.distributed.training import files_with_workers

    assert machine.workers is not None
    given = reader_options(name, options)
    if options.split is not None:
        given["split"] = options.split
    if options.labels is not None:
        given["labels"] = os.path.abspath(options.labels)
    cluster = Cluster(machine.workers, machine.ray)
    with files_with_workers(name, cluster, machine.memory_limit, given) as data:
        if options.names is not None:
            data = with_class_names({"all": data}, options.names)["all"]
        yield data


def _workers_read(name: str, options: ReadingOptions, machine: MachineOptions) -> bool:
    """Whether the workers read DATA themselves.

    They do where it may be too much for this process: a folder, or whatever is to stay below a
    limit on memory.
    """
    if machine.workers is None:
        return False
    reasons_against = {
        f"{name} is a data set by name, not a file": is_named(name),
        "standard input is read once": name == "-",
        "--scale takes its numbers from all examples": options.scale is not None,
        "--missing mean takes its numbers from all examples": options.missing == "mean",
    }
    reason = next((words for words, holds in reasons_against.items() if holds), None)
    if machine.memory_limit is None:
        return reason is None and os.path.isdir(name)
    if reason is not None:
        raise ValueError(f"with --memory-limit the workers read DATA themselves, but {reason}")
    return True


def _accuracies(model: Any, examples: LabeledData) -> dict[str, float]:
    """The share of examples whose shortlist holds a right label, for 1 and the model's k."""
    from shortlist.cli.ranking import rank_labels

    X, y = examples
    if _with_workers(X):
        rankings: list[Ranking] = X.apply(_ranked, lambda part: (model, examples.reading, y[part]))
    else:
        rankings = [rank_labels(model, examples)]
    n = sum(ranking.n_examples for ranking in rankings)
    return {
        f"top-{k}": sum(ranking.accuracy(k) * ranking.n_examples for ranking in rankings) / n
        for k in sorted({1, model.k})
    }


def _ranked(X: Any, model: Any, reading: Reading, y: Any) -> Ranking:
    """What a worker finds on its own rows."""
    from shortlist.cli.ranking import rank_labels
    from shortlist.datasets.containers import LabeledData

    return rank_labels(model, LabeledData(X, y, reading=reading))


def _with_workers(X: Any) -> bool:
    return hasattr(X, "apply")
