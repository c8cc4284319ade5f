"""Draw the pictures of the documentation: ``python docs/figures.py [FOLDER]``, into docs/_static.

They are kept in the repository, because the searches behind them take minutes. Needs matplotlib.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import diagrams
import matplotlib.pyplot as plt
import numpy as np

from shortlist import TopKClassifierCV, losses
from shortlist.calibration import regret_bound
from shortlist.datasets import load_letter
from shortlist.plots import CalibrationSimplexDisplay, RegretBoundDisplay, TopKCurveDisplay

HERE = Path(__file__).parent
#: Wide enough for a phone's column, and no wider: inches.
WIDTH = 5.2


def simplex_of(loss: losses.Loss, title: str) -> Callable[[bool], plt.Figure]:
    def draw(quick: bool) -> plt.Figure:
        steps = 4 if quick else 54
        return CalibrationSimplexDisplay.from_loss(loss, n_steps=steps, title=title).figure_

    return draw


def regret_of_losses(quick: bool) -> plt.Figure:
    k = 2
    shown = {
        "softmax": losses.get("softmax"),
        "top-2 entropy α": losses.get("entropy", k=k),
        "top-2 entropy β": losses.get("entropy", k=k, variant="beta"),
        "truncated top-2 entropy": losses.get("truncated_entropy", k=k),
        "smooth top-2 hinge α, γ = 0.5": losses.get("smooth_hinge", k=k, smoothing=0.5),
        "smooth top-2 hinge α, γ = 2": losses.get("smooth_hinge", k=k, smoothing=2.0),
        "smooth top-2 hinge α, γ = 8": losses.get("smooth_hinge", k=k, smoothing=8.0),
        "smooth top-2 hinge β, γ = 2": losses.get(
            "smooth_hinge", k=k, variant="beta", smoothing=2.0
        ),
        "top-2 hinge α": losses.get("hinge", k=k),
        "top-2 hinge β": losses.get("hinge", k=k, variant="beta"),
        "one-vs-all logistic": losses.get("ova_logistic"),
        "one-vs-all smooth hinge, γ = 1": losses.get("ova_smooth_hinge"),
        "one-vs-all hinge": losses.get("ova_hinge"),
    }
    options = {"n_random": 0, "n_descents": 0, "epsilons": [0.2, 0.8]} if quick else {}
    shown = dict(list(shown.items())[:2]) if quick else shown
    figure, ax = plt.subplots(figsize=(WIDTH, 6.4), layout="constrained")
    RegretBoundDisplay.from_losses(shown, k=k, n_classes=4, ax=ax, **options)
    ax.set_xlabel("Excess of the top-2 error ε")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.12), fontsize="small", ncols=2)
    return figure


def regret_of_smoothings(quick: bool) -> plt.Figure:
    options = {"n_random": 0, "n_descents": 0, "smoothings": [1.0, 2.0]} if quick else {}
    figure, ax = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
    RegretBoundDisplay.from_smoothings((1, 2, 3), n_classes=5, ax=ax, **options)
    return figure


#: Weights of two ranks, the first twice the second.
RANKS = (2 / 3, 1 / 3)


def regret_beyond(quick: bool) -> plt.Figure:
    """The losses that the paper does not have, beside the hinges alpha and beta."""
    k, gamma = 2, 2.0
    others = {
        "α": {"k": k},
        "β": {"k": k, "variant": "beta"},
        "α as printed": {"k": k, "variant": "printed"},
        "ranks 2:1, α": {"variant": "alpha", "rank_weights": RANKS},
        "ranks 2:1, β": {"variant": "beta", "rank_weights": RANKS},
    }
    shown = {
        f"smooth, {n}": losses.get("smooth_hinge", smoothing=gamma, **p) for n, p in others.items()
    }
    shown |= {f"plain, {name}": losses.get("hinge", **p) for name, p in list(others.items())[2:]}
    shown["smooth, mixed α"] = losses.get("mixed_smooth_hinge", k=k, smoothing=gamma)
    shown["entropies, mixed α"] = losses.get("mixed_entropy", k=k)
    options = {"n_random": 0, "n_descents": 0, "epsilons": [0.2, 0.8]} if quick else {}
    shown = dict(list(shown.items())[:2]) if quick else shown
    figure, ax = plt.subplots(figsize=(WIDTH, 5.0), layout="constrained")
    RegretBoundDisplay.from_losses(shown, k=k, n_classes=4, ax=ax, **options)
    ax.set_xlabel("Excess of the top-2 error ε")
    ax.legend(loc="upper center", bbox_to_anchor=(0.45, -0.14), fontsize="small", ncols=2)
    return figure


def regret_of_families(quick: bool) -> plt.Figure:
    """The bound against the smoothing, for every family of smooth hinges."""
    k, epsilon = 2, 0.1
    families = {
        "α": ("smooth_hinge", {"k": k}),
        "β": ("smooth_hinge", {"k": k, "variant": "beta"}),
        "α as printed": ("smooth_hinge", {"k": k, "variant": "printed"}),
        "ranks 2:1, β": ("smooth_hinge", {"variant": "beta", "rank_weights": RANKS}),
        "mixed α, k = 1, 2": ("mixed_smooth_hinge", {"k": k}),
        "one-vs-all": ("ova_smooth_hinge", {}),
    }
    smoothings = [1.0, 2.0] if quick else 2.0 ** np.arange(-3.0, 4.5, 0.5)
    options = {"n_random": 0, "n_descents": 0} if quick else {}
    values = {
        title: [
            regret_bound(
                losses.get(name, smoothing=gamma, **parameters),
                epsilon,
                k=k,
                n_classes=4,
                **options,
            ).value
            / epsilon**2
            for gamma in smoothings
        ]
        for title, (name, parameters) in list(families.items())[: 2 if quick else None]
    }
    figure, ax = plt.subplots(figsize=(WIDTH, 3.6), layout="constrained")
    ylabel = f"Smallest excess risk / ε², at ε = {epsilon:g}"
    RegretBoundDisplay(smoothings, values, xlabel="Smoothing γ", ylabel=ylabel, log_x=True).plot(ax)
    return figure


def curves_on_letter(quick: bool) -> plt.Figure:
    """Top-k accuracy of three losses, each with the best of five C on validation for its own k."""
    letter = load_letter()
    shown = {"softmax (k = 1)": 1, "top-5 entropy": 5, "top-10 entropy": 10}
    rows, Cs = slice(None), [0.01, 0.1, 1.0, 10.0, 100.0]
    if quick:
        shown, rows, Cs = {"softmax (k = 1)": 1}, slice(300), [0.1]
    figure, ax = plt.subplots(figsize=(WIDTH, 3.3), layout="constrained")
    for name, k in shown.items():
        model = TopKClassifierCV("entropy", k=k, Cs=Cs, ks=(k,), max_extensions=0, random_state=0)
        model.fit(
            letter.X_train[rows], letter.y_train[rows], X_val=letter.X_val, y_val=letter.y_val
        )
        TopKCurveDisplay.from_estimator(model, letter.X_test, letter.y_test, name=name, ax=ax)
    # Equal steps up are equal factors fewer errors: near 100% the curves would merge otherwise.
    ticks = [0.5, 0.75, 0.9, 0.95, 0.98, 0.99]
    ax.set_yscale("logit")
    ax.set_yticks(ticks, [f"{tick:.0%}" for tick in ticks])
    ax.yaxis.minorticks_off()
    ax.set(
        title="Letter: losses for long lists give better long lists",
        xlabel="Length of the shortlist k",
    )
    return figure


FIGURES: dict[str, Callable[[bool], plt.Figure]] = {
    "simplex-hinge.png": simplex_of(losses.get("hinge"), "Multiclass hinge, k = 1"),
    "simplex-hinge-beta.png": simplex_of(
        losses.get("hinge", k=2, variant="beta"), "Top-2 hinge β, k = 2"
    ),
    "simplex-smooth-hinge.png": simplex_of(
        losses.get("smooth_hinge", k=2, variant="beta"), "Smooth top-2 hinge β, γ = 1, k = 2"
    ),
    "way-of-the-data.svg": diagrams.way_of_the_data,
    "block.svg": diagrams.block,
    "dual-sets.svg": diagrams.dual_sets,
    "letter-curves.svg": curves_on_letter,
    "regret-losses.svg": regret_of_losses,
    "regret-smoothing.svg": regret_of_smoothings,
    "regret-families.svg": regret_of_families,
    "regret-beyond.svg": regret_beyond,
}


def draw_all(folder: Path, *, quick: bool = False) -> list[Path]:
    """Draw every figure into a folder; quickly means coarsely, to see that it works."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, draw in FIGURES.items():
        path = folder / name
        # Without a date and with fixed names inside, the same picture is the same file.
        with plt.rc_context({"svg.hashsalt": "shortlist"}):
            figure = draw(quick)
            metadata = {"Date": None} if path.suffix == ".svg" else {}
            figure.savefig(path, dpi=140, metadata=metadata)
            plt.close(figure)
        written.append(path)
    return written


if __name__ == "__main__":
    plt.switch_backend("agg")
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=HERE / "_static")
    draw_all(parser.parse_args().folder)
