"""
Losses and their gradients
==========================

A loss is a function of the scores of all classes. Here the true label's score varies, one rival is
far ahead at 3, and eight other labels lie below 1. A top-1 loss keeps pulling until the true label
has passed the rival; a top-2 loss lets go earlier.
"""

import matplotlib.pyplot as plt
import numpy as np

from shortlist import losses
from shortlist.plots import LossDisplay

shown = {
    "softmax": losses.get("softmax"),
    "smooth hinge": losses.get("smooth_hinge", smoothing=0.5),
    "top-2 entropy": losses.get("entropy", k=2),
    "smooth top-2 hinge": losses.get("smooth_hinge", k=2, smoothing=0.5),
    "truncated top-2 entropy": losses.get("truncated_entropy", k=2),
}

# %%
# ``loss.gradient`` has the derivative for every label. The one for the true label is minus the
# pull on its score.

base = np.array([0.0, 3.0, 1.0, 0.5, 0.0, -0.5, -1.0, -1.5, -2.0, -2.5])
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 7), sharex=True, layout="constrained")
display = LossDisplay.from_losses(shown, base=base, limits=(-2.0, 6.0), error_ks=(1, 2), ax=above)
above.set(xlabel="", title="Loss, and the errors it stands for")
scores = np.tile(base, (len(display.t), 1))
scores[:, 0] = display.t
for line, loss in zip(display.lines_, shown.values(), strict=True):
    gradient = loss.gradient(scores, np.zeros(len(scores), dtype=int))
    below.plot(display.t, -gradient[:, 0], color=line.get_color(), linewidth=line.get_linewidth())
below.set(
    title="Pull on the true label's score",
    xlabel="Score of the true label (the rival is at 3)",
    ylabel="Minus the derivative",
)
below.grid(color="0.9")
below.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Between 1 and 3 the true label is second: wrong for the top-1 error, right for the top-2 error.
# The hinge pulls with full force until the true label leads by a margin of one. The top-2 hinge
# averages the margins to two rivals and lets go one unit earlier. The truncated entropy leaves the
# strongest rival out, and pulls with about half the force of softmax there.
