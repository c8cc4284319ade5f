"""Made-up results of paths over C, for tests of tables and remarks."""

import numpy as np

from shortlist.datasets import LabeledData
from shortlist.experiments.comparison import Dataset
from shortlist.experiments.parts import Parts
from shortlist.experiments.protocol import Chosen, Model, PathResult

KS = (1, 3, 5, 10)
LETTER = Dataset.named("letter")
# As many examples to train on as Letter has, and 100 each for validation and test.
TRAIN = LabeledData(np.zeros((10_500, 16)), np.arange(10_500) % 26)
TEST = LabeledData(np.zeros((100, 16)), np.zeros(100))
PARTS = Parts("letter", TRAIN, TEST, TEST)


def result(by_C, k, method="lr-multi", hits=None, status="converged"):
    """A result whose validation and test accuracies at k are given for each C."""
    models = []
    for C, (val, test) in by_C.items():
        on_val, on_test = [0.0] * 10, [0.0] * 10
        on_val[k - 1], on_test[k - 1] = val, test
        models.append(Model(C, 1.0, 1e-4, 5, 0.1, status, tuple(on_val), tuple(on_test)))
    best = max(models, key=lambda model: model.val[k - 1])
    hits = np.zeros(100, bool) if hits is None else hits
    chosen = {each: Chosen.of(best, hits) for each in KS}
    return PathResult(method, tuple(models), chosen, 1.0, 1.0)
