"""TopKAccuracy against shortlist.metrics, over batches, processes and layouts."""

import copy

import numpy as np
import pytest
import torch

from shortlist.metrics import topk_accuracy_curve
from shortlist.torch import TopKAccuracy

POLICIES = ["optimistic", "pessimistic", "expected"]


def examples(n=200, m=9, seed=0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(n, m, generator=generator).mul_(2).round_()  # many ties
    return scores, torch.randint(m, (n,), generator=generator)


@pytest.mark.parametrize("ties", POLICIES)
@pytest.mark.filterwarnings("ignore::shortlist.metrics.TieWarning")
def test_batches_add_up_to_the_curve(ties):
    scores, target = examples()
    metric = TopKAccuracy(max_k=9, ties=ties)
    for part, labels in zip(scores.split(33), target.split(33), strict=True):
        metric.update(part, labels)
    expected = topk_accuracy_curve(target.numpy(), scores.numpy(), ties=ties)
    np.testing.assert_allclose(metric.compute(), expected, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::shortlist.metrics.TieWarning")
def test_weights_are_sample_weights():
    scores, target = examples()
    weight = torch.rand(200, dtype=torch.float64)
    metric = TopKAccuracy(4, ties="expected")
    metric.update(scores, target, weight)
    expected = topk_accuracy_curve(
        target.numpy(), scores.numpy(), 4, ties="expected", sample_weight=weight.numpy()
    )
    np.testing.assert_allclose(metric.compute(), expected, rtol=1e-12)


def test_calling_returns_the_batchs_own_accuracy():
    scores, target = examples()
    metric, alone = TopKAccuracy(3), TopKAccuracy(3)
    metric.update(scores[:50], target[:50])
    alone.update(scores[50:], target[50:])
    assert torch.equal(metric(scores[50:], target[50:]), alone.compute())
    metric.reset()
    assert metric.compute().isnan().all()
    metric.update(scores[50:], target[50:])
    assert torch.equal(metric.compute(), alone.compute())


def test_merged_metrics_count_everything():
    scores, target = examples()
    whole = TopKAccuracy(5)
    whole.update(scores, target)
    parts = [TopKAccuracy(5) for _ in range(4)]
    for metric, chunk, labels in zip(parts, scores.chunk(4), target.chunk(4), strict=True):
        metric.update(chunk, labels)
    assert torch.equal(parts[0].merge_state(parts[1:]).compute(), whole.compute())
    with pytest.raises(ValueError, match="cannot merge a metric with max_k=3"):
        whole.merge_state([TopKAccuracy(3)])


def _count_in_process(rank, world_size, store, queue):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world_size
    )
    scores, target = examples()
    metric = TopKAccuracy(5)
    metric.update(scores[rank::world_size], target[rank::world_size])
    queue.put(metric.all_reduce().compute().tolist())
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_processes_agree_after_all_reduce(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=_count_in_process, args=(rank, 2, tmp_path / "store", queue))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    found = [queue.get(timeout=120) for _ in processes]
    for process in processes:
        process.join()
    scores, target = examples()
    whole = TopKAccuracy(5)
    whole.update(scores, target)
    assert found == [whole.compute().tolist()] * 2


def test_dense_layouts_and_ignored_labels():
    generator = torch.Generator().manual_seed(1)
    scores = torch.randn(3, 6, 4, 2, generator=generator)
    target = torch.randint(6, (3, 4, 2), generator=generator)
    target[0] = -100
    metric, rows = TopKAccuracy(3), TopKAccuracy(3)
    metric.update(scores, target)
    rows.update(scores[1:].movedim(1, -1).reshape(-1, 6), target[1:].reshape(-1))
    assert torch.equal(metric.compute(), rows.compute())
    assert metric.total == 16


def test_nan_scores_are_never_hits():
    metric = TopKAccuracy(3)
    metric.update(torch.full((4, 3), torch.nan), torch.tensor([0, 1, 2, 0]))
    assert metric.compute().tolist() == [0, 0, 0]


def test_state_moves_and_is_saved():
    scores, target = examples()
    metric = TopKAccuracy(5)
    metric.update(scores, target)
    twin = TopKAccuracy(5)
    twin.load_state_dict(metric.state_dict())
    assert torch.equal(twin.compute(), metric.compute())
    assert torch.equal(copy.deepcopy(metric).compute(), metric.compute())
    assert "max_k=5" in repr(metric)


def test_half_precision_networks_leave_the_counts_alone():
    scores, target = examples()
    metric = TopKAccuracy(5)
    metric.update(scores, target)
    metric.total += 1e6
    expected = metric.compute()
    assert torch.equal(torch.nn.Sequential(metric).half()[0].compute(), expected)
    assert metric.to("meta").hits.device.type == "meta"
    assert metric.to_empty(device="cpu").hits.tolist() == [0] * 5


def test_counting_leaves_no_graph():
    scores, target = examples()
    scores.requires_grad_()
    metric = TopKAccuracy(2)
    assert not metric(scores, target).requires_grad


def test_errors_name_the_parameter():
    with pytest.raises(ValueError, match="ties must be one of"):
        TopKAccuracy(2, ties="random")
    with pytest.raises(ValueError, match="max_k must be at least 1"):
        TopKAccuracy(0)
    with pytest.raises(ValueError, match="max_k=5 for 3"):
        TopKAccuracy(5).update(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="weight must have the labels' shape"):
        TopKAccuracy(2).update(torch.zeros(2, 3), torch.tensor([0, 1]), torch.ones(3))
    for label in (-1, 3):
        with pytest.raises(ValueError, match=rf"label {label}; labels must lie in \[0, 2\]"):
            TopKAccuracy(2).update(torch.zeros(2, 3), torch.tensor([0, label]))
