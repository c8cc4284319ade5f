"""The torch losses and shortlist.losses are the same functions, on the list of all losses."""

import numpy as np
import pytest
import torch

from shortlist.torch import (
    OVAHingeLoss,
    OVALogisticLoss,
    TopKEntropyLoss,
    TopKHingeLoss,
    TruncatedTopKEntropyLoss,
)
from tests.instances import INSTANCES, Instance, by_id


def module(instance: Instance) -> torch.nn.Module:
    k, variant, gamma = instance.k, instance.variant, instance.smoothing
    make = {
        "hinge": lambda: TopKHingeLoss(k, 0.0, variant, reduction="none"),
        "smooth_hinge": lambda: TopKHingeLoss(k, gamma, variant, reduction="none"),
        "entropy": lambda: TopKEntropyLoss(k, variant, reduction="none"),
        "truncated_entropy": lambda: TruncatedTopKEntropyLoss(k, reduction="none"),
        "ova_hinge": lambda: OVAHingeLoss(0.0, reduction="none"),
        "ova_smooth_hinge": lambda: OVAHingeLoss(gamma, reduction="none"),
        "ova_logistic": lambda: OVALogisticLoss(reduction="none"),
    }
    return make[instance.name]()


@pytest.mark.parametrize("instance", [row for row in INSTANCES if not row.beyond], ids=by_id)
def test_values_and_gradients_agree(instance):
    loss, torch_loss = instance.loss(), module(instance)
    for seed, (scale, margin) in enumerate([(0.01, 0.0), (1.0, 0.0), (1.0, 3.0), (20.0, 0.0)]):
        scores, labels = instance.scores(seed, 40, scale), instance.labels(seed, 40)
        scores[np.arange(40), labels] += margin
        tensor = torch.tensor(scores, requires_grad=True)
        found = torch_loss(tensor, torch.tensor(labels))
        (gradient,) = torch.autograd.grad(found.sum(), tensor)
        np.testing.assert_allclose(found.detach(), loss.value(scores, labels), atol=1e-10)
        np.testing.assert_allclose(gradient, loss.gradient(scores, labels), atol=1e-10)
