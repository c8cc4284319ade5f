"""
Fine-tuning a small network
===========================

The paper's recipe for networks: train with cross-entropy, then go on for a few epochs with a loss
for the length of list that counts. The losses take the place of ``nn.CrossEntropyLoss`` and need
nothing else.
"""

from copy import deepcopy

import matplotlib.pyplot as plt
import torch
from torch import nn

from shortlist.datasets import load_letter
from shortlist.plots import PALETTE
from shortlist.torch import TopKAccuracy, TopKEntropyLoss, TopKHingeLoss

torch.manual_seed(0)
letter = load_letter(dtype="float32")
X, y = torch.from_numpy(letter.X_train), torch.from_numpy(letter.y_train)
X_test, y_test = torch.from_numpy(letter.X_test), torch.from_numpy(letter.y_test)
start = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 26))


def train(network, criterion, epochs, rate):
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate)
    for _ in range(epochs):
        for batch in torch.randperm(len(y)).split(128):
            optimizer.zero_grad()
            criterion(network(X[batch]), y[batch]).backward()
            optimizer.step()
    return network


@torch.inference_mode()
def accuracies(network):
    metric = TopKAccuracy(max_k=8)
    metric.update(network(X_test), y_test)
    return 100 * metric.compute()


train(start, nn.CrossEntropyLoss(), epochs=8, rate=5e-3)
before = accuracies(start)
print("before:", " ".join(f"top-{k} {before[k - 1]:.1f}%" for k in (1, 3, 5)))

# %%
# Five more epochs with each loss, from the same network and at the same rate.

criteria = {
    "cross-entropy": nn.CrossEntropyLoss(),
    "top-5 entropy": TopKEntropyLoss(k=5),
    "smooth top-5 hinge": TopKHingeLoss(k=5, smoothing=1.0),
}
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for colour, (name, criterion) in zip(PALETTE, criteria.items(), strict=False):
    torch.manual_seed(1)
    after = accuracies(train(deepcopy(start), criterion, epochs=5, rate=2e-3))
    ax.plot(range(1, 9), after - before, "o-", color=colour, label=name)
ax.axhline(0, color="0.6", linewidth=1, zorder=0)
ax.set(
    title="Gain of five epochs of fine-tuning",
    xlabel="Length of the shortlist k",
    ylabel="Points of top-k accuracy",
)
ax.legend()
plt.show()
