"""
Convergence and certificates
============================

Every fit ends with a duality gap: the objective is proven to be within this of the best possible
one. The proof is computed during training, so it can be watched.
"""

import matplotlib.pyplot as plt
import numpy as np

from shortlist import TopKClassifier
from shortlist.datasets import load_letter
from shortlist.plots import ConvergenceDisplay

letter = load_letter()
results = {}
for C in [0.01, 1.0, 100.0]:
    model = TopKClassifier("smooth_hinge", C=C, tol=1e-6, random_state=0)
    model.fit(letter.X_train, letter.y_train, X_val=letter.X_val, y_val=letter.y_val)
    results[f"C = {C:g}"] = model.result_
    print(f"C = {C:g}: {model.result_.status} after {model.result_.epochs:.0f} epochs")

# %%
# On the left the relative gap, which training stops by. On the right, for one ``C``, what it is
# made of: the primal objective comes down, the dual bound comes up, and the best possible
# objective is between them. Validation accuracy, below, settles long before: that is why the
# default ``tol`` of 0.001 is enough.

figure = plt.figure(figsize=(10, 4.6), layout="constrained")
left, right = figure.subfigures(1, 2)
gaps = left.subplots()
ConvergenceDisplay.from_results(results, x="epoch", tol=1e-3, ax=gaps)
gaps.set(title="Relative duality gap", ylabel="")

history = results["C = 1"].history
epochs = np.array([entry.epoch for entry in history])
best = history[-1].primal
bounds, accuracy = right.subplots(2, 1, sharex=True, height_ratios=(2, 1))
primal = np.array([entry.primal for entry in history]) / best
dual = np.array([entry.dual for entry in history]) / best
bounds.fill_between(epochs, dual, primal, color="C0", alpha=0.15)
bounds.plot(epochs, primal, "o-", markersize=3, label="primal objective")
bounds.plot(epochs, dual, "o-", markersize=3, label="dual bound")
bounds.set(title="Bounds at C = 1, as a share of the optimum", ylim=(0.8, 1.2))
bounds.legend()
accuracy.plot(epochs, [entry.accuracy for entry in history], "o-", color="0.3", markersize=3)
accuracy.set(xlabel="Epochs", ylabel="Accuracy")
plt.show()
