"""The published results agree with each other: tables in docs/results, results.md and README."""

import csv
import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "docs" / "results"
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
DATASETS = sorted(
    path.name.removesuffix("-accuracy.csv") for path in RESULTS.glob("*-accuracy.csv")
)
COLUMNS = ("Top-1", "Top-3", "Top-5", "Top-10")
TITLES = {
    "letter": "Letter",
    "caltech101": "Caltech 101 Silhouettes",
    "news20": "News 20, another version",
    "countries": "Countries of cities, a stand-in",
    "languages": "Languages of words, a stand-in",
    "glyphs": "Glyphs, a stand-in for ALOI",
}
# Those whose examples are the paper's own.
OF_THE_PAPER = ("letter", "caltech101")
AGAINST_BEST = ("caltech101", "countries", "glyphs", "languages", "letter", "news20")
# README's words for the rows it shows.
IN_README = {
    "one-vs-all SVM": "SVM-OVA",
    "multiclass SVM": "SVM-Multi",
    "softmax": "LR-Multi",
    "smooth top-1 SVM": "smooth top-1 SVM",
    "smooth top-5 SVM": "smooth top-5 SVM",
    "top-10 entropy": "top-10 Ent",
}


def rows_of(name):
    with open(RESULTS / name, newline="", encoding="utf-8") as text:
        return {row["Method"]: row for row in csv.DictReader(text)}


def number(cell):
    return float(cell) if cell not in ("", "–") else None


def section(title):
    """The text of results.md from this heading to the next."""
    return re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", PAGE, re.M | re.S).group(1)


def test_the_readme_shows_letters_table():
    table = re.search(r"\| loss \| top-1 \|.*?\n\n", README, re.S).group(0)
    lines = [
        [cell.strip() for cell in line.strip("| ").split("|")]
        for line in table.strip().splitlines()[2:]
    ]
    ours = rows_of("letter-accuracy.csv")
    assert [line[0] for line in lines] == list(IN_README)
    best = {name: max(float(row[name]) for row in ours.values()) for name in COLUMNS}
    for words, *cells in lines:
        row = ours[IN_README[words]]
        for name, cell in zip(COLUMNS, cells, strict=True):
            shown = f"{float(row[name]):.1f}"
            among_shown = f"{max(float(ours[m][name]) for m in IN_README.values()):.1f}"
            mine = f"**{shown}**" if shown == among_shown else shown
            error = float(row[f"{name} standard error"])
            assert cell == f"{mine} ± {error:.1f} / {float(row[f'{name} paper']):.1f}", words
            # What is in bold here is nearly the best of all rows.
            assert best[name] - float(among_shown) < 1.0


@pytest.mark.parametrize("dataset", DATASETS)
def test_tables_of_a_data_set_agree(dataset):
    accuracy = rows_of(f"{dataset}-accuracy.csv")
    assert list(accuracy) == list(rows_of(f"{dataset}-training.csv"))
    rivals = {"softmax": dict.fromkeys(COLUMNS, "LR-Multi")}
    if dataset in AGAINST_BEST:
        rivals["best"] = {
            name: max(accuracy, key=lambda m: float(accuracy[m][name])) for name in COLUMNS
        }
    for rival, methods in rivals.items():
        compared = rows_of(f"{dataset}-against-{rival}.csv")
        assert list(compared) == list(accuracy)
        for method, row in compared.items():
            for name in COLUMNS:
                apart = number(accuracy[method][name]) - number(accuracy[methods[name]][name])
                if number(row[name]) is None:
                    assert method == methods[name]
                else:
                    assert number(row[name]) == pytest.approx(apart, abs=0.0011)
                    assert 0 <= number(row[f"{name} p"]) <= 1


@pytest.mark.parametrize("dataset", DATASETS)
def test_standard_errors_are_those_of_a_share(dataset):
    counts = []
    for row in rows_of(f"{dataset}-accuracy.csv").values():
        for name in COLUMNS:
            share, error = float(row[name]) / 100, float(row[f"{name} standard error"]) / 100
            counts.append(share * (1 - share) / error**2)
    assert max(counts) < 1.05 * min(counts)
    # The size of the test part is said on the page.
    sizes = [int(n) for n in re.findall(r"(\d+) test examples", PAGE)]
    assert any(n == pytest.approx(sum(counts) / len(counts), rel=0.01) for n in sizes)


@pytest.mark.parametrize("dataset", DATASETS)
def test_the_pages_counts(dataset):
    text, training = section(TITLES[dataset]), rows_of(f"{dataset}-training.csv")
    left_out = sum(int(row["Left out"]) for row in training.values())
    trained = sum(int(row["Models"]) for row in training.values())
    told = "All" if left_out == 0 else f"{left_out} of"
    assert re.search(rf"{told} {trained} trained models", text)
    # Every chosen model met its tolerance.
    assert all(
        float(row["Relative gap"]) <= 1e-3
        for row in training.values()
        if row["Relative gap"] != "–"
    )


@pytest.mark.parametrize("dataset", OF_THE_PAPER)
def test_the_pages_words_on_the_paper(dataset):
    text, accuracy = section(TITLES[dataset]), rows_of(f"{dataset}-accuracy.csv")
    apart = sorted(
        abs(float(row[f"{name} difference"])) for row in accuracy.values() for name in COLUMNS
    )
    near = sum(round(each, 1) <= 0.7 for each in apart)
    assert f"{near} of {len(apart)} numbers lie within 0.7 points" in text
    assert f"the median difference is {apart[len(apart) // 2]:.2f} points" in text


def test_the_pages_words_on_letter():
    text, accuracy = section("Letter"), rows_of("letter-accuracy.csv")
    # The paper's likely grid: what is quoted is in the table.
    grid = rows_of("letter-paper-grid.csv")
    for method in ("top-10 SVM", "smooth top-10 SVM"):
        for name in ("Top-1", "Top-3"):
            assert f"{float(grid[method][name]):.1f}" in text
            assert f"{float(accuracy[method][name]):.1f}" in text


def generated():
    spec = importlib.util.spec_from_file_location(
        "generated", ROOT / "docs" / "_extensions" / "generated.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(importlib.util.find_spec("sphinx") is None, reason="needs sphinx")
@pytest.mark.parametrize("dataset", DATASETS)
def test_the_pages_tables_show_errors_and_what_tests_say(dataset):
    table = generated().results_table(f"{dataset}-accuracy.csv").splitlines()
    accuracy, softmax = (
        rows_of(f"{dataset}-{name}.csv") for name in ("accuracy", "against-softmax")
    )
    of_best = rows_of(f"{dataset}-against-best.csv") if dataset in AGAINST_BEST else {}
    for line in table[2:]:
        method, *cells = [cell.strip() for cell in line.strip("| ").split("|")]
        for name, cell in zip(COLUMNS, cells, strict=True):
            row = accuracy[method]
            assert f"± {float(row[f'{name} standard error']):.1f}" in cell
            assert (" / " in cell) == (f"{name} paper" in row)
            p = number(softmax[method][f"{name} p"])
            differs = p is not None and p < 0.05
            better = differs and number(softmax[method][name]) > 0
            assert ("⁺" in cell, "⁻" in cell) == (better, differs and not better)
            p = number(of_best[method][f"{name} p"]) if of_best else None
            assert ("°" in cell) == (p is not None and p > 0.05)
