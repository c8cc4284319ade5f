"""What a release checks: one version everywhere, and forms that parse."""

import importlib.util
from pathlib import Path

import pytest

import shortlist

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "requirements" / "release.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_file_names_the_same_version(release):
    assert set(release.versions().values()) == {shortlist.__version__}
    release.check_versions(None)


def test_a_tag_must_be_the_version(release):
    with pytest.raises(SystemExit, match=r"versions differ: .*the tag 999\.0"):
        release.check_versions("v999.0")
