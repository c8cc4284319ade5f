"""Results do not depend on where arrays happen to lie in memory, to the bit.

LLVM can make two loops of one, with SIMD and without, and choose by the distance of the arrays; the
two round differently. So kernels that reorder sums promise that their arrays do not overlap.
"""

import numpy as np
import pytest

from shortlist import losses
from shortlist._jit import njit
from shortlist.losses import kernels
from tests.processes import answer, start

# Where the second and the third array begin: entries from the first one's and the second's.
PLACES = [(near, far) for near in (26, 40, 47, 90) for far in (-300, -220, -142, 26, 40, 90, 400)]
BEGIN = 1000


@njit
def _gradient(loss, f, y, v, work):
    return kernels.value_gradient(loss, f, y, v, work)


@njit
def _visit(loss, s, y, start, v, delta, work):
    return kernels.ascend(loss, s, y, 10.0, 1.0, start, 1, v, delta, work)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "k"), [("entropy", 1), ("entropy", 2), ("ova_logistic", 1)])
def test_where_arrays_lie_does_not_matter(name, k, dtype):
    spec, m = losses.get(name, k=k).spec, 26
    scores = 3.0 * np.random.default_rng(0).normal(size=(6, m))
    room = np.zeros(4000, dtype)
    found = set()
    for near, far in PLACES:
        second = BEGIN + near
        f, v, delta = room[BEGIN : BEGIN + m], room[second : second + m], room[3000 : 3000 + m]
        work = room[second + far : second + far + 2 * m].reshape(2, m)
        v[:] = 0
        last = np.zeros(2)
        bits = b""
        for row in scores:
            f[:] = row
            bits += np.float64(_gradient(spec, f, 1, delta, work)).tobytes() + delta.tobytes()
            _visit(spec, f, 1, last, v, delta, work)
            bits += v.tobytes() + delta.tobytes()
        found.add(bits)
    assert len(found) == 1


# Kernels as Python functions, each watched for arrays that overlap and change.
WATCHED = """
import json, warnings
import numpy as np
from shortlist import _jit

overlapping, watched = set(), set()

def arrays(arguments):
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            yield argument
        elif isinstance(argument, tuple):
            yield from arrays(argument)

def watch(function):
    def called(*arguments):
        watched.add(function.__name__)
        found = list(arrays(arguments))
        before = [array.copy() for array in found]
        result = function(*arguments)
        changed = [(a != b).any() for a, b in zip(found, before)]
        for i in range(len(found)):
            for j in range(i):
                if (changed[i] or changed[j]) and np.shares_memory(found[i], found[j]):
                    overlapping.add(function.__name__)
        assert not any(True for _ in arrays([result])), function.__name__
        return result
    return called

def njit(function=None, *, sums=False, **others):
    if function is None:
        return lambda f: njit(f, sums=sums)
    return watch(function) if sums else function

_jit.njit = njit
from scipy.sparse import csr_array
from shortlist import TopKClassifier

warnings.simplefilter("ignore")
random = np.random.default_rng(0)
X, y = random.normal(size=(14, 3)), np.arange(14) % 5
names = ["hinge", "smooth_hinge", "entropy", "ova_hinge", "ova_smooth_hinge", "ova_logistic"]
for name in names:
    for k in (1,) if name.startswith("ova") else (1, 2):
        for variant in ("alpha", "beta") if k > 1 else ("alpha",):
            model = TopKClassifier(name, k=k, variant=variant, C=5.0, tol=1e-5, max_epochs=3)
            model.fit(X, y)
            model.fit(csr_array(X.astype(np.float32)), y)
print(json.dumps([sorted(overlapping), len(watched)]))
"""


def test_kernels_that_reorder_sums_get_arrays_that_do_not_overlap():
    overlapping, count = answer(start(WATCHED, NUMBA_DISABLE_JIT=1), 300)
    assert overlapping == []
    assert count >= 15
