"""Files of the cache that are damaged or exchanged are compiled again, and never unpickled."""

import shutil

import pytest

from tests.jit_cache.probe import PROBE, kernels
from tests.processes import run

DAMAGE = """
import json, random
from pathlib import Path
from shortlist import _probe, _probe_helper
from shortlist._jit import njit

path, kind = Path(PATH), KIND
intact = path.read_bytes()
random.seed(0)

def load_once():
    _probe.helper = _probe_helper.helper = njit(inline=True)(_probe_helper.helper.py_func)
    kernel = njit(_probe.kernel.py_func)
    return kernel(40.0), sum(kernel.stats.cache_hits.values())

def flipped(i):
    data = bytearray(intact)
    data[i] ^= 1 << random.randrange(8)
    return bytes(data)

some = [*range(60), *random.sample(range(60, len(intact)), 60), len(intact) - 1]
damaged = {
    "flipped": [flipped(i) for i in some],
    "cut": [intact[:i] for i in (0, 1, 30, 60, len(intact) // 2, len(intact) - 1)],
    "garbage": [bytes(50), intact + b"x", intact[60:], random.randbytes(len(intact))],
}[kind]
outcomes = []
for data in damaged:
    path.write_bytes(data)
    outcomes.append(load_once())
path.write_bytes(intact)
print(json.dumps({"outcomes": outcomes, "intact": load_once()}))
"""


@pytest.mark.parametrize("kind", ["flipped", "cut", "garbage"])
def test_a_damaged_kernel_is_compiled_again(installed, warm, kind):
    [path] = kernels(warm, "_probe.kernel-*")
    code = DAMAGE.replace("PATH", repr(str(path))).replace("KIND", repr(kind))
    found = run(code, site=installed, NUMBA_CACHE_DIR=warm)
    assert found["outcomes"] == [[42.0, 0]] * len(found["outcomes"])
    assert found["intact"] == [42.0, 1]


def test_a_damaged_part_is_compiled_again(installed, warm):
    [part] = kernels(warm, "_probe_helper.helper-*")
    [whole] = kernels(warm, "_probe.kernel-*")
    intact = part.read_bytes()
    for place in (len(intact) // 3, len(intact) // 2, len(intact) - 50):
        whole.unlink()
        part.write_bytes(intact[:place] + bytes([intact[place] ^ 16]) + intact[place + 1 :])
        found = run(PROBE, site=installed, NUMBA_CACHE_DIR=warm)
        assert (found["answer"], found["compiled"]) == (42.0, 1)
        assert len(part.read_bytes()) == pytest.approx(len(intact), rel=0.01)


def test_a_file_under_another_name_is_refused(installed, warm):
    [doubles] = kernels(warm, "_probe.kernel-*")
    run(PROBE.replace("40.0", "40"), site=installed, NUMBA_CACHE_DIR=warm)
    [integers] = set(kernels(warm, "_probe.kernel-*")) - {doubles}  # two types, two files
    shutil.copy(integers, doubles)
    found = run(PROBE, site=installed, NUMBA_CACHE_DIR=warm)
    assert (found["answer"], found["loaded"]) == (42.0, 0)


def test_nothing_damaged_is_unpickled(installed, warm):
    for path in kernels(warm):
        path.write_bytes(path.read_bytes()[:-1] + b"\0")
    watch = "import pickle\npickle.loads = lambda *_: print('unpickled')\n"
    assert run(watch + PROBE, site=installed, NUMBA_CACHE_DIR=warm)["loaded"] == 0
