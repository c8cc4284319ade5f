"""What a release checks: one version everywhere, and forms that parse."""

import importlib.metadata
import importlib.util
import json
import subprocess
import sys
import tomllib
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


def test_the_bill_of_materials_names_what_is_installed():
    script = ROOT / "requirements" / "supply_chain.py"
    done = subprocess.run([sys.executable, script, "sbom"], capture_output=True, check=True)
    bill = json.loads(done.stdout)
    listed = {each["name"]: each["version"] for each in bill["components"]}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for text in project["dependencies"]:
        name = text.partition(">")[0]
        assert listed[name] == importlib.metadata.version(name)
    # What is needed by what is needed, too.
    assert listed["llvmlite"] == importlib.metadata.version("llvmlite")
    named = {bill["metadata"]["component"]["purl"], *(c["purl"] for c in bill["components"])}
    assert {each["ref"] for each in bill["dependencies"]} == named
    for each in bill["dependencies"]:
        assert set(each["dependsOn"]) <= named
