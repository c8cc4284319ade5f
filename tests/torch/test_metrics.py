"""TopKAccuracy against shortlist.metrics, over batches, processes and layouts."""

import copy
import io

import numpy as np
import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from shortlist.metrics import topk_accuracy_curve
from shortlist.torch import TopKAccuracy

POLICIES = ["expected", "optimistic", "pessimistic"]


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
    np.testing.assert_allclose(metric.compute(), expected, rtol=3e-7)
    assert metric.total == 200
    assert metric.compute().dtype == torch.float32


def test_a_constant_network_scores_what_guessing_does():
    metric = TopKAccuracy(4)
    metric.update(torch.zeros(10, 8), torch.arange(10) % 8)
    np.testing.assert_allclose(metric.compute(), [1 / 8, 2 / 8, 3 / 8, 4 / 8], rtol=1e-6)


def test_counts_stay_exact_beyond_single_precision():
    # 2^24 + 1 is the first whole number that single precision lacks.
    metric = TopKAccuracy(2, ties="pessimistic")
    hit, miss = torch.tensor([[2.0, 1.0, 0.0]]), torch.tensor([[1.0, 2.0, 3.0]])
    metric.update(hit, torch.tensor([0]), torch.tensor([2.0**30]))
    for _ in range(1000):
        metric.update(hit, torch.tensor([0]))
        metric.update(miss, torch.tensor([0]))
    high, low = metric.get_extra_state()[0].double()
    assert (high + low).tolist() == [2**30 + 1000, 2**30 + 1000, 2**30 + 2000]


def test_nothing_is_computed_in_double_precision():
    class NoDoubles(TorchDispatchMode):
        def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
            result = operator(*args, **(kwargs or {}))
            for tensor in result if isinstance(result, tuple | list) else [result]:
                assert getattr(tensor, "dtype", None) != torch.float64, operator
            return result

    scores, target = examples()
    with NoDoubles():
        metric = TopKAccuracy(3)
        metric.update(scores, target, torch.rand(200))
        metric.merge_state([metric])
        metric(scores, target)
        metric.compute()


@pytest.mark.filterwarnings("ignore::shortlist.metrics.TieWarning")
def test_weights_are_sample_weights():
    scores, target = examples()
    weight = torch.rand(200, dtype=torch.float64)
    metric = TopKAccuracy(4, ties="expected")
    metric.update(scores, target, weight)
    expected = topk_accuracy_curve(
        target.numpy(), scores.numpy(), 4, ties="expected", sample_weight=weight.numpy()
    )
    np.testing.assert_allclose(metric.compute(), expected, rtol=1e-6)


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
    torch.testing.assert_close(parts[0].merge_state(parts[1:]).compute(), whole.compute())
    assert parts[0].total == 200
    with pytest.raises(ValueError, match="cannot merge a metric with max_k=3"):
        whole.merge_state([TopKAccuracy(3)])


def _count_in_process(rank, world_size, store, queue):
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=rank, world_size=world_size
    )
    scores, target = examples()
    own, labels = scores[rank::world_size], target[rank::world_size]
    # The network's own buffer is broadcast before every pass; what the metric counts must not be.
    network = torch.nn.Sequential(torch.nn.BatchNorm1d(9), torch.nn.Linear(9, 9))
    network[1].metric = metric = TopKAccuracy(5)
    parallel = torch.nn.parallel.DistributedDataParallel(network)
    found = []
    for part, part_labels in zip(own.split(50), labels.split(50), strict=True):
        parallel(part).sum().backward()
        metric.update(part, part_labels)
        parallel(part)
        metric.all_reduce()
        once = metric.compute()
        assert torch.equal(metric.all_reduce().compute(), once)
        found.append(metric.hits.tolist() + [metric.total.item()])
    queue.put(found)
    torch.distributed.destroy_process_group()


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_processes_agree_and_count_every_example_once(tmp_path):
    context = torch.multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [
        context.Process(target=_count_in_process, args=(rank, 2, tmp_path / "store", queue))
        for rank in range(2)
    ]
    for process in processes:
        process.start()
    first, second = (queue.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    assert first == second
    scores, target = examples()
    for found, count in zip(first, (100, 200), strict=True):
        whole = TopKAccuracy(5)
        whole.update(scores[:count], target[:count])
        np.testing.assert_allclose(found[:-1], whole.hits, rtol=1e-6)
        assert found[-1] == count


def test_metrics_that_share_their_counts_are_not_merged(monkeypatch):
    monkeypatch.setattr(torch.distributed, "get_world_size", lambda group: 1)
    monkeypatch.setattr(
        torch.distributed, "all_gather", lambda parts, own, group: parts[0].copy_(own)
    )
    scores, target = examples()
    reduced, fresh = TopKAccuracy(5), TopKAccuracy(5)
    reduced.update(scores, target)
    twin = copy.deepcopy(reduced.all_reduce())
    with pytest.raises(ValueError, match="cannot merge two metrics after all_reduce"):
        reduced.merge_state([twin])
    assert fresh.merge_state([reduced]).total == reduced.total == 200


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
    buffer = io.BytesIO()
    torch.save(metric.state_dict(), buffer)
    buffer.seek(0)
    twin.load_state_dict(torch.load(buffer, weights_only=True))
    assert torch.equal(twin.compute(), metric.compute())
    twin.update(scores, target)
    assert (twin.total, metric.total) == (400, 200)
    with pytest.raises(ValueError, match="counts for max_k=5, not 3"):
        TopKAccuracy(3).load_state_dict(metric.state_dict())
    assert not list(metric.buffers())
    assert torch.equal(copy.deepcopy(metric).compute(), metric.compute())
    assert "max_k=5" in repr(metric)


def test_half_precision_networks_leave_the_counts_alone():
    scores, target = examples()
    metric = TopKAccuracy(5)
    metric.update(scores, target)
    expected = metric.compute()
    assert torch.equal(torch.nn.Sequential(metric).half()[0].compute(), expected)
    assert metric.total == 200
    assert metric.to("meta").hits.device.type == "meta"
    assert metric.to_empty(device="cpu").hits.tolist() == [0] * 5


def test_counting_leaves_no_graph():
    scores, target = examples()
    scores.requires_grad_()
    metric = TopKAccuracy(2)
    assert not metric(scores, target).requires_grad


def test_counting_goes_on_outside_of_inference_mode():
    scores, target = examples()
    with torch.inference_mode():
        metric = TopKAccuracy(2)
        metric.update(scores, target)
    metric.update(scores, target)
    assert metric.total == 400
    metric.reset()
    assert metric.total == 0


def test_errors_name_the_parameter():
    with pytest.raises(ValueError, match="ties must be one of"):
        TopKAccuracy(2, ties="random")
    with pytest.raises(ValueError, match="max_k must be 1 or larger; got "):
        TopKAccuracy(0)
    with pytest.raises(ValueError, match="max_k=5 for 3"):
        TopKAccuracy(5).update(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="weight must have the labels' shape"):
        TopKAccuracy(2).update(torch.zeros(2, 3), torch.tensor([0, 1]), torch.ones(3))
    for label in (-1, 3):
        with pytest.raises(ValueError, match=rf"label {label}; labels must lie in \[0, 2\]"):
            TopKAccuracy(2).update(torch.zeros(2, 3), torch.tensor([0, label]))
