"""Fine-tuning: the paper's conclusion on a small task, the table, and that runs repeat."""

import numpy as np
import pytest

pytest.importorskip("torch")
import torch
from sklearn.datasets import load_digits

from shortlist.datasets import LabeledData
from shortlist.experiments import finetune, paper
from shortlist.experiments.finetune import METHODS, FineTuningTask, Recipe
from shortlist.experiments.parts import Parts
from shortlist.experiments.units import Context

KS = (1, 3, 5)
RECIPE = Recipe(epochs=6, tuning_epochs=3, tuning_steps=(0.03,), batch=32)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X, y = (X[order] / 16).astype(np.float32), y[order]
    train, test, val = (slice(0, 600), slice(600, 1400), slice(1400, None))
    return Parts("digits", *(LabeledData(X[rows], y[rows]) for rows in (train, val, test)))


@pytest.fixture(scope="module")
def records(digits):
    return [FineTuningTask("", METHODS, KS, seed, RECIPE).run(digits) for seed in range(2)]


def test_every_loss_improves_and_serves_its_own_k_as_softmax_does(records):
    # Below its own k a loss promises nothing, and on this task softmax is points ahead there.
    rows = {(row.method, row.fine_tuned): row for row in finetune.summarise(records, KS)}
    assert len(rows) == 6
    softmax = rows["lr-multi", True]
    assert rows["lr-multi", False].mean[1] > 85
    for method in METHODS:
        row = rows[method, True]
        _, own = paper.split_method(method)
        for k in KS:
            assert row.gain[k] >= 0
            if k >= own:
                assert abs(row.mean[k] - softmax.mean[k]) < 1


def test_a_seed_decides_everything(records, digits):
    torch.manual_seed(99)
    before = torch.random.get_rng_state()
    again = FineTuningTask("", METHODS[:1], KS, 0, RECIPE).run(digits)
    assert again.reference == records[0].reference
    assert again.tuned[METHODS[0]] == records[0].tuned[METHODS[0]]
    assert torch.equal(torch.random.get_rng_state(), before)


def test_gains_are_over_the_same_networks_reference(records):
    rows = finetune.summarise(records, KS)
    first = np.array([record.tuned[METHODS[0]].accuracies[0] for record in records])
    reference = np.array([record.reference[0] for record in records])
    assert rows[1].gain[1] == pytest.approx((first - reference).mean())
    assert rows[1].deviation[1] == pytest.approx(first.std(ddof=1))
    assert rows[0].gain == dict.fromkeys(KS, 0.0)


def test_the_papers_table_as_rows():
    rows = finetune.paper_rows("ilsvrc2012")
    assert [row.fine_tuned for row in rows] == [False] + 5 * [True]
    assert rows[-1].mean[1] == 72.11
    assert rows[-1].gain[1] == pytest.approx(3.51)


def test_networks_suit_their_inputs():
    assert any(isinstance(part, torch.nn.Conv2d) for part in finetune.network_for(784, 9))
    assert not any(isinstance(part, torch.nn.Conv2d) for part in finetune.network_for(16, 26))
    for n_features in (16, 64, 784, 785):
        assert finetune.network_for(n_features, 7)(torch.zeros(2, n_features)).shape == (2, 7)
    with pytest.raises(ValueError, match="method must be of one of"):
        finetune.loss_for("svm-ova")


def test_the_section_holds_our_table_and_the_papers(tmp_path):
    section = finetune.run(Context(tmp_path, quick=True), methods=["smooth-topk-svm:5", "lr-multi"])
    ours, places, ilsvrc = section.tables
    assert len(ours.rows) == 3
    assert len(places.rows) == len(ilsvrc.rows) == 6
    assert len(section.result.networks) == 2
    assert [row[0] for row in ours.rows[:2]] == ["LR-Multi, before", "smooth top-5 SVM"]
    assert 2 * 100 / 26 < ours.rows[0][1].ours < 100  # better than chance
    assert any("at the top 1" in remark.text for remark in section.remarks)
