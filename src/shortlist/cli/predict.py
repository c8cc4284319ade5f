"""``shortlist predict``: the shortlist of every example."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Annotated, Any

from typer import Option

from shortlist.cli.options import OUTPUT, DataArgument, ModelArgument, ReadingOptions
from shortlist.cli.sets import SetOptions, set_blocks

PREDICTION = "Predictions"


def predict(
    *,
    model: ModelArgument,
    data: DataArgument,
    k: Annotated[
        int | None,
        Option(
            "-k",
            "--k",
            metavar="K",
            rich_help_panel=PREDICTION,
            show_default=False,
            help="Length of the shortlists. Without it, the k that the model was trained for.",
        ),
    ] = None,
    probabilities: Annotated[
        bool,
        Option(
            "--proba",
            rich_help_panel=PREDICTION,
            help="Print probabilities in place of scores; for softmax (entropy at k=1) and "
            "ova_logistic.",
        ),
    ] = False,
    scores: Annotated[
        bool,
        Option("--scores/--no-scores", rich_help_panel=PREDICTION, help="Whether to print scores."),
    ] = True,
    sets: SetOptions,
    reading: ReadingOptions,
    output: Annotated[
        str,
        Option(
            "-o",
            "--output",
            metavar="FILE",
            rich_help_panel=OUTPUT,
            help="Where to write; - is standard output. A file appears whole or not at all.",
        ),
    ] = "-",
    as_json: Annotated[
        bool,
        Option(
            "--json",
            rich_help_panel=OUTPUT,
            help='Write one JSON object a line, {"labels": [...], "scores": [...]}, not CSV.',
        ),
    ] = False,
) -> None:
    """Print the k most likely labels of every example, best first, and their scores.

    The output is CSV with a header: label_1 to label_k, score_1 to score_k, a line for each
    example in the order of DATA. Labels in DATA are not looked at, and need not be there.

    With --coverage each list is as long as its example needs, for the right label to be in it with
    the probability given. Fields beyond the end of a list are empty.

    Examples:
      shortlist predict letter.model letter --k 3 | head
      shortlist predict model new.csv --proba -o shortlists.csv
      shortlist predict letter.model letter --coverage 0.95 --calibrate letter
    """
    from shortlist.cli.models import Columns, load_model, model_for
    from shortlist.cli.output import check_output

    if output != "-":
        check_output(output, inputs=(model, data, sets.calibrate))
    adaptive = sets.wanted
    if adaptive and k is not None:
        raise ValueError("--k and --coverage or --average-size exclude each other")
    saved = load_model(model)
    length = _checked_length(saved, k)
    trained = model_for(saved, length)
    if probabilities and not hasattr(trained, "predict_proba"):
        raise ValueError(
            f"{model}: a model trained with {trained.loss}, k={trained.k} gives scores but no "
            "probabilities: leave out --proba"
        )
    calibrated = sets.around(trained, reading) if adaptive else None
    examples = Columns.of_model(saved).read(data, reading, part="test", labelled=False)
    if calibrated is None:
        blocks = _shortlists(trained, examples.X, length, probabilities)
    else:
        # The header tells the length of the longest list: all are made before one is written.
        made = list(set_blocks(calibrated, examples.X, probabilities))
        length = max((len(mine) for labels, _ in made for mine in labels), default=0)
        blocks = iter(made)
    write = _write_json if as_json else _write_csv
    with _opened(output) as file:
        write(file, blocks, length, scores)


def _checked_length(model: Any, k: int | None) -> int:
    most = len(model.classes_)
    if k is None:
        return int(model.k)
    if not 1 <= k <= most:
        raise ValueError(f"--k must be from 1 to {most}, the model's number of classes; got {k}")
    return k


def _shortlists(model: Any, X: Any, k: int, probabilities: bool) -> Iterator[tuple[list, list]]:
    """Yield labels and scores, a block of rows at a time."""
    import numpy as np

    from shortlist.cli.models import score_blocks
    from shortlist.estimators.shortlists import top_columns

    for rows, scores in score_blocks(model, X):
        values = model.predict_proba(X[rows]) if probabilities else scores
        columns = top_columns(scores, k)
        yield model.classes_[columns].tolist(), np.take_along_axis(values, columns, 1).tolist()


def _write_csv(
    file: IO[str], blocks: Iterator[tuple[list, list]], k: int, with_scores: bool
) -> None:
    import csv

    writer = csv.writer(file, lineterminator="\n")
    header = [f"label_{i}" for i in range(1, k + 1)]
    if with_scores:
        header += [f"score_{i}" for i in range(1, k + 1)]
    writer.writerow(header)
    for labels, scores in blocks:
        for mine, its in zip(labels, scores, strict=True):
            beyond = [""] * (k - len(mine))
            shown = [f"{score:.7g}" for score in its] + beyond if with_scores else []
            writer.writerow(mine + beyond + shown)


def _write_json(
    file: IO[str], blocks: Iterator[tuple[list, list]], k: int, with_scores: bool
) -> None:
    for labels, scores in blocks:
        for mine, its in zip(labels, scores, strict=True):
            entry = {"labels": mine, "scores": its} if with_scores else {"labels": mine}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")


@contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    if path == "-":
        yield sys.stdout
        return
    from shortlist._files import atomic_write

    with atomic_write(path) as part, open(part, "w", encoding="utf-8", newline="") as file:
        yield file
