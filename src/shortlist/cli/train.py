"""``shortlist train``: fit a model and save it."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import typer

from shortlist._text import counted
from shortlist.cli.cluster import accuracies, fit, training_data
from shortlist.cli.data import how_read, labels_in
from shortlist.cli.liblinear import weights_hint
from shortlist.cli.models import (
    check_trainable,
    make_classifier,
    read_validation,
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
)
from shortlist.cli.output import (
    FAILED,
    INTERRUPTED,
    check_output,
    number,
    percent,
    report,
    save_somewhere,
    saved_line,
    say_data,
    told_of_compilation,
)


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
    if folds is not None:
        if model is not None:
            raise ValueError("-v measures accuracy and makes no model: leave out -o, or -v")
        if machine.given:
            raise ValueError(f"{machine.given[0]} is for training a model: leave it out, or -v")
        if warm_start is not None:
            raise ValueError("--warm-start is for training a model: leave it out, or -v")
        if checkpoints.checkpoint is not None:
            raise ValueError("-v keeps no checkpoints: leave out --checkpoint, or use cv")
        from shortlist.cli.cv import cross_validate_one

        cross_validate_one(data, cost, folds, loss, shape, solver, kernel, reading, output)
        return
    if model is None:
        raise ValueError("say where to save the model: -o MODEL (or -v N to cross-validate)")

    inputs = (data, validation, warm_start, reading.labels, reading.names)
    check_output(model, inputs=inputs, as_json=output.as_json)
    kept_in = checkpoints.parameters(output, (*inputs, model))
    given = (loss, shape, solver, kernel, machine, reading, output)
    trained, summary, kept = _fit(data, cost, validation, warm_start, *given, kept_in)

    saved = save_somewhere(trained.set_params(verbose=0), model, kept)
    interrupted = trained.result_.status == "interrupted"
    if interrupted:
        output.say(f"the model reached so far is saved in {saved}")
    else:
        checkpoints.remove()
    facts = {**asdict(summary), "model": saved}
    report(output, "train", facts, [*summary.lines(), saved_line(saved)], beside=model)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if saved != model:
        raise typer.Exit(FAILED)


def _fit(
    name: str,
    cost: float,
    validation: str | None,
    warm_start: str | None,
    loss: LossOptions,
    shape: ShapeOptions,
    solver: SolverOptions,
    kernel: KernelOptions,
    machine: MachineOptions,
    reading: ReadingOptions,
    output: OutputOptions,
    kept_in: dict[str, Any],
) -> tuple[Any, "Summary", dict[str, Any]]:
    """The fitted classifier, what there is to tell of it, and how its data was read."""
    parameters = estimator_parameters(loss, shape, solver, output)
    machine.check(kernel)
    start = None
    if warm_start is not None:
        from shortlist.cli.warm_start import open_start

        start = open_start(warm_start, parameters, kernel, machine)
    like = None if start is None else start.reading
    with training_data(name, reading, like, machine) as examples:
        if start is not None:
            start.check_labels(examples)
        labels = labels_in(examples)
        weights = class_weights(shape.class_weight, labels)
        limit = machine.memory_limit
        parameters.update(C=cost, class_weight=weights, memory_limit=limit, **kept_in)
        model = make_classifier(kernel, **parameters) if start is None else start.model
        if start is not None:
            model.set_params(**parameters, warm_start=True)
        check_trainable(model, examples)
        like = like or how_read(examples)
        held_out = read_validation(like, validation, reading) if validation is not None else None
        say_data(output, examples, weights_hint(loss.liblinear_type, weights, labels))
        if held_out is not None and not output.quiet:
            say_differences(held_out, like, labelled=True)
        with told_of_compilation(output) as compilation:
            fit(model, examples, machine)
        if start is not None:
            model.set_params(warm_start=False)
        remember_names(model, examples)
        measured = {"training": accuracies(model, examples)}
        if held_out is not None:
            measured["validation"] = accuracies(model, held_out)
    r = model.result_
    summary = Summary(
        *(name, examples.n_samples, examples.n_features, len(model.classes_)),
        *(model.loss, model.k, model.C),
        *(r.status, r.primal, r.dual, r.relative_gap, r.epochs, r.seconds),
        *(compilation.seconds, measured),
    )
    return model, summary, {"reading": like.to_dict()}


@dataclass(frozen=True)
class Summary:
    """What there is to tell of a training run: the fields are the report in JSON."""

    data: str
    n_samples: int
    n_features: int
    n_classes: int
    loss: str
    k: int
    C: float
    status: str
    primal: float
    dual: float
    relative_gap: float
    epochs: float
    seconds: float
    compile_seconds: float
    #: By the examples measured on, and by "top-1" and so on.
    accuracy: dict[str, dict[str, float]]

    def lines(self) -> list[str]:
        """The report for people."""
        seconds = f"{self.seconds:.2f} s"
        if self.compile_seconds > 0.1:
            seconds += f" and {self.compile_seconds:.1f} s of compiling"
        status = {"max_epochs": "not converged"}.get(self.status, self.status)
        epochs = counted(round(self.epochs, 1), "epoch")
        objective = f"objective {number(self.primal)}"
        if math.isfinite(self.relative_gap):
            objective += f", within {self.relative_gap:.2%} of the best possible (certified)"
        trained = f"{self.loss}, k={self.k}, C={self.C:g}: {status} after {epochs} ({seconds})"
        lines = [trained, objective]
        for name, shares in self.accuracy.items():
            shown = ", ".join(f"{k} {percent(share)}%" for k, share in shares.items())
            lines.append(f"{name} accuracy: {shown}")
        return lines
