"""The torch losses and shortlist.losses are the same functions."""

import numpy as np
import pytest

import torch
from shortlist import losses

from .cases import CASES


@pytest.mark.parametrize("m", [6, 37])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_values_and_gradients_agree(case, m):
    rng = np.random.default_rng(m)
    loss = losses.get(case.name, **case.params)
    module = case.make(reduction="none")
    for scale, margin in [(0.01, 0.0), (1.0, 0.0), (1.0, 3.0), (20.0, 0.0)]:
        scores = rng.normal(size=(30, m)) * scale
        labels = rng.integers(m, size=30)
        scores[np.arange(30), labels] += margin
        tensor = torch.tensor(scores, requires_grad=True)
        found = module(tensor, torch.tensor(labels))
        (gradient,) = torch.autograd.grad(found.sum(), tensor)
        np.testing.assert_allclose(found.detach(), loss.value(scores, labels), atol=1e-10)
        np.testing.assert_allclose(gradient, loss.gradient(scores, labels), atol=1e-10)
