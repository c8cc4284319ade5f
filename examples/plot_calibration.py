"""
Calibration on the simplex of three classes
===========================================

With endless data, does minimising a loss minimise the top-k error? A loss for which it does,
whatever the probabilities of the classes, is top-k calibrated. With three classes all
probabilities are the points of a triangle, so the question can be answered by a picture.
"""

import matplotlib.pyplot as plt

from shortlist import losses
from shortlist.plots import CalibrationSimplexDisplay

shown = {
    "hinge, k = 1": losses.get("hinge"),
    "smooth hinge, k = 1": losses.get("smooth_hinge"),
    "softmax, k = 1": losses.get("softmax"),
}

# %%
# At a corner one class is certain. Blue is what it costs, in expected loss, to choose scores with
# a wrong shortlist: the darker, the more the loss insists on the right one. Orange is where the
# scores of least loss have a wrong shortlist.

figure, axes = plt.subplots(1, 3, figsize=(11, 3.6), layout="constrained")
for ax, (title, loss) in zip(axes, shown.items(), strict=True):
    CalibrationSimplexDisplay.from_loss(loss, n_steps=24, ax=ax, title=title)
plt.show()

# %%
# The hinge fails where no class has half of the probability: its best scores are all equal there.
# A little smoothing puts it right.
