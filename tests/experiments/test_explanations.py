"""Remarks on numbers that differ from the paper's."""

import numpy as np

from shortlist.experiments import paper
from shortlist.experiments.comparison import accuracy_rows, family_starts, far_cells
from shortlist.experiments.explanations import explain_far_cells
from shortlist.experiments.protocol import Parts
from shortlist.experiments.report import Value

# As many examples to train on as Letter has, and 100 each for validation and test.
TRAIN = np.zeros((10_500, 16)), np.arange(10_500) % 26
PARTS = Parts(*TRAIN, *[np.zeros((100, 16)), np.zeros(100)] * 2)


def record(by_C, k):
    """A record whose validation and test accuracies at k are given for each C."""
    points = []
    for C, (val, test) in by_C.items():
        accuracies = {"val": [0.0] * 10, "test": [0.0] * 10}
        accuracies["val"][k - 1], accuracies["test"][k - 1] = val, test
        points.append({"C": C, **accuracies})
    best = max(points, key=lambda point: point["val"][k - 1])
    return {"points": points, "chosen": {str(each): best for each in (1, 3, 5, 10)}}


def test_everything_near_is_said_in_one_sentence():
    (remark,) = explain_far_cells("letter", [], {}, [], PARTS)
    assert "Every number" in remark


def test_a_difference_that_powers_of_ten_remove_is_put_down_to_the_grid():
    theirs = paper.accuracy("letter", "lr-multi", 1)
    records = {"lr-multi": record({1.0: (70, theirs + 0.2), 3.16: (71, theirs + 3)}, 1)}
    (remark,) = explain_far_cells("letter", [("lr-multi", 1)], records, [], PARTS)
    assert "The values of C" in remark
    assert f"with powers of ten {theirs + 0.2:.1f}" in remark


def test_any_other_difference_comes_with_how_much_c_matters():
    records = {"lr-multi": record({1.0: (70, 60.0), 10.0: (69, 64.0), 100.0: (20, 9.0)}, 1)}
    remarks = explain_far_cells("letter", [("lr-multi", 1)], records, [], PARTS)
    assert len(remarks) == 2
    # 69 is within one standard error, sqrt(.7 * .3 / 100), of 70; 20 is not.
    assert "2 values of C" in remarks[1]
    assert "(4.6)" in remarks[1]
    assert "60.0 to 64.0" in remarks[1]


def test_truncated_losses_are_compared_with_the_papers_descent():
    method = "trunc-ent:3"
    theirs = [paper.accuracy("letter", method, k) for k in (1, 3, 5, 10)]

    def point(iteration, shift):
        accuracies = [0.0] * 10
        for k, accuracy in zip((1, 3, 5, 10), theirs, strict=True):
            accuracies[k - 1] = accuracy + shift
        return {"iteration": iteration, "val": accuracies, "test": accuracies}

    descent = {"method": method, "runs": [[point(0, 9.0), point(7, 0.3), point(50, -4.0)]]}
    records = {method: record({1.0: (50, theirs[0] - 4)}, 1)}
    (remark,) = explain_far_cells("letter", [(method, 1)], records, [descent], PARTS)
    assert "7 steps" in remark
    assert "within 0.3 points" in remark


def test_a_truncated_loss_at_its_own_k_has_no_excuse_but_c():
    method = "trunc-ent:3"
    records = {method: record({1.0: (90, 80.0), 10.0: (89, 82.0)}, 3)}
    (remark,) = explain_far_cells("letter", [(method, 3)], records, [], PARTS)
    assert remark.startswith("**truncated top-3 Ent at top-3**: 80.0 against")
    assert "2 values of C" in remark


def test_examples_that_cannot_be_the_papers_are_found_out():
    half = Parts(TRAIN[0][:5250, :12], TRAIN[1][:5250], *TRAIN, *TRAIN)
    (remark,) = explain_far_cells("letter", [("lr-multi", 1)], {}, [], half)
    assert "5250 training examples where the paper has 10500" in remark
    assert "12 features where the paper has 16" in remark
    assert "classes" not in remark


def test_without_validation_part_one_remark_names_all_numbers():
    parts = Parts(*TRAIN, np.zeros((100, 16)), np.zeros(100))
    records = {"lr-multi": record({1.0: (70, 60.0)}, 1), "lr-ova": record({1.0: (70, 61.0)}, 1)}
    far = [("lr-multi", 1), ("lr-ova", 1)]
    (remark,) = explain_far_cells("letter", far, records, [], parts)
    assert "LR-Multi at top-1: 60.0 against 75.3; LR-OVA at top-1: 61.0 against 68.1" in remark


def test_rows_mark_the_best_as_printed_and_the_papers_bold():
    methods = ("svm-multi", "lr-multi")
    ours = {"svm-multi": (76.52, 89.0, 93.0, 97.0), "lr-multi": (76.48, 90.0, 94.0, 98.0)}
    rows = accuracy_rows("letter", ours)
    # 76.52 and 76.48 are both printed as 76.5.
    assert [[cell.best for cell in row[1:]] for row in rows] == [
        [True, False, False, False],
        [True, True, True, True],
    ]
    assert rows[0][0] == "SVM-Multi"
    assert isinstance(rows[0][1], Value)
    assert rows[0][1].paper == 76.5
    assert not any(cell.paper_best for row in rows for cell in row[1:])
    assert far_cells(rows) == [(1, 1)]
    assert family_starts(methods) == []
    assert family_starts(paper.methods("letter")) == [2, 4, 7, 11, 14]
