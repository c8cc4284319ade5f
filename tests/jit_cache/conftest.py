"""The probe, installed, and a cache that it has filled."""

import shutil
from pathlib import Path

import pytest

from tests.jit_cache.probe import PROBE, install
from tests.processes import run


@pytest.fixture
def installed(tmp_path):
    """A copy of the package, as far as kernels need it, in a folder of its own."""
    return install(tmp_path / "site")


@pytest.fixture(scope="package")
def compiled(tmp_path_factory):
    """A cache that a process has filled, by the probe of a copy like ``installed``."""
    folder = tmp_path_factory.mktemp("compiled")
    run(PROBE, site=install(folder / "site"), NUMBA_CACHE_DIR=folder / "cache")
    return folder / "cache"


@pytest.fixture
def warm(compiled, tmp_path):
    """A copy of the filled cache."""
    return Path(shutil.copytree(compiled, tmp_path / "warm"))
