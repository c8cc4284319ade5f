"""
Three classes on a circle
=========================

The paper's own example of where top-k losses matter. Points lie on the unit circle, and three
classes overlap on long stretches of it. A linear model cannot put the right label first
everywhere. Softmax tries all the same, and spends on the first place what would have been enough
for a good shortlist of two.
"""

import matplotlib.pyplot as plt

from shortlist import TopKClassifier
from shortlist.datasets import make_circle
from shortlist.metrics import topk_accuracy_curve
from shortlist.plots import CirclePredictionsDisplay

X, y = make_circle(300, random_state=0)
X_test, y_test = make_circle(20_000, random_state=1)

# %%
# The rings show the shortlist in every direction: the inner ring is the label that is ranked
# first, the outer ring the second. The samples are inside. Count how often a sample's colour is in
# one of the two rings beside it.

figure, axes = plt.subplots(1, 3, figsize=(11, 4.4), layout="constrained")
shown = {"softmax": 1, "smooth_hinge": 2, "truncated_entropy": 2}
for ax, (loss, k) in zip(axes, shown.items(), strict=True):
    model = TopKClassifier(loss, k=k, C=100.0, fit_intercept=False, random_state=0).fit(X, y)
    top1, top2 = topk_accuracy_curve(y_test, model.decision_function(X_test), max_k=2)
    title = f"{loss.replace('_', ' ')}, k = {k}\ntop-1 {top1:.0%}, top-2 {top2:.0%}"
    CirclePredictionsDisplay.from_estimator(model, X, y, ax=ax, title=title)
plt.show()

# %%
# The truncated entropy ignores the rival that is ranked first. It gives up the first place and
# gains the second. It is not convex, so there is no certificate for it: training starts from
# softmax's solution and descends.
