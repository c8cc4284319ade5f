"""``shortlist evaluate``: how often the shortlist holds the label."""

from dataclasses import asdict
from typing import Any

from shortlist._parameters import MAX_TIED_SHARE
from shortlist.cli.data import read_data
from shortlist.cli.models import (
    Classes,
    checked_length,
    chosen_for,
    load_model,
    reading_of,
    say_differences,
)
from shortlist.cli.options import USUAL_TIES, OutputOptions, ReadingOptions, Ties, parse_numbers
from shortlist.cli.output import percent, print_json, print_line, print_table


def evaluate(
    *,
    model: str,
    data: str,
    ks: str | None = None,
    k: int | None = None,
    classes: int = 10,
    ties: Ties = USUAL_TIES,
    reading: ReadingOptions,
    output: OutputOptions,
) -> None:
    """Measure top-k accuracy on labelled data: for every k, and class by class.

    Top-k accuracy is the share of examples whose label is among the k with the largest scores. A
    file from cv holds a model for every k: each line then says whose C it is.

    Examples:
      shortlist evaluate letter.model letter
      shortlist evaluate model test.svm --ks 1,5,10 --classes 20
    """
    from shortlist.cli.ranking import Rankings

    trained = load_model(model, scores_only=True)
    lengths = _lengths(ks, trained)
    listed = checked_length(trained, k)
    classes_known = Classes.of_model(trained, reading.names)
    like = reading_of(trained)
    examples = read_data(data, reading, "test", like=like)
    rankings = Rankings(trained, examples, ties)
    reports = rankings.at(listed).per_class(listed)
    say_differences(output, examples, like)
    _warn(rankings, lengths)
    hardest = sorted(reports, key=lambda report: (report.topk, report.top1))
    shown = hardest if classes < 0 else hardest[:classes]
    if output.as_json:
        facts = {
            "model": model,
            "data": data,
            "n_samples": examples.n_samples,
            "n_unknown_labels": rankings.at(1).unknown,
            "ties": ties,
            "accuracy": {"test": {f"top-{k}": rankings.at(k).accuracy(k) for k in lengths}},
            "chosen": {f"top-{k}": chosen_for(trained, k) for k in lengths},
            "k": listed,
            "classes": [_entry(r, classes_known) for r in reports if r in shown],
        }
        print_json("evaluate", facts)
        return
    if not output.quiet:
        print_line(examples.describe())
    _print_curve(rankings, lengths, trained)
    if shown:
        title = "All classes" if len(shown) == len(reports) else f"The {len(shown)} hardest classes"
        _print_classes(title, shown, listed, classes_known)


def _lengths(text: str | None, model: Any) -> list[int]:
    if text is None:
        return sorted({*range(1, min(10, len(model.classes_)) + 1), int(model.k)})
    lengths = parse_numbers(text, "--ks", int)
    return sorted({checked_length(model, length, "--ks") for length in lengths})


def _warn(rankings: Any, lengths: list[int]) -> None:
    import warnings

    first = rankings.at(1)
    if first.unknown:
        warnings.warn(
            f"{first.unknown} of {first.n_examples} examples have labels that the model does not "
            "know; they count as errors",
            stacklevel=2,
        )
    decided = {k: rankings.at(k).decided_by_ties(k) for k in lengths}
    k = max(decided, key=lambda length: decided[length])
    if first.ties == "optimistic" and decided[k] > MAX_TIED_SHARE:
        warnings.warn(
            f"ties decide {decided[k]:.1%} of the examples at k={k}, and all are counted as right; "
            "--ties expected gives a figure that ties cannot inflate",
            stacklevel=2,
        )


def _print_curve(rankings: Any, lengths: list[int], model: Any) -> None:
    of_several = model.model_for(lengths[0]) is not model
    rows = []
    for k in lengths:
        ranking = rankings.at(k)
        share = ranking.accuracy(k)
        missed = round((1 - share) * ranking.n_examples, 1)
        row = [str(k), percent(share), percent(1 - share), f"{missed:g}"]
        if of_several:
            chosen = chosen_for(model, k)
            row.append(f"{chosen['loss']}, k={chosen['k']}, C={chosen['C']:.4g}")
        rows.append(row)
    columns = ["k", "accuracy %", "error %", "missed", *(["model"] if of_several else [])]
    print_table("Top-k accuracy", columns, rows, text_columns=(4,))


def _entry(report: Any, known: Any) -> dict[str, Any]:
    """A class's report for JSON, with names where there are any."""
    entry = asdict(report)
    if known.names:
        entry["name"] = known.names.get(report.label)
        entry["mistaken_for_name"] = known.names.get(report.mistaken_for)
    return entry


def _print_classes(title: str, reports: list[Any], k: int, known: Any) -> None:
    rows = []
    for report in reports:
        mistaken = "-"
        if report.mistakes:
            mistaken = f"{known.shown(report.mistaken_for)} ({report.mistakes})"
        accuracies = [percent(report.top1)] + ([percent(report.topk)] if k > 1 else [])
        rows.append([known.shown(report.label), str(report.n_samples), *accuracies, mistaken])
    columns = ["label", "examples", "top-1 %"] + ([f"top-{k} %"] if k > 1 else [])
    columns.append("most often mistaken for")
    print_table(title, columns, rows, text_columns=(0, len(columns) - 1))
