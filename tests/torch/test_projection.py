"""The projections behind the smooth hinges: closed form, Newton steps, and selection agree."""

import pytest
import torch

from shortlist.torch import _hinge, _projection
from shortlist.torch._selection import largest
from shortlist.torch.functional import topk_hinge_loss


def rows(seed, scale, margin, n=24, m=120, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, m, generator=generator, dtype=dtype) * scale
    target = torch.randint(m, (n,), generator=generator)
    scores[torch.arange(n), target] += margin
    return scores, target


@pytest.mark.parametrize("alpha", [True, False])
@pytest.mark.parametrize("k", [1, 2, 5, 30])
@pytest.mark.parametrize("gamma", [0.01, 1.0, 10.0])
def test_newton_finds_the_closed_forms_projection(alpha, k, gamma):
    project = _projection.project_alpha if alpha else _projection.project_beta
    for seed, (scale, margin) in enumerate(
        [(0.0, 0.5), (0.001, 0.9), (0.01, 1.0), (0.1, 1.2), (1.0, 3.0), (5.0, 0.0)]
    ):
        scores, target = rows(seed, scale, margin)
        label = target.unsqueeze(1)
        top = scores.scatter(1, label, -torch.inf).topk(scores.shape[1] - 1, dim=1).values
        pivot = top[:, k - 1 : k].clone()
        base = (1 + pivot - scores.gather(1, label)).squeeze(1)
        top -= pivot
        by_rank = top.t().contiguous()
        # The closed form is only meant for small tables, but holds for any.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_projection, "closed_form_fits", lambda k, width: True)
            closed = project(by_rank.clone(), None, base, k, gamma)
        newton = project(by_rank[:k].clone(), top.clone(), base, k, gamma)
        x, z = (
            torch.minimum(
                (by_rank - found.cut).clamp(min=0), torch.as_tensor(found.cap, dtype=top.dtype)
            ).t()
            / gamma
            for found in (closed, newton)
        )
        torch.testing.assert_close(x, z, rtol=0, atol=1e-11)
        torch.testing.assert_close(closed.offset, newton.offset, rtol=0, atol=1e-11)
        bound, same = (
            torch.ones(len(x), dtype=bool) if found.slack is None else ~found.slack
            for found in (closed, newton)
        )
        assert torch.equal(bound, same)
        torch.testing.assert_close(
            x.sum(1)[bound], torch.ones_like(x[bound, 0]), rtol=0, atol=1e-11
        )


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("scale", [0.001, 0.05, 0.3, 1.0])
def test_every_way_to_solve_gives_the_same_loss(monkeypatch, variant, scale):
    # Near-uniform scores take Newton steps, spread ones a wider selection or none.
    scores, target = rows(1, scale, 0.0, n=64, m=500)
    usual = topk_hinge_loss(scores, target, 4, 1.0, variant, reduction="none")
    monkeypatch.setattr(_hinge, "closed_form_fits", lambda k, width: False)
    monkeypatch.setattr(_projection, "closed_form_fits", lambda k, width: False)
    newton = topk_hinge_loss(scores, target, 4, 1.0, variant, reduction="none")
    torch.testing.assert_close(usual, newton, rtol=0, atol=1e-11)


@pytest.mark.parametrize("gamma", [1e-3, 1.0])
def test_slack_rows_cost_the_others_no_precision(gamma):
    # Four wrong labels, all at the cap of 1/4; the other example has nothing to pay.
    scores = torch.tensor([[-1.5, 9999.8, 1e4, 0.1, -9999.8], [0, 0, 0, 0, 3]]).double()
    scores.requires_grad_()
    loss = topk_hinge_loss(scores, torch.tensor([4, 4]), 4, gamma, "beta", reduction="sum")
    (gradient,) = torch.autograd.grad(loss, scores)
    expected = torch.tensor([[0.25, 0.25, 0.25, 0.25, -1], [0, 0, 0, 0, 0]]).double()
    torch.testing.assert_close(gradient, expected, rtol=0, atol=1e-14)


@pytest.mark.parametrize("variant", ["alpha", "beta"])
@pytest.mark.parametrize("k", [5, 10, 30])
def test_second_derivatives_survive_rounding(k, variant):
    # Which entries are at the cap must not hang on how their sum was rounded.
    scores, target = rows(0, 0.01, 1.0, n=400, m=10 * k, dtype=torch.float32)
    direction = torch.randn(scores.shape, generator=torch.Generator().manual_seed(1))
    products = []
    for dtype in (torch.float32, torch.float64):
        leaf = scores.to(dtype, copy=True).requires_grad_()
        loss = topk_hinge_loss(leaf, target, k, 1.0, variant, reduction="sum")
        (gradient,) = torch.autograd.grad(loss, leaf, create_graph=True)
        products.append(torch.autograd.grad((gradient * direction).sum(), leaf)[0].double())
    differ = (products[0] - products[1]).abs().amax(1) > 1e-3
    assert differ.sum() <= 1  # one may lie on a kink


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_stored_columns_are_distinct_where_classes_are_impossible(smoothing):
    scores = torch.full((6, 30), -torch.inf)
    scores[:, :8] = torch.randn(6, 8, generator=torch.Generator().manual_seed(0))
    loss = _hinge.SmoothTopKHinge(9, "beta", 1.0) if smoothing else _hinge.TopKHinge(9, "beta")
    columns = loss.evaluate(scores, torch.tensor([0, 1, 2, 5, 6, 7])).columns
    assert all(len(row.unique()) == columns.shape[1] for row in columns)


@pytest.mark.parametrize("gamma", [1e-3, 1.0])
def test_outliers_cost_no_precision_in_float32(gamma):
    scores, target = rows(2, 0.1, 0.0)
    scores[:, 7] = 1e4
    scores[:, 8] = -1e4
    exact = topk_hinge_loss(scores, target, 3, gamma, reduction="none")
    single = topk_hinge_loss(scores.float(), target, 3, gamma, reduction="none")
    torch.testing.assert_close(single.double(), exact, rtol=2e-6, atol=2e-6)
    scores = scores.float().requires_grad_()
    loss = topk_hinge_loss(scores, target, 3, gamma, reduction="sum")
    (gradient,) = torch.autograd.grad(loss, scores)
    assert gradient.sum(1).abs().max() < 1e-4


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shift", [-9, 0, 9])
@pytest.mark.parametrize(
    ("n", "count"), [(101, 5), (128, 7), (200, 16), (1003, 5), (1003, 12), (1003, 17), (1003, 60)]
)
def test_selection_is_topk(n, count, shift, dtype):
    generator = torch.Generator().manual_seed(n)
    values = torch.randn(50, n, generator=generator) + shift
    values[:, ::3] = values[:, ::3].round()  # ties
    values[7] = 0.0
    values[8, 3] = torch.inf
    values[9] -= 2 * shift
    values[10, 5:] = -torch.inf
    values = values.to(dtype)
    found, columns = largest(values, count)
    assert torch.equal(found, values.topk(count, dim=1).values)
    assert torch.equal(values.gather(1, columns), found)
    assert all(len(row.unique()) == count for row in columns)


@pytest.mark.parametrize("width", [1, 2, 3, 12, 13, 104])
def test_sums_without_cumsum(width):
    # CUDA's own running sums are refused in deterministic mode.
    values = torch.randn(width, 5, generator=torch.Generator().manual_seed(0)).double()
    torch.testing.assert_close(_projection.sums_by_doubling(values), values.cumsum(0))


@pytest.mark.parametrize("variant", ["alpha", "beta"])
def test_devices_that_sum_by_doubling_get_the_same_loss(monkeypatch, variant):
    scores, target = rows(3, 0.5, 1.0)
    usual = topk_hinge_loss(scores, target, 4, 1.0, variant, reduction="none")
    monkeypatch.setattr(_projection, "running_sums", _projection.sums_by_doubling)
    other = topk_hinge_loss(scores, target, 4, 1.0, variant, reduction="none")
    torch.testing.assert_close(other, usual, rtol=0, atol=1e-12)


def test_selection_of_no_rows():
    found, columns = largest(torch.empty(0, 1000), 12)
    assert found.shape == columns.shape == (0, 12)


@pytest.mark.parametrize("shift", [0, 9])
@pytest.mark.parametrize("nan", [torch.nan, -torch.tensor(torch.nan)], ids=["nan", "-nan"])
@pytest.mark.parametrize("m", [200, 1000])
def test_nan_scores_end_in_nan(m, nan, shift):
    scores = torch.randn(3, m, generator=torch.Generator().manual_seed(m)) + shift
    scores[1, 5] = nan
    losses = topk_hinge_loss(scores, torch.tensor([0, 1, 2]), 3, reduction="none")
    assert losses.isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("smoothing", [0.0, 1.0])
def test_few_entries_are_kept_for_the_backward_pass(smoothing):
    scores, target = rows(0, 1.0, 0.0, n=8, m=1000)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(
        lambda saved: kept.append(saved.numel()) or saved, lambda saved: saved
    ):
        topk_hinge_loss(scores.requires_grad_(), target, 3, smoothing)
    assert kept
    assert sum(kept) < 8 * 50
