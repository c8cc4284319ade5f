"""Tables beside the paper's, and remarks on numbers that differ from it."""

import numpy as np
import pytest

from shortlist.experiments import paper
from shortlist.experiments.comparison import (
    accuracy_rows,
    explain_far_cells,
    family_starts,
    far_places,
    mark_best,
)
from shortlist.experiments.parts import Parts
from shortlist.experiments.protocol import Chosen, Model, PathResult
from shortlist.experiments.report import Value
from shortlist.experiments.table3 import ranks_section
from shortlist.experiments.table3_section import (
    Outcome,
    Table3Result,
    accuracy_table,
    paired_tables,
    section,
)
from shortlist.experiments.truncated_descent import Checkpoint, DescentResult

KS = (1, 3, 5, 10)
# As many examples to train on as Letter has, and 100 each for validation and test.
TRAIN = np.zeros((10_500, 16)), np.arange(10_500) % 26
PARTS = Parts(*TRAIN, *[np.zeros((100, 16)), np.zeros(100)] * 2)


def packed(hits):
    import base64

    return base64.b64encode(np.packbits(np.asarray(hits, bool)).tobytes()).decode()


def result(by_C, k, method="lr-multi", hits=None, status="converged"):
    """A result whose validation and test accuracies at k are given for each C."""
    models = []
    for C, (val, test) in by_C.items():
        on_val, on_test = [0.0] * 10, [0.0] * 10
        on_val[k - 1], on_test[k - 1] = val, test
        models.append(Model(C, 1.0, 1e-4, 5, 0.1, status, tuple(on_val), tuple(on_test)))
    best = max(models, key=lambda model: model.val[k - 1])
    hits = np.zeros(100) if hits is None else hits
    chosen = {each: Chosen(best, packed(hits), len(hits)) for each in KS}
    return PathResult(method, tuple(models), chosen, 1.0, 1.0)


def explain(far, results, *, grid=None, descents=(), parts=PARTS):
    return explain_far_cells("letter", far, results, grid or {}, descents, parts)


def test_everything_near_is_said_in_one_sentence():
    (remark,) = explain([], {})
    assert "Every number" in remark.text


def test_a_difference_that_the_papers_grid_removes_is_put_down_to_it():
    theirs = paper.accuracy("letter", "lr-multi", 1)
    results = {"lr-multi": result({1.0: (70, theirs), 3.16: (71, theirs + 3)}, 1)}
    grid = {"lr-multi": result({0.95: (70, theirs + 0.2)}, 1)}
    assert far_places("letter", results)[0] == ("lr-multi", 1)
    (remark,) = explain([("lr-multi", 1)], results, grid=grid)
    assert remark.topic == "The grid of C"
    assert f"on its likely grid {theirs + 0.2:.1f}" in remark.text
    assert "[table](#letter-paper-grid)" in remark.text


def test_any_other_difference_comes_with_how_much_c_matters():
    results = {"lr-multi": result({1.0: (70, 60.0), 10.0: (69, 64.0), 100.0: (20, 9.0)}, 1)}
    grid = {"lr-multi": result({1.0: (70, 60.0)}, 1)}
    remarks = explain([("lr-multi", 1)], results, grid=grid)
    assert len(remarks) == 2
    # 69 is within one standard error, sqrt(.7 * .3 / 100), of 70; 20 is not.
    assert "2 values of C" in remarks[1].text
    assert "(4.6)" in remarks[1].text
    assert "60.0 to 64.0" in remarks[1].text


def test_truncated_losses_are_compared_with_the_papers_descent():
    method = "trunc-ent:3"
    theirs = [paper.accuracy("letter", method, k) for k in KS]

    def point(steps, shift):
        accuracies = [0.0] * 10
        for k, accuracy in zip(KS, theirs, strict=True):
            accuracies[k - 1] = accuracy + shift
        return Checkpoint(steps, 1.0, tuple(accuracies), tuple(accuracies))

    descent = DescentResult(method, (1.0,), ((point(0, 9.0), point(7, 0.3), point(50, -4.0)),))
    results = {method: result({1.0: (50, theirs[0] - 4)}, 1, method)}
    (remark,) = explain([(method, 1)], results, descents=[descent])
    assert "7 steps" in remark.text
    assert "within 0.3 points" in remark.text


def test_a_truncated_loss_at_its_own_k_has_no_excuse_but_c():
    method = "trunc-ent:3"
    results = {method: result({1.0: (90, 80.0), 10.0: (89, 82.0)}, 3, method)}
    (remark,) = explain([(method, 3)], results)
    assert remark.topic == "truncated top-3 Ent at top-3"
    assert remark.text.startswith("80.0 against")
    assert "2 values of C" in remark.text


def test_examples_that_cannot_be_the_papers_are_found_out():
    half = Parts(TRAIN[0][:5250, :12], TRAIN[1][:5250], *TRAIN, *TRAIN)
    (remark,) = explain([("lr-multi", 1)], {}, parts=half)
    assert "5250 training examples where the paper has 10500" in remark.text
    assert "12 features where the paper has 16" in remark.text
    assert "classes" not in remark.text


def test_without_validation_part_one_remark_names_all_numbers():
    parts = Parts(*TRAIN, np.zeros((100, 16)), np.zeros(100))
    results = {m: result({1.0: (70, 60.0 + n)}, 1) for n, m in enumerate(["lr-multi", "lr-ova"])}
    (remark,) = explain([("lr-multi", 1), ("lr-ova", 1)], results, parts=parts)
    assert "LR-Multi at top-1: 60.0 against 75.3; LR-OVA at top-1: 61.0 against 68.1" in remark.text


def test_rows_mark_the_best_as_printed_and_the_papers_bold():
    methods = ("svm-multi", "lr-multi")
    ours = {"svm-multi": (76.52, 89.0, 93.0, 97.0), "lr-multi": (76.48, 90.0, 94.0, 98.0)}
    rows = accuracy_rows("letter", ours, dict.fromkeys(methods, (0.5,) * 4))
    # 76.52 and 76.48 are both printed as 76.5.
    assert [[cell.best for cell in row[1:]] for row in rows] == [
        [True, False, False, False],
        [True, True, True, True],
    ]
    assert rows[0][0] == "SVM-Multi"
    assert isinstance(rows[0][1], Value)
    assert rows[0][1].paper == 76.5
    assert rows[0][1].spread == 0.5
    assert not any(cell.paper_best for row in rows for cell in row[1:])
    assert [cell.is_far(0.7) for row in rows for cell in row[1:]] == [False] * 4 + [True] + [
        False
    ] * 3
    assert family_starts(methods) == []
    assert family_starts(paper.methods("letter")) == [2, 4, 7, 11, 14]


def test_the_largest_number_of_a_column_is_the_best_as_printed():
    rows = mark_best(
        [
            ["one", Value(75.04), Value(float("nan"))],
            ["two", Value(74.96, best=True), Value(3.0)],
            ["three", Value(74.94, best=True), "–"],
        ]
    )
    flags = [[cell.best for cell in row[1:] if isinstance(cell, Value)] for row in rows]
    assert flags == [[True, False], [True, True], [False]]


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
    table = accuracy_table("letter", three_methods)
    first = {row[0]: row[1] for row in table.rows}
    assert first["LR-Multi"].best
    assert first["LR-Multi"].spread == pytest.approx(100 * np.sqrt(0.82 * 0.18 / 100))
    # Two examples differ: p = 0.5. Thirty-two differ: p is about 5e-10.
    assert [first[name].note for name in first] == ["°", "", ""]
    assert "0 of 3 trained models did not" in table.caption


def test_paired_tables_compare_with_softmax_and_with_the_best(three_methods):
    softmax, best = paired_tables("letter", three_methods)
    assert (softmax.name, best.name) == ("against-softmax", "against-best")
    row = {row[0]: row[1] for row in softmax.rows}
    assert row["LR-Multi"] == "–"
    assert row["SVM-Multi"].ours == pytest.approx(-2.0)
    assert row["SVM-Multi"].p_value == pytest.approx(0.5)
    assert row["top-3 SVM"].p_value < 1e-6
    without = {m: r for m, r in three_methods.items() if m != "lr-multi"}
    assert [table.name for table in paired_tables("letter", without)] == ["against-best"]


def test_a_method_without_an_eligible_model_has_no_number(three_methods):
    nothing = PathResult("topk-svm:5", three_methods["lr-multi"].models, {}, 1.0, 1.0)
    results = {**three_methods, "topk-svm:5": nothing}
    whole = section(Outcome("letter", PARTS, results), 1e-3, explain=False)
    accuracy = whole.tables[0]
    cell = accuracy.rows[-1][1]
    assert cell.text(cell.ours) == "–"
    assert not cell.best
    assert [row[0] for row in accuracy.rows if row[1].best] == ["LR-Multi"]


def test_mean_ranks_over_data_sets_stand_beside_the_papers():
    def of(dataset, first, second):
        accuracy = {"lr-multi": dict.fromkeys(KS, first), "svm-multi": dict.fromkeys(KS, second)}
        return Table3Result(dataset, 100, accuracy, {}, {}, {})

    table = ranks_section([of("letter", 90.0, 80.0), of("aloi", 70.0, 70.0)]).tables[0]
    assert [row[0] for row in table.rows] == ["LR-Multi", "SVM-Multi"]
    softmax, svm = (row[1] for row in table.rows)
    assert (softmax.ours, svm.ours) == (1.25, 1.75)
    # In the paper the SVM is ahead at the top 1 on both.
    assert (softmax.paper, svm.paper) == (2.0, 1.0)
