"""Derivatives of every order and mode, torch.func, torch.compile, half precision."""

import pytest
import torch
from torch._subclasses import FakeTensor, FakeTensorMode
from torch.nn.functional import cross_entropy

from shortlist.torch import _projection
from shortlist.torch import functional as F

from .cases import CASES, SMOOTH

# torch writes some of its forward derivatives in its old language, and warns of it.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
ONE_OF_EACH = [
    case for case in CASES if case.k in (1, 3) and case.params.get("smoothing", 1.0) in (0.5, 1.0)
]


def batch(m=7, n=5, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, m, generator=generator, dtype=dtype) * 1.5
    return scores.requires_grad_(), torch.randint(m, (n,), generator=generator)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_first_derivatives_in_both_modes(case):
    scores, target = batch()
    target[1] = -100
    loss = case.make(weight=torch.linspace(0.5, 2, 7, dtype=torch.float64))
    torch.autograd.gradcheck(lambda f: loss(f, target), scores, check_forward_ad=True)


@pytest.mark.parametrize("case", SMOOTH, ids=str)
def test_second_derivatives(case):
    scores, target = batch()
    target[1] = -100
    loss = case.make(reduction="sum")
    torch.autograd.gradgradcheck(lambda f: loss(f, target), scores)


@pytest.mark.parametrize("case", [c for c in CASES if c not in SMOOTH], ids=str)
def test_the_hinge_is_flat_between_its_kinks(case):
    scores, target = batch()
    (gradient,) = torch.autograd.grad(case.make()(scores, target), scores, create_graph=True)
    (second,) = torch.autograd.grad((gradient**2).sum(), scores)
    assert (second == 0).all()


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_per_example_gradients_by_vmap(case):
    scores, target = batch()
    target[2] = -100
    loss = case.make(reduction="sum")
    per_example = torch.func.vmap(torch.func.grad(loss))(scores.detach(), target)
    (gradient,) = torch.autograd.grad(loss(scores, target), scores)
    torch.testing.assert_close(per_example, gradient)


@pytest.mark.parametrize("case", [c for c in ONE_OF_EACH if c in SMOOTH], ids=str)
def test_hessians_by_torch_func(case):
    scores, target = batch()
    loss = case.make(reduction="sum")
    forward_over_reverse = torch.func.hessian(loss)(scores.detach(), target)
    reverse_over_reverse = torch.autograd.functional.hessian(lambda f: loss(f, target), scores)
    torch.testing.assert_close(forward_over_reverse, reverse_over_reverse)


@pytest.mark.parametrize("transform", [torch.func.jacrev, torch.func.jacfwd])
def test_derivatives_in_forward_mode_twice_are_refused(transform):
    # torch drops the outer derivative of any autograd function there, without a word.
    scores, target = batch()

    def loss(f):
        return F.topk_hinge_loss(f, target, 3)

    hessian = transform(torch.func.jacfwd(loss))
    if transform is torch.func.jacrev:
        torch.testing.assert_close(hessian(scores.detach()), torch.func.hessian(loss)(scores))
    else:
        with pytest.raises(NotImplementedError, match=r"use torch\.func\.hessian"):
            hessian(scores.detach())


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_shapes_are_known_without_data(case):
    scores = torch.empty(4, 9, 2, device="meta", requires_grad=True)
    losses = case.make(reduction="none")(scores, torch.empty(4, 2, dtype=int, device="meta"))
    assert losses.shape == (4, 2)
    losses.sum().backward()
    assert scores.grad.shape == scores.shape


def test_vmap_over_score_batches_that_share_their_labels():
    scores, target = batch()
    stack = torch.stack([scores.detach(), 2 * scores.detach()], 1)
    losses = torch.func.vmap(lambda f: F.topk_hinge_loss(f, target, 3), in_dims=1)(stack)
    expected = torch.stack([F.topk_hinge_loss(stack[:, i], target, 3) for i in range(2)])
    torch.testing.assert_close(losses, expected)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_compiles_to_one_graph(case):
    torch.compiler.reset()
    loss = case.make(weight=torch.linspace(0.5, 2, 40))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    for seed in range(2):
        scores, target = batch(m=40, n=12, seed=seed, dtype=torch.float32)
        target[0] = -100
        expected = loss(scores, target)
        found = compiled(scores, target)
        torch.testing.assert_close(found, expected)
        for one, other in zip(
            torch.autograd.grad(found, scores), torch.autograd.grad(expected, scores), strict=True
        ):
            torch.testing.assert_close(one, other)


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_single(case, dtype):
    scores, target = batch(m=50, n=20, dtype=torch.float32)
    half = scores.detach().to(dtype).requires_grad_()
    single = half.detach().float().requires_grad_()
    loss = case.make()
    found, expected = loss(half, target), loss(single, target)
    assert found.dtype == dtype
    assert found == expected.to(dtype)
    (found_gradient,) = torch.autograd.grad(found, half)
    (gradient,) = torch.autograd.grad(expected, single)
    torch.testing.assert_close(found_gradient, gradient.to(dtype))


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_taken_as_cross_entropy_takes_it(case, dtype, device):
    scores, target = batch(m=40, n=12, dtype=torch.float32)
    scores = scores.detach().to(device, dtype)
    weight = torch.linspace(0.5, 2, 40).to(device, dtype)
    target = target.to(device)
    for reduction in ("none", "mean", "sum"):
        leaf = scores.clone().requires_grad_()
        expected = cross_entropy(leaf, target, weight, reduction=reduction)
        found = case.make(weight=weight, reduction=reduction)(leaf, target)
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        (gradient,) = torch.autograd.grad(found.sum(), leaf)
        assert gradient.dtype == dtype


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("case", [c for c in ONE_OF_EACH if not c.name.startswith("ova")], ids=str)
def test_half_precision_with_impossible_classes(case, dtype):
    scores, target = batch(m=40, n=12, dtype=torch.float32)
    target = target % 30
    scores = scores.detach().to(dtype)
    scores[:, 30:] = -torch.inf
    scores.requires_grad_()
    found = case.make(reduction="none")(scores, target)
    (gradient,) = torch.autograd.grad(found.sum(), scores)
    assert torch.equal(found, case.make(reduction="none")(scores[:, :30], target))
    assert gradient.isfinite().all()
    assert (gradient[:, 30:] == 0).all()


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_autocast_gives_single_precision_as_cross_entropy_does(case):
    layer = torch.nn.Linear(4, 10)
    inputs, target = torch.randn(6, 4), torch.randint(10, (6,))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = layer(inputs)
        assert scores.dtype == torch.bfloat16
        found = case.make()(scores, target)
        assert found.dtype == cross_entropy(scores, target).dtype == torch.float32
    assert found == case.make()(scores.float(), target)
    found.backward()
    assert layer.weight.grad.isfinite().all()


def test_training_a_layer_lowers_each_loss():
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(60, 8, generator=generator)
    target = torch.randint(6, (60,), generator=generator)
    for case in ONE_OF_EACH:
        layer = torch.nn.Linear(8, 6)
        loss = case.make()
        optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
        start = loss(layer(inputs), target).item()
        for _ in range(30):
            optimizer.zero_grad()
            loss(layer(inputs), target).backward()
            optimizer.step()
        assert loss(layer(inputs), target).item() < 0.98 * start, str(case)


def nan_in(row, where, m):
    """Scores with a NaN in one row, and labels."""
    scores, target = batch(m=m, n=5, seed=m, dtype=torch.float32)
    scores = scores.detach()
    if where == "label":
        scores[row, target[row]] = torch.nan
    elif where == "another":
        scores[row, (target[row] + 1) % m] = torch.nan
    else:
        scores[row] = torch.nan
    return scores.requires_grad_(), target


@pytest.mark.parametrize("m", [7, 40, 600])
@pytest.mark.parametrize("where", ["label", "another", "everywhere"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_nan_score_shows_in_its_row_and_only_there(case, where, m):
    scores, target = nan_in(2, where, m)
    losses = case.make(reduction="none")(scores, target)
    assert losses.isnan().tolist() == [False, False, True, False, False]
    (gradient,) = torch.autograd.grad(losses.sum(), scores)
    assert gradient[2].isnan().all()
    assert gradient[[0, 1, 3, 4]].isfinite().all()


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_nan_score_shows_in_the_sum(case, reduction):
    scores, target = nan_in(2, "another", 7)
    found = case.make(reduction=reduction)(scores, target)
    assert found.isnan()
    (gradient,) = torch.autograd.grad(found, scores)
    assert gradient[2].isnan().all()
    expected = torch.autograd.grad(cross_entropy(scores, target, reduction=reduction), scores)
    assert torch.equal(gradient.isnan(), expected[0].isnan())


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_a_nan_score_shows_in_every_mode(case):
    scores, target = nan_in(2, "another", 40)
    loss = case.make(reduction="none")
    torch.compiler.reset()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")(scores, target)
    (gradient,) = torch.autograd.grad(compiled.sum(), scores)
    by_vmap = torch.func.vmap(torch.func.grad(case.make(reduction="sum")))(scores.detach(), target)
    _, tangents = torch.func.jvp(
        lambda f: loss(f, target), (scores.detach(),), (torch.ones_like(scores),)
    )
    for found in (compiled, gradient.mean(1), by_vmap.mean(1), tangents):
        assert found.isnan().tolist() == [False, False, True, False, False]


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_exports_with_any_batch_size(case):
    loss = case.make(weight=torch.linspace(0.5, 2, 40))
    strict = case.k == 3  # the other tracer of torch, which takes longer
    rows = torch.export.Dim("rows")
    example = batch(m=40, n=12, dtype=torch.float32)
    example[0].requires_grad_(False)
    program = torch.export.export(
        loss, example, dynamic_shapes=({0: rows}, {0: rows}), strict=strict
    )
    for n in (3, 31):
        scores, target = batch(m=40, n=n, seed=n, dtype=torch.float32)
        target[0] = -100
        torch.testing.assert_close(program.module()(scores, target), loss(scores, target))


@pytest.mark.parametrize("case", ONE_OF_EACH, ids=str)
def test_tensors_without_values_leave_nothing_behind(case):
    _projection._kept_tables.cache_clear()
    scores, target = batch(m=40, n=12, dtype=torch.float32)
    with FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = mode.from_tensor(scores.detach()).requires_grad_()
        loss = case.make()(fake, mode.from_tensor(target))
        loss.backward()
    assert isinstance(loss, FakeTensor)
    assert fake.grad.shape == scores.shape
    real = case.make()(scores, target)
    real.backward()
    assert real.isfinite()
    assert scores.grad.isfinite().all()


def test_the_operator_that_waits_for_its_data_is_kept_out_of_cuda_graphs():
    if not hasattr(torch.Tag, "cudagraph_unsafe"):
        pytest.skip("this version of torch cannot mark operators")
    assert torch.Tag.cudagraph_unsafe in torch.ops.shortlist.smooth_topk_hinge.default.tags


@pytest.mark.parametrize("alpha", [True, False])
def test_the_operator_hidden_from_the_compiler_is_well_formed(alpha):
    scores, target = batch(m=40, n=6)
    operator = torch.ops.shortlist.smooth_topk_hinge.default
    torch.library.opcheck(operator, (scores.detach(), target, 3, 1.0, alpha))
