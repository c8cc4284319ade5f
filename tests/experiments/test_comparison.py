"""Tables beside the paper's, and remarks on numbers that differ from it."""

from dataclasses import replace

from shortlist.datasets import LabeledData
from shortlist.experiments import paper
from shortlist.experiments.comparison import accuracy_rows, family_starts, mark_best
from shortlist.experiments.descents import DescentModel, DescentResult
from shortlist.experiments.report import Value
from shortlist.experiments.table3_section import (
    DatasetOutcome,
    explain_far_cells,
    explain_left_out,
)
from tests.experiments.results import KS, LETTER, PARTS, TRAIN, result


def explain(far, results, *, grid=None, descents=(), parts=PARTS):
    return explain_far_cells(DatasetOutcome(LETTER, parts, results, descents, grid or {}), far)


def test_everything_near_is_said_in_one_sentence():
    (remark,) = explain([], {})
    assert "Every number" in remark.text


def test_a_difference_that_the_papers_grid_removes_is_put_down_to_it():
    theirs = paper.accuracy("letter", "lr-multi", 1)
    results = {"lr-multi": result({1.0: (70, theirs), 3.16: (71, theirs + 3)}, 1)}
    grid = {"lr-multi": result({0.95: (70, theirs + 0.2)}, 1)}
    assert DatasetOutcome(LETTER, PARTS, results).far_places[0] == ("lr-multi", 1)
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


def test_a_model_that_would_be_better_but_did_not_converge_is_named():
    trained = result({1.0: (70, 60.0), 10.0: (75, 66.0)}, 1)
    models = (trained.models[0], replace(trained.models[1], status="max_epochs", relative_gap=0.02))
    chosen = {1: replace(trained.chosen[1], model=models[0])}
    results = {"lr-multi": replace(trained, models=models, chosen=chosen)}
    outcome = DatasetOutcome(LETTER, PARTS, results)
    (remark,) = explain_left_out(outcome)
    assert remark.topic == "Models that did not converge"
    assert "60.0 against 75.3" in remark.text
    assert "C = 10, with a relative gap of 0.02" in remark.text
    # That is why it is far, and no other reason is given.
    assert explain([("lr-multi", 1)], results, grid={"lr-multi": trained}) == []
    # It is named where the paper's number is near, or where there is none.
    near = replace(models[0], test=(75.0,) * 10)
    chosen_near = {1: replace(trained.chosen[1], model=near)}
    results = {"lr-multi": replace(trained, models=(near, models[1]), chosen=chosen_near)}
    outcome = DatasetOutcome(LETTER, PARTS, results)
    assert outcome.far_places == []
    assert "75.0 against 75.3" in explain_left_out(outcome)[0].text
    other = replace(LETTER, in_paper=False)
    assert "top-1: 75.0, best" in explain_left_out(replace(outcome, dataset=other))[0].text
    # Without a dual there is no gap to name.
    stalled = replace(models[1], status="stalled", relative_gap=float("nan"))
    results = {"trunc-ent:3": replace(trained, models=(models[0], stalled), chosen=chosen)}
    (remark,) = explain_left_out(DatasetOutcome(LETTER, PARTS, results))
    assert "C = 10, with status “stalled”" in remark.text
    # One that is worse on the validation examples is no excuse.
    models = (models[0], replace(models[1], val=(60.0, *[0.0] * 9)))
    results = {"lr-multi": replace(trained, models=models, chosen=chosen)}
    assert explain_left_out(DatasetOutcome(LETTER, PARTS, results)) == []
    assert explain([("lr-multi", 1)], results) != []


def test_truncated_losses_are_compared_with_the_papers_descent():
    method = "trunc-ent:3"
    theirs = [paper.accuracy("letter", method, k) for k in KS]

    def point(steps, shift):
        accuracies = [0.0] * 10
        for k, accuracy in zip(KS, theirs, strict=True):
            accuracies[k - 1] = accuracy + shift
        return DescentModel(steps, 1.0, tuple(accuracies), tuple(accuracies))

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
    half = replace(PARTS, train=LabeledData(TRAIN.X[:5250, :12], TRAIN.y[:5250]))
    (remark,) = explain([("lr-multi", 1)], {}, parts=half)
    assert "5250 training examples where the paper has 10500" in remark.text
    assert "12 features where the paper has 16" in remark.text
    assert "classes" not in remark.text


def test_without_validation_part_one_remark_names_all_numbers():
    parts = replace(PARTS, val=None)
    results = {m: result({1.0: (70, 60.0 + n)}, 1) for n, m in enumerate(["lr-multi", "lr-ova"])}
    (remark,) = explain([("lr-multi", 1), ("lr-ova", 1)], results, parts=parts)
    assert "LR-Multi at top-1: 60.0 against 75.3; LR-OVA at top-1: 61.0 against 68.1" in remark.text


def test_rows_mark_the_best_as_printed_and_the_papers_bold():
    methods = ("svm-multi", "lr-multi")
    ours = {"svm-multi": (76.52, 89.0, 93.0, 97.0), "lr-multi": (76.48, 90.0, 94.0, 98.0)}
    rows = mark_best(accuracy_rows(LETTER, ours, dict.fromkeys(methods, (0.5,) * 4), {}))
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
