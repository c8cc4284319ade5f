"""Results do not depend on which process compiled the kernels, to the bit."""

import pytest

from tests.processes import answer, start

# Blocks, certificates and descents, of a loss whose name is put in.
FIT = """
import hashlib, json
import numpy as np
from shortlist import TopKClassifier
random = np.random.default_rng(0)
y = random.integers(0, 30, 1500)
X = random.normal(size=(30, 64))[y] + 1.5 * random.normal(size=(1500, 64))
found = []
for dtype in (np.float32, np.float64):
    model = TopKClassifier("{}", C=0.1, tol=1e-4, random_state=0).fit(X.astype(dtype), y)
    result = model.result_
    bits = model.coef_.tobytes() + np.array([result.primal, result.dual]).tobytes()
    found.append(hashlib.sha256(bits).hexdigest())
print(json.dumps(found))
"""
# Compiling takes a minute of a processor or two, and others may use it too.
SECONDS = 1800


def bits(loss, **settings):
    return answer(start(FIT.format(loss), **settings), SECONDS)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "other"), [("hinge", "softmax"), ("softmax", "hinge")])
def test_who_compiled_the_kernels_does_not_matter(tmp_path, loss, other):
    """A process that compiles all, one that compiles nothing, and one that finds some parts."""
    cold = bits(loss, NUMBA_CACHE_DIR=tmp_path / "own")
    assert bits(loss, NUMBA_CACHE_DIR=tmp_path / "own") == cold
    bits(other, NUMBA_CACHE_DIR=tmp_path / "shared")
    assert bits(loss, NUMBA_CACHE_DIR=tmp_path / "shared") == cold
