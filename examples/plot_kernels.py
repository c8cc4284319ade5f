"""
Kernels: three spirals
======================

Every convex loss also trains in the space of a kernel. Three spirals cannot be told apart by
lines; with an RBF kernel they can, and the second label of the shortlist says which spiral is
next.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

from shortlist import KernelTopKClassifier
from shortlist.plots import PALETTE

rng = np.random.default_rng(0)
n = 130
along = np.sqrt(rng.uniform(0.05, 1.0, size=3 * n))
y = np.repeat([0, 1, 2], n)
angle = 5.0 * along + 2 * np.pi * y / 3 + rng.normal(scale=0.16, size=3 * n)
X = np.column_stack([along * np.cos(angle), along * np.sin(angle)])

model = KernelTopKClassifier("smooth_hinge", kernel="rbf", gamma=12.0, C=3.0, random_state=0)
model.fit(X, y)
print(f"{model.result_.status}, relative gap {model.result_.relative_gap:.1e}")
print(f"{len(model.support_)} of {len(y)} examples are support vectors")

# %%
# Full colour is the label that is ranked first, the stripes on it the second. Examples with a ring
# are the support vectors: the others have no influence on the model, and are not stored.

grid = np.linspace(-1.15, 1.15, 240)
points = np.stack(np.meshgrid(grid, grid), axis=-1).reshape(-1, 2)
first, second = model.predict_topk(points, 2).T.reshape(2, len(grid), len(grid))
rows, columns = np.indices(first.shape)
striped = np.where((rows + columns) % 24 < 6, second, first)

figure, ax = plt.subplots(figsize=(6, 6), layout="constrained")
colours = ListedColormap(PALETTE[:3])
limits = (grid[0], grid[-1], grid[0], grid[-1])
ax.imshow(striped, extent=limits, origin="lower", cmap=colours, alpha=0.35, vmin=0, vmax=2)
support = np.zeros(len(y), dtype=bool)
support[model.support_] = True
ax.scatter(
    *X.T,
    c=y,
    cmap=colours,
    s=np.where(support, 34, 14),
    linewidths=0.9,
    edgecolors=np.where(support, "black", "none"),
)
ax.set(title="First label, with the second in stripes", xticks=[], yticks=[])
plt.show()
