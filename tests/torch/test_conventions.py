"""What the losses share with torch.nn.CrossEntropyLoss: arguments, layouts, state, errors."""

import copy
import io
import pickle

import pytest
import torch

from shortlist.torch import (
    OVAHingeLoss,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
    functional,
)
from shortlist.torch._row_loss import Evaluated

from .cases import CASES

# Cross-entropy computed as one of ours: what reduction, weight and layout do must be the same.
REDUCTIONS = ["none", "mean", "sum"]


def tensors(shape=(12, 7), seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(shape, generator=generator, dtype=torch.float64)
    target = torch.randint(shape[1], (shape[0], *shape[2:]), generator=generator)
    return scores, target


class _RowwiseCrossEntropy:
    """Cross-entropy as a row loss, to send it through the machinery that k = 1 bypasses."""

    def evaluate(self, scores, target):
        logs = torch.log_softmax(scores, 1)
        gradient = logs.exp()
        gradient[torch.arange(len(scores)), target] -= 1
        return Evaluated(-logs.gather(1, target.unsqueeze(1)).squeeze(1), gradient)

    def curvature(self, gradient, target, direction):
        raise NotImplementedError


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ignore_index", [-100, 3])
@pytest.mark.parametrize("shape", [(12, 7), (3, 7, 4), (2, 7, 3, 2), (0, 7)])
def test_reductions_are_cross_entropys(monkeypatch, reduction, weighted, ignore_index, shape):
    scores, target = tensors(shape)
    target.view(-1)[1:3] = ignore_index
    weight = torch.linspace(0.2, 2, 7, dtype=torch.float64) if weighted else None
    options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
    monkeypatch.setattr(functional, "OVALogistic", _RowwiseCrossEntropy)
    results = []
    for function in (torch.nn.functional.cross_entropy, functional.ova_logistic_loss):
        leaf = scores.clone().requires_grad_()
        value = function(leaf, target, **options)
        (gradient,) = torch.autograd.grad(value.sum(), leaf)
        results.append((value.detach(), gradient))
    (expected, expected_gradient), (found, gradient) = results
    torch.testing.assert_close(found, expected, equal_nan=True)
    torch.testing.assert_close(gradient, expected_gradient, equal_nan=True)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("make", [TopKEntropyLoss, TruncatedTopKEntropyLoss])
def test_k1_is_a_drop_in_for_cross_entropy(make, reduction):
    scores, target = tensors((6, 5, 3))
    target[0, 0] = -100
    weight = torch.rand(5, dtype=torch.float64)
    ours = make(1, weight=weight, reduction=reduction)
    theirs = torch.nn.CrossEntropyLoss(weight=weight, reduction=reduction)
    assert torch.equal(ours(scores, target), theirs(scores, target))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_layouts_are_rows(case):
    scores, target = tensors((2, 8, 3, 2))
    loss = case.make(reduction="none")
    found = loss(scores, target)
    assert found.shape == target.shape
    for n, i, j in [(0, 0, 0), (1, 2, 1)]:
        alone = loss(scores[n, :, i, j], target[n, i, j])
        assert alone.shape == ()
        torch.testing.assert_close(alone, found[n, i, j])


# At k = 1 the entropies are torch's cross_entropy, which passes NaN on to ignored examples.
@pytest.mark.parametrize("case", [c for c in CASES if c.k > 1 or "entropy" not in c.name], ids=str)
def test_ignored_examples_may_hold_anything(case):
    scores, target = tensors()
    scores[3] = torch.nan
    scores[5] = torch.inf
    target[[3, 5]] = -100
    kept = [i for i in range(12) if i not in (3, 5)]
    scores.requires_grad_()
    found = case.make()(scores, target)
    torch.testing.assert_close(found, case.make()(scores[kept], target[kept]))
    (gradient,) = torch.autograd.grad(found, scores)
    assert (gradient[[3, 5]] == 0).all()
    assert gradient.isfinite().all()


def test_nothing_counted_is_nan_as_for_cross_entropy():
    scores, target = tensors()
    target.fill_(-100)
    assert TopKHingeLoss(2)(scores, target).isnan()
    assert TopKHingeLoss(2, reduction="sum")(scores, target) == 0


@pytest.mark.parametrize("case", CASES, ids=str)
def test_modules_copy_pickle_and_keep_their_weight(case):
    scores, target = tensors()
    weight = torch.rand(7, dtype=torch.float64)
    loss = case.make(weight=weight)
    expected = loss(scores, target)
    for twin in (copy.deepcopy(loss), pickle.loads(pickle.dumps(loss))):
        assert torch.equal(twin(scores, target), expected)
    buffer = io.BytesIO()
    torch.save(loss.state_dict(), buffer)
    buffer.seek(0)
    fresh = case.make(weight=torch.ones(7, dtype=torch.float64))
    fresh.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(fresh(scores, target), expected)
    assert loss.to(torch.float32).weight.dtype == torch.float32
    for name, value in case.params.items():
        assert f"{name}={value!r}" in repr(loss)


@pytest.mark.parametrize("dtype", [torch.int32, torch.uint8])
def test_any_integer_labels(dtype):
    scores, target = tensors()
    loss = TopKHingeLoss(3)
    assert torch.equal(loss(scores, target.to(dtype)), loss(scores, target))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: TopKHingeLoss(0), ValueError, "k must be 1 or larger; got 0"),
        (lambda: TopKHingeLoss(2.5), TypeError, "k must be an integer; got 2.5"),
        (lambda: TopKEntropyLoss(True), TypeError, "k must be an integer; got True"),
        (lambda: TopKHingeLoss(2, -1.0), ValueError, "smoothing must be finite and at least 0"),
        (lambda: TopKHingeLoss(2, float("inf")), ValueError, "smoothing must be finite"),
        (lambda: TopKHingeLoss(2, "1"), TypeError, "smoothing must be a number"),
        (lambda: TopKHingeLoss(2, 1.0, "gamma"), ValueError, "variant must be one of 'alpha', 'b"),
        (lambda: OVAHingeLoss(reduction="avg"), ValueError, "reduction must be one of 'none', 'm"),
    ],
)
def test_bad_parameters_are_named(make, error, message):
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(
    ("scores", "target", "error", "message"),
    [
        (torch.zeros(3, 4), torch.zeros(3), TypeError, "class indices, got torch.float32"),
        (torch.zeros(3, 4), torch.zeros(3, dtype=torch.bool), TypeError, "integer class indices"),
        (torch.zeros(3, 4, dtype=torch.long), torch.zeros(3).long(), TypeError, "floating point"),
        (torch.zeros(3, 4), torch.zeros(2).long(), ValueError, r"shape \(3,\).*got \(2,\)"),
        (torch.zeros(3, 4, 2), torch.zeros(3).long(), ValueError, r"shape \(3, 2\)"),
        (torch.zeros(3, 4), torch.tensor([0, 4, 1]), ValueError, r"label 4; .* \[0, 3\]"),
        (torch.zeros(3, 4), torch.tensor([0, -1, 1]), ValueError, "label -1"),
        (torch.zeros(3, 3), torch.zeros(3).long(), ValueError, "k=3 for 3 classes.*1 to 2"),
        (torch.zeros(()), torch.zeros(()).long(), ValueError, "class dimension"),
    ],
)
def test_bad_tensors_are_explained(scores, target, error, message):
    with pytest.raises(error, match=message):
        TopKHingeLoss(3)(scores, target)


def test_a_weight_of_the_wrong_length_is_explained():
    scores, target = tensors()
    with pytest.raises(ValueError, match="each of the 7 classes"):
        TopKHingeLoss(2, weight=torch.ones(6))(scores, target)
