"""
A linear probe on embeddings
============================

Can a frozen network's features tell apart classes it has never seen? A small network is trained on
half of the alphabet. A linear probe on its features then learns the other half, with ``C``
searched over nine decades.
"""

import matplotlib.pyplot as plt
import numpy as np
import torch
from torch import nn

from shortlist import TopKClassifierCV
from shortlist.datasets import load_letter
from shortlist.plots import SearchDisplay

torch.manual_seed(0)
letter = load_letter(dtype="float32")
seen = letter.y_train < 13

# %%
# The backbone: one hidden layer, trained on A to M, then frozen.

backbone = nn.Sequential(nn.Linear(16, 256), nn.ReLU())
network = nn.Sequential(backbone, nn.Linear(256, 13))
optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3)
X, y = torch.from_numpy(letter.X_train[seen]), torch.from_numpy(letter.y_train[seen])
for _ in range(15):
    for batch in torch.randperm(len(y)).split(128):
        optimizer.zero_grad()
        nn.functional.cross_entropy(network(X[batch]), y[batch]).backward()
        optimizer.step()


@torch.inference_mode()
def embed(X):
    return backbone(torch.from_numpy(X)).numpy()


# %%
# The probe: one call searches ``C`` for every k on the validation part, and certifies each fit.
# ``summary`` is its table.

parts = {
    name: (X[y >= 13], y[y >= 13])
    for name, X, y in [
        ("train", letter.X_train, letter.y_train),
        ("val", letter.X_val, letter.y_val),
        ("test", letter.X_test, letter.y_test),
    ]
}


def probe(transform):
    (X, y), (X_val, y_val) = parts["train"], parts["val"]
    search = TopKClassifierCV(Cs=np.logspace(-4, 4, 9), ks=(1, 3), random_state=0)
    return search.fit(transform(X), y, X_val=transform(X_val), y_val=y_val)


searches = {"raw features": probe(np.asarray), "embeddings": probe(embed)}
print(searches["embeddings"].summary())

# %%
# Accuracy against ``C``, with a mark at the value chosen for each k.

figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, search) in zip(axes, searches.items(), strict=True):
    SearchDisplay.from_estimator(search, ax=ax)
    X_test, y_test = parts["test"]
    X_test = embed(X_test) if name == "embeddings" else X_test
    ax.set_title(f"{name}: {search.score(X_test, y_test):.1%} on the test part")
plt.show()
