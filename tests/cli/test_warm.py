"""Kernels compiled ahead are there when a fit needs them."""

import json
import os
import subprocess
import sys

import pytest

from tests.cli.conftest import environment
from tests.processes import run

LATER = """
import json
import numpy as np
from scipy import sparse
from shortlist import TopKClassifier
from shortlist._compiling import compilation

rng = np.random.default_rng(0)
for n, d, m in [(150, 4, 3), (900, 128, 90)]:
    X, y = rng.normal(size=(n, d)), np.arange(n) % m
    for data in (X, sparse.csr_array(X)):
        TopKClassifier(random_state=0, tol=0.1).fit(data, y)
print(json.dumps(compilation.seconds))
"""


def warm(*options: str, **settings: object) -> subprocess.CompletedProcess:
    """Run the command as a module of the package, in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "shortlist", "warm", *options],
        env={**environment(), **{name: str(value) for name, value in settings.items()}},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
def test_later_fits_compile_nothing(tmp_path):
    options = ("--loss", "softmax", "--dtype", "float64")
    ended = warm(*options, "--json", "-q", NUMBA_CACHE_DIR=tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    facts = json.loads(ended.stdout)
    files = [*tmp_path.rglob("*.kernel")]
    assert facts["folder"] == str(files[0].parent)
    assert facts["kernels"] == len(files)
    assert facts["bytes"] == sum(path.stat().st_size for path in files)
    assert facts["compile_seconds"] > 0
    assert run(LATER, NUMBA_CACHE_DIR=tmp_path) == 0.0

    again = warm(*options, NUMBA_CACHE_DIR=tmp_path)
    assert again.stdout.startswith(f"compiled for 0 s; {len(files)} kernels (")
    assert again.stdout.endswith(f"are kept in {facts['folder']}\n")
    assert warm(*options, "-q", NUMBA_CACHE_DIR=tmp_path).stdout == ""


def test_it_fails_where_nothing_can_be_kept(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    ended = warm(NUMBA_CACHE_DIR=tmp_path / "file")
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr.startswith("shortlist: compiled kernels cannot be kept: ")
    assert ended.stderr.count(os.linesep) == 1

    ended = warm(NUMBA_DISABLE_JIT=1)
    assert ended.returncode == 1
    assert "NUMBA_DISABLE_JIT" in ended.stderr


def test_a_loss_is_compiled_once_however_it_is_called():
    from shortlist.cli.options import LossName, Precision
    from shortlist.cli.warm import _fits

    fits = [*_fits([LossName.entropy, LossName.softmax, LossName.ova_hinge], [Precision.float32])]
    assert len(fits) == len(set(fits)) == 6
    assert {(fit.loss, fit.k) for fit in fits} == {("entropy", 1), ("entropy", 3), ("ova_hinge", 1)}
