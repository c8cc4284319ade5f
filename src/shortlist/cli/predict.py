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

    Examples:
      shortlist predict letter.model letter --k 3 | head
      shortlist predict model new.csv --proba -o shortlists.csv
    """
    from shortlist.cli.models import Columns, load_model, model_for
    from shortlist.cli.output import check_output

    if output != "-":
        check_output(output)
    saved = load_model(model)
    length = _checked_length(saved, k)
    trained = model_for(saved, length)
    if probabilities and not hasattr(trained, "predict_proba"):
        raise ValueError(
            f"{model}: a model trained with {trained.loss}, k={trained.k} gives scores but no "
            "probabilities: leave out --proba"
        )
    examples = Columns.of_model(saved).read(data, reading, part="test", labelled=False)
    blocks = _shortlists(trained, examples.X, length, probabilities)
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
        if with_scores:
            shown = ([f"{score:.7g}" for score in row] for row in scores)
            writer.writerows(mine + its for mine, its in zip(labels, shown, strict=True))
        else:
            writer.writerows(labels)


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
