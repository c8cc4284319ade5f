"""The section of a data set: statistics, the paper's grid, mean ranks."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shortlist.datasets import LabeledData
from shortlist.experiments import paper, table3
from shortlist.experiments.protocol import PathResult, PathTask
from shortlist.experiments.table3_section import (
    DatasetOutcome,
    Table3Result,
    accuracy_table,
    paired_tables,
    section,
)
from shortlist.experiments.units import Context
from tests.experiments.results import KS, LETTER, PARTS, result


@pytest.fixture
def three_methods():
    """100 test examples: two methods that are near each other, and one far behind."""
    near, nearer, far = np.arange(100) < 80, np.arange(100) < 82, np.arange(100) < 50
    return {
        "svm-multi": result({1.0: (70, 80.0)}, 1, "svm-multi", near),
        "lr-multi": result({1.0: (70, 82.0)}, 1, "lr-multi", nearer),
        "topk-svm:3": result({1.0: (70, 50.0)}, 1, "topk-svm:3", far),
    }


def test_the_table_has_standard_errors_and_marks_what_equals_the_best(three_methods):
    table = accuracy_table(LETTER, three_methods)
    first = {row[0]: row[1] for row in table.rows}
    assert first["LR-Multi"].best
    assert first["LR-Multi"].spread == pytest.approx(100 * np.sqrt(0.82 * 0.18 / 100))
    # Two examples differ: p = 0.5. Thirty-two differ: p is about 5e-10.
    assert [first[name].note for name in first] == ["°", "", ""]
    assert "0 of 3 trained models did not" in table.caption


def test_paired_tables_compare_with_softmax_and_with_the_best(three_methods):
    softmax, best = paired_tables(LETTER, three_methods)
    assert (softmax.name, best.name) == ("against-softmax", "against-best")
    row = {row[0]: row[1] for row in softmax.rows}
    assert row["LR-Multi"] == "–"
    assert row["SVM-Multi"].ours == pytest.approx(-2.0)
    assert row["SVM-Multi"].p_value == pytest.approx(0.5)
    assert row["top-3 SVM"].p_value < 1e-6
    without = {m: r for m, r in three_methods.items() if m != "lr-multi"}
    assert [table.name for table in paired_tables(LETTER, without)] == ["against-best"]


def test_a_method_without_an_eligible_model_has_no_number(three_methods):
    nothing = PathResult("topk-svm:5", three_methods["lr-multi"].models, {}, 1.0, 1.0)
    results = {**three_methods, "topk-svm:5": nothing}
    whole = section(DatasetOutcome(LETTER, PARTS, results), 1e-3, explain=False)
    accuracy = whole.tables[0]
    cell = accuracy.rows[-1][1]
    assert cell.text(cell.ours) == "–"
    assert not cell.best
    assert [row[0] for row in accuracy.rows if row[1].best] == ["LR-Multi"]


def of(dataset, first, second):
    """Softmax and multiclass SVM on a data set, equally good at every k."""
    accuracy = {"lr-multi": dict.fromkeys(KS, first), "svm-multi": dict.fromkeys(KS, second)}
    return Table3Result(dataset, 100, accuracy, {}, {}, {})


def test_numbers_on_other_examples_are_not_counted_as_the_papers(three_methods):
    within, _, time = section(DatasetOutcome(LETTER, PARTS, three_methods), 1e-3).headlines
    assert "within 0.7 points" in within[1]
    half = replace(PARTS, train=LabeledData(PARTS.X_train[:5250], PARTS.y_train[:5250]))
    assert section(DatasetOutcome(LETTER, half, three_methods), 1e-3).headlines == [time]


def test_mean_ranks_over_data_sets_stand_beside_the_papers():
    table = table3.ranks_section([of("letter", 90.0, 80.0), of("aloi", 70.0, 70.0)]).tables[0]
    assert [row[0] for row in table.rows] == ["LR-Multi", "SVM-Multi"]
    softmax, svm = (row[1] for row in table.rows)
    assert (softmax.ours, svm.ours) == (1.25, 1.75)
    # In the paper the SVM is ahead at the top 1 on both.
    assert (softmax.paper, svm.paper) == (2.0, 1.0)
    assert (softmax.best, svm.best) == (True, False)
    assert (softmax.paper_best, svm.paper_best) == (False, True)


def test_mean_ranks_with_a_stand_in_have_a_table_of_all():
    results = [of("letter", 90.0, 80.0), of("aloi", 70.0, 70.0), of("glyphs", 20.0, 30.0)]
    of_paper, of_all = table3.ranks_section(results).tables
    assert [row[1].ours for row in of_paper.rows] == [1.25, 1.75]
    assert [row[1].ours for row in of_all.rows] == [1.5, 1.5]
    assert "ALOI, Glyphs" in of_all.caption
    assert all(row[1].paper is None for row in of_all.rows)


def test_far_rows_of_convex_losses_are_trained_on_the_papers_grid():
    given = []

    class Recording(Context):
        """Keeps the units instead of computing them."""

        def compute(self, title, units, *, alone=False):
            given.extend(units)
            return [result({1.0: (70, 60.0)}, 1, unit.task.method) for unit in units]

    far = {m: result({1.0: (70, 20.0)}, 1, m) for m in ("lr-multi", "trunc-ent:3")}
    theirs = {k: paper.accuracy("letter", "svm-multi", k) for k in KS}
    near = result({1.0: (70, 0.0)}, 1, "svm-multi")
    model = replace(near.models[0], test=tuple(theirs.get(k, 0.0) for k in range(1, 11)))
    chosen = {k: replace(each, model=model) for k, each in near.chosen.items()}
    results = {"svm-multi": replace(near, chosen=chosen), **far}
    tasks = {m: PathTask(m, KS, "data", 1e-3, 300, 0) for m in results}
    context = Recording(Path("nowhere"))
    again = table3._on_paper_grid(context, DatasetOutcome(LETTER, PARTS, results), tasks)
    # Not the row that is near the paper's, nor a truncated loss.
    assert list(again) == ["lr-multi"]
    (task,) = (unit.task for unit in given)
    lambdas = [1 / (task.C(exponent) * 10_500) for exponent in task.exponents]
    decades = [math.log10(each) for each in lambdas]
    assert decades == pytest.approx([round(each) for each in decades])
    assert np.diff(decades) == pytest.approx(-1)
    # The paper's range of C, 1e-5 to 1e3, and no further.
    Cs = [task.C(exponent) for exponent in task.exponents]
    assert 1e-5 <= min(Cs) < 1e-4
    assert 1e2 < max(Cs) <= 1e3
    assert task.extended_exponents == (task.exponents[0], task.exponents[-1])
    assert (task.tol, task.max_epochs, task.data) == (1e-3, 300, "data")
    # Without the paper's validation part the choice of C differs in any case.
    parts = replace(PARTS, val=None)
    assert table3._on_paper_grid(context, DatasetOutcome(LETTER, parts, results), tasks) == {}


def test_the_papers_grid_has_a_table_and_a_remark():
    results = {"lr-multi": result({3.16: (71, 80.0)}, 1)}
    grid = {"lr-multi": result({0.95: (70, 75.1)}, 1)}
    whole = section(DatasetOutcome(LETTER, PARTS, results, on_paper_grid=grid), 1e-3)
    assert [table.name for table in whole.tables][:2] == ["accuracy", "paper-grid"]
    assert whole.tables[1].rows[0][1].ours == 75.1
    assert any("on its likely grid 75.1" in remark.text for remark in whole.remarks)
