"""
Conformal shortlists
====================

A shortlist of fixed length is too long for easy examples and too short for hard ones. Calibrated
on held-out data, a :class:`~shortlist.conformal.ConformalShortlist` is as long as each example
needs, and holds the right label as often as asked.
"""

import matplotlib.pyplot as plt
import numpy as np

from shortlist import TopKClassifier
from shortlist.conformal import ConformalShortlist
from shortlist.datasets import load_letter
from shortlist.plots import ConformalDisplay

letter = load_letter()
names = np.array(letter.target_names)
model = TopKClassifier("smooth_hinge", k=5, C=1.0, random_state=0)
model.fit(letter.X_train, letter.y_train)
sets = ConformalShortlist(model, confidence_level=0.95).conformalize(letter.X_val, letter.y_val)

# %%
# Some sets of the test part. A short one says that the model is sure.

members = sets.predict_set(letter.X_test[:6])
for row, truth in enumerate(letter.y_test[:6]):
    print(f"{names[truth]}:", " ".join(names[members[[row]].indices]))

# %%
# On the left how long the sets are, on the right what coverage costs in length. Sets of mean
# length L are right more often than lists that all have length L.

ConformalDisplay.from_estimator(sets, letter.X_test, letter.y_test, name="margin")
plt.show()
