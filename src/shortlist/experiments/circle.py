"""Table 2 and Figure 3: losses for the top 2 on three overlapping classes around a circle."""

from __future__ import annotations

from typing import Any

import numpy as np

from shortlist.experiments import paper
from shortlist.experiments.circle_draws import EXPONENTS, KS, draw_part, scores, train_draw
from shortlist.experiments.comparison import accuracy_columns, accuracy_rows, mark_best
from shortlist.experiments.context import Context
from shortlist.experiments.methods import kernels_of
from shortlist.experiments.report import Chart, Figure, Section, Series, Table, Value
from shortlist.experiments.report.model import Cell
from shortlist.experiments.store import Record, Unit

TRUNCATED = "trunc-ent:2"
#: The truncated loss from several starts, beside the paper's way from softmax alone.
SEVERAL = "several"
_FIGURE_3 = {"smooth-topk-svm:1": 1, TRUNCATED: 2}


def run(
    context: Context,
    *,
    draws: int = 20,
    n_train: int = 200,
    n_test: int = 200_000,
    starts: int = 9,
    tol: float = 1e-3,
    max_epochs: int = 300,
    intercept: bool = False,
) -> Section:
    """Train the nine methods on several draws of 200 points and average.

    Parameters
    ----------
    draws : number of draws of training and validation points.
    n_train, n_test : points for training (and as many for validation), and for testing.
    starts : from how many starts the truncated loss is also minimised.
    intercept : whether the classifiers have one; the paper's have not.
    """
    if draws < 1 or n_train < 10 or n_test < 10 or starts < 2:
        raise ValueError("circle needs draws >= 1, n_train and n_test >= 10, starts >= 2")
    exponents: tuple[int, ...] = EXPONENTS
    if context.quick:
        draws, n_test, starts, exponents = min(draws, 2), min(n_test, 2000), 2, (-2, 1, 4)
    methods = list(paper.methods("circle"))
    common = {
        "seed": context.seed,
        "n_train": n_train,
        "n_test": n_test,
        "exponents": exponents,
        "tol": tol,
        "max_epochs": max_epochs,
        "intercept": intercept,
    }
    jobs = [(method, 1) for method in methods]
    if not intercept:
        jobs.append((TRUNCATED, starts))
    units = [
        Unit(
            f"circle, {paper.display_name(method)}, {n} starts, draw {draw + 1}"
            if n > 1
            else f"circle, {paper.display_name(method)}, draw {draw + 1}",
            {
                **common,
                "method": method,
                "starts": n,
                "draw": draw,
                # Do two classes have the same weights at the optimum? The notes say so.
                "exact_C": 1.0 if method in ("svm-multi", "lr-multi") else None,
            },
            train_draw,
            weight=3.0 if n > 1 else 1.0,
            kind=kernels_of(method),
        )
        for draw in range(draws)
        for method, n in jobs
    ]
    records = context.compute("circle", units)
    by_row: dict[str, list[Record]] = {}
    for place, (method, n) in enumerate(jobs):
        by_row[SEVERAL if n > 1 else method] = records[place :: len(jobs)]
    return _section(by_row, starts, common, context)


def _section(
    by_row: dict[str, list[Record]], starts: int, common: Record, context: Context
) -> Section:
    tested = {row: _tested(records) for row, records in by_row.items()}
    means = {row: values.mean(axis=0) for row, values in tested.items()}
    spreads = {row: values.std(axis=0) for row, values in tested.items()}
    methods = [row for row in by_row if row != SEVERAL]
    rows = accuracy_rows(
        "circle",
        {method: means[method].tolist() for method in methods},
        deviations={method: spreads[method].tolist() for method in methods},
        notes={"svm-multi": "†"},
    )
    if SEVERAL in by_row:
        rows = mark_best([*rows, _row_of_several(means[SEVERAL], spreads[SEVERAL], starts)])
    draws = len(by_row["lr-multi"])
    best_row = SEVERAL if SEVERAL in by_row else TRUNCATED
    way = f"best of {starts} starts, " if SEVERAL in by_row else ""
    return Section(
        name="circle",
        title="The circle: what a loss for the top 2 is good for",
        paragraphs=[
            "Three classes overlap around the unit circle. A linear classifier cannot follow all "
            "of it, so a loss must choose what to get right. Softmax spends its capacity on the "
            "first label; the truncated top-2 entropy does not care which of two labels comes "
            f"first and gets **{means[best_row][1]:.0f}%** of the pairs right where softmax gets "
            f"**{means['lr-multi'][1]:.0f}%**.",
        ],
        headlines=[
            (
                f"{means[best_row][1]:.1f}%",
                f"top-2, truncated entropy, {way}{draws} draws (paper: 96.1, one draw)",
            ),
            (f"{means['lr-multi'][1]:.1f}%", "top-2, softmax (paper: 81.7)"),
            (
                f"± {np.mean([s[1] for s in spreads.values()]):.1f}",
                f"points: how far a single draw of {common['n_train']} varies",
            ),
        ],
        tables=[
            Table(
                "accuracy",
                "Top-k accuracy (%) on the circle.",
                accuracy_columns("circle"),
                rows,
                caption=f"Table 2 of the paper. Ours: mean ± standard deviation over {draws} "
                f"draws of {common['n_train']} training and {common['n_train']} validation points, "
                f"tested on {common['n_test']}. The paper’s: one draw."
                + (" The last row is not in the paper." if SEVERAL in by_row else ""),
                notes=_notes(by_row),
            )
        ],
        figures=[_rings(by_row, common), _quantiles(tested, starts)],
        remarks=_remarks(by_row, tested, means, spreads, starts),
        protocol=[
            "Five segments of equal mass, the fourth three times as long; class probabilities as "
            "the paper states them. Equal mass is a reading of ours: with mass by length no linear "
            "classifier through the origin exceeds 64.3% top-1, where the paper has 65.7%.",
            f"C = 2^{min(common['exponents'])} to 2^{max(common['exponents'])}, chosen on the "
            f"validation points separately for each k; relative duality gap {common['tol']:g}.",
            "With an intercept. The paper’s classifiers have none."
            if common["intercept"]
            else "No intercept: with one, the one-vs-all SVM would reach 94% top-2 where the paper "
            "has 85.8%.",
            "Ties are counted by their chance of being broken well, not in the classifier’s favour "
            "as the paper’s definition has it: SVM-Multi’s would count twice.",
        ],
        data={
            "draws": {row: values.tolist() for row, values in tested.items()},
            "seconds": {row: sum(r["seconds"] for r in rs) for row, rs in by_row.items()},
        },
    )


def _tested(records: list[Record]) -> Any:
    """Test accuracy by draw and k, each k by the model chosen for it."""
    return np.array([[r["chosen"][str(k)]["test"][k - 1] for k in KS] for r in records])


def _row_of_several(mean: Any, spread: Any, starts: int) -> list[Cell]:
    name = f"{paper.display_name(TRUNCATED)}, {starts} starts"
    return [name, *(Value(m, deviation=s) for m, s in zip(mean, spread, strict=True))]


def _notes(by_row: dict[str, list[Record]]) -> list[str]:
    nearest = [r["nearest_at_optimum"] for r in by_row["svm-multi"]]
    tied = sum(distance < 1e-3 for distance in nearest)
    softmax = sum(r["nearest_at_optimum"] < 1e-3 for r in by_row["lr-multi"])
    return [
        "† Solved to a gap of 1e-7 at C = 1, the multiclass SVM gives two classes the same "
        f"weights, to a thousandth, on {tied} of {len(nearest)} draws (softmax on {softmax}). On "
        "such a draw it is left to the rest of the solver’s error which of the two ranks first, "
        "and with it the accuracy."
    ]


def _remarks(
    by_row: dict[str, list[Record]],
    tested: dict[str, Any],
    means: dict[str, Any],
    spreads: dict[str, Any],
    starts: int,
) -> list[str]:
    draws = len(by_row["lr-multi"])
    remarks = [
        f"**One draw says little.** Over {draws} draws the standard deviation of a row’s top-1 "
        f"accuracy is {np.mean([s[0] for s in spreads.values()]):.1f} points on average, of its "
        f"top-2 accuracy {np.mean([s[1] for s in spreads.values()]):.1f}. The paper’s table is one "
        "draw; a difference of a few points from it means nothing. " + _within_range(tested)
    ]
    if SEVERAL in tested:
        from_softmax, several = tested[TRUNCATED][:, 1], tested[SEVERAL][:, 1]
        stuck = int((several - from_softmax > 3.0).sum())
        outcome = (
            f"{stuck} of {draws} draws end more than 3 points below what the best of {starts} "
            "starts reaches"
            if stuck
            else f"here no draw ends more than 3 points below the best of {starts} starts"
        )
        remarks.append(
            "**Where the descent starts matters.** The paper calls the truncated loss mildly "
            "nonconvex, with solutions of the same quality from different starts. From softmax’s "
            f"solution alone, as in the paper, the mean top-2 accuracy is "
            f"{from_softmax.mean():.1f}% and the worst draw’s {from_softmax.min():.1f}%; with the "
            f"lowest objective of {starts} starts {several.mean():.1f}% and "
            f"{several.min():.1f}%: {outcome}."
        )
    model = _figure_draw(by_row)
    pair = by_row[TRUNCATED][model]["chosen"]["2"]["test"]
    remarks.append(
        f"Chosen for the top 2, the truncated loss’s first label is right in only {pair[0]:.1f}% "
        f"(figure; the paper’s: {paper.FIGURE_3[TRUNCATED][0]}%): it leaves the order of the two "
        "open. The table’s first column is the model chosen for the top 1."
    )
    return remarks


def _within_range(tested: dict[str, Any]) -> str:
    """Whether the paper's numbers could have come from one of our draws."""
    outside = []
    total = 0
    for method in paper.methods("circle"):
        for place, k in enumerate(KS):
            theirs, ours = paper.accuracy("circle", method, k), tested[method][:, place]
            total += 1
            if not ours.min() <= theirs <= ours.max():
                name = f"{paper.display_name(method)} at top-{k}"
                outside.append(f"{name} ({theirs}; ours {ours.min():.1f} to {ours.max():.1f})")
    text = f"{total - len(outside)} of its {total} numbers lie within the range of our draws"
    return f"{text}; outside: {', '.join(outside)}." if outside else f"{text}."


def _figure_draw(by_row: dict[str, list[Record]]) -> int:
    """The draw whose two models are nearest to the paper's figure."""
    distances = []
    for draw in range(len(by_row["lr-multi"])):
        found = [by_row[m][draw]["chosen"][str(k)]["test"] for m, k in _FIGURE_3.items()]
        theirs = [paper.FIGURE_3[m] for m in _FIGURE_3]
        distances.append(float(np.abs(np.subtract(found, theirs)).sum()))
    return int(np.argmin(distances))


def _rings(by_row: dict[str, list[Record]], common: Record) -> Figure:
    draw = _figure_draw(by_row)
    shown = {m: by_row[m][draw]["chosen"][str(k)] for m, k in _FIGURE_3.items()}

    def picture() -> Any:
        from matplotlib.figure import Figure as Canvas

        from shortlist.plots import CirclePredictionsDisplay

        X, y = draw_part("train", common["n_train"], draw, common["seed"])
        angles = np.linspace(0.0, 2 * np.pi, 1440, endpoint=False)
        directions = np.column_stack([np.cos(angles), np.sin(angles)])
        canvas = Canvas(figsize=(8.8, 5.4), layout="constrained")
        for (method, model), ax in zip(shown.items(), canvas.subplots(1, 2), strict=True):
            first, second = model["test"]
            CirclePredictionsDisplay.from_predictions(
                X,
                y + 1,
                angles,
                scores(directions, np.array(model["weights"])),
                classes=np.arange(1, 4),
                ax=ax,
                title=f"{paper.display_name(method)}\ntop-1 {first:.1f}%, top-2 {second:.1f}%",
            )
        return canvas

    (one, left), (two, right) = shown.items()
    theirs = {m: paper.FIGURE_3[m] for m in shown}
    caption = (
        f"Figure 3. Inside: the training points of draw {draw + 1}, the nearest to the paper’s "
        "picture. Rings: the first and the second label predicted in each direction. "
        f"Left, {paper.display_name(one)} (top-1 / top-2: {left['test'][0]:.1f} / "
        f"{left['test'][1]:.1f}; the paper {theirs[one][0]} / {theirs[one][1]}); right, "
        f"{paper.display_name(two)} ({right['test'][0]:.1f} / {right['test'][1]:.1f}; the paper "
        f"{theirs[two][0]} / {theirs[two][1]})."
    )
    return Figure("rings", caption, draw=picture)


def _quantiles(tested: dict[str, Any], starts: int) -> Figure:
    names = {
        "lr-multi": "softmax",
        "smooth-topk-svm:1": "smooth top-1 SVM",
        "topk-svm:2": "top-2 SVM",
        "topk-ent:2": "top-2 Ent",
        TRUNCATED: "truncated, from softmax",
        SEVERAL: f"truncated, {starts} starts",
    }
    charts = []
    for place, k in enumerate(KS):
        series = [
            Series(
                name,
                list(range(1, len(tested[row]) + 1)),
                sorted(tested[row][:, place].tolist()),
                color=number,
                markers=True,
            )
            for number, (row, name) in enumerate(names.items())
            if row in tested
        ]
        charts.append(
            Chart("Draw, by accuracy", "Accuracy (%)", series, title=f"Top-{k}", x_whole=True)
        )
    return Figure(
        "draws",
        "Test accuracy on every draw, each method’s draws from its worst to its best.",
        charts,
    )
