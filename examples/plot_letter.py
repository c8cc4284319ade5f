"""
Letter: the paper's table in small
==================================

Letter has 10500 examples for training, 16 features and 26 classes, and comes with the package.
Four losses are trained for different lengths of the shortlist. For each loss and each k the model
is the one whose ``C`` is best at that k on the validation part, as in the paper. ``shortlist
reproduce letter`` makes the whole table.
"""

import matplotlib.pyplot as plt
import numpy as np

from shortlist import TopKClassifierCV
from shortlist.datasets import load_letter
from shortlist.metrics import topk_error
from shortlist.plots import PALETTE

letter = load_letter()
ks = (1, 2, 3, 5, 7, 10)
methods = {
    "softmax": ("entropy", 1),
    "smooth top-1 hinge": ("smooth_hinge", 1),
    "smooth top-5 hinge": ("smooth_hinge", 5),
    "top-10 entropy": ("entropy", 10),
}

# %%
# One search for each loss: a warm-started path over ``C``, every fit with a certificate.

accuracy = {}
print(f"{'':20}" + "".join(f"{f'top-{k}':>8}" for k in ks))
for name, (loss, k) in methods.items():
    search = TopKClassifierCV(
        loss, k=k, Cs=[0.01, 0.1, 1.0, 10.0], ks=ks, max_extensions=0, random_state=0
    )
    search.fit(letter.X_train, letter.y_train, X_val=letter.X_val, y_val=letter.y_val)
    accuracy[name] = np.array(
        [
            1 - topk_error(letter.y_test, model.decision_function(letter.X_test), k)
            for k, model in search.estimators_.items()
        ]
    )
    print(f"{name:20}" + "".join(f"{share:8.1%}" for share in accuracy[name]))

# %%
# The table as a picture: what a loss gains or loses against softmax, in points. A loss for long
# lists gives away the first place and wins further down.

figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for number, (name, shares) in enumerate(accuracy.items()):
    ax.plot(ks, 100 * (shares - accuracy["softmax"]), "o-", color=PALETTE[number], label=name)
ax.axhline(0, color="0.6", linewidth=1, zorder=0)
ax.set(
    title="Letter: top-k accuracy against softmax's",
    xlabel="Length of the shortlist k",
    ylabel="Points gained",
    xticks=ks,
)
ax.legend()
plt.show()
