"""Model files that are cut short, damaged, foreign or forged are refused in one line."""

import errno
import pickle
import struct
import sys

import numpy as np
import pytest
import safetensors.numpy

import shortlist
from shortlist.errors import ModelFileError
from shortlist.persistence import describe, load, save
from tests.model_files import refused, rewrite
from tests.persistence.fake import Fake, same


def test_every_way_to_cut_a_file_short_is_noticed(saved):
    whole = saved.read_bytes()
    for size in range(len(whole)):
        saved.write_bytes(whole[:size])
        message = refused(saved)
        assert "cut short" in message or size < 200


def test_every_damaged_byte_of_the_arrays_is_noticed(saved):
    whole = saved.read_bytes()
    start = 8 + struct.unpack("<Q", whole[:8])[0]
    for place in range(start, len(whole)):
        broken = bytearray(whole)
        broken[place] ^= 0x10
        saved.write_bytes(broken)
        assert "is damaged" in refused(saved)


def test_damage_to_the_header_is_noticed(saved, model):
    whole = saved.read_bytes()
    end = 8 + struct.unpack("<Q", whole[:8])[0]
    for place in range(0, end, 3):
        broken = bytearray(whole)
        broken[place] ^= 0x01
        saved.write_bytes(broken)
        try:
            back = load(saved)
        except ModelFileError:
            continue
        # Only Shortlist's version number may be changed without harm.
        np.testing.assert_array_equal(back.arrays["coef_"], model.arrays["coef_"])
        assert same(back.meta, model.meta)
        assert describe(saved).shortlist_version != shortlist.__version__


def test_bytes_after_the_end(saved):
    saved.write_bytes(saved.read_bytes() + b"more")
    assert "is damaged" in refused(saved)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"hello, world" * 10,
        bytes(100),
        pickle.dumps({"a": 1}),
        b"PK\x03\x04" + bytes(50),
    ],
    ids=["empty", "json", "text", "zeros", "pickle", "zip"],
)
def test_other_files(tmp_path, content):
    path = tmp_path / "model"
    path.write_bytes(content)
    assert refused(path) == "is not a Shortlist model file"


def test_a_safetensors_file_of_someone_else(tmp_path):
    path = tmp_path / "other.safetensors"
    path.write_bytes(safetensors.numpy.save({"w": np.ones(3)}, metadata={"format": "pt"}))
    assert refused(path) == "is not a Shortlist model file"


def test_missing_file_and_directory(tmp_path):
    assert refused(tmp_path / "gone") == "no such file"
    assert refused(tmp_path) == "is a directory, not a file"


def test_no_permission(saved, monkeypatch):
    def refuse(*args, **kwargs):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr("builtins.open", refuse)
    assert refused(saved) == "no permission to read this file"


def test_a_newer_format(saved):
    rewrite(saved, format_version=2, shortlist="9.0")
    message = refused(saved)
    assert message.startswith("was written by a newer Shortlist (9.0, file format 2;")
    assert message.endswith("upgrade Shortlist")


def test_a_class_that_is_not_registered_is_never_imported(saved):
    rewrite(saved, estimator="antigravity")
    assert "unknown class 'antigravity'" in refused(saved)
    assert "antigravity" not in sys.modules


def stored(dtype, shape):
    """Return a state that says its one array is of this type and shape."""
    entry = {"name": "coef_", "dtype": dtype, "shape": shape}
    return {"arrays": {"coef_": {"$array": entry}}, "meta": {}}


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({"arrays": {"coef_": {"$array": {"name": "gone"}}}, "meta": {}}, "gone"),
        (stored("<f8", [4, 3]), r"array 'coef_' is <f8 (3, 4), not <f8 (4, 3)"),
        (stored("<f4", [3, 4]), r"array 'coef_' is <f8 (3, 4), not <f4 (3, 4)"),
        ({"arrays": {}}, "meta"),
        ({"arrays": {}, "meta": {"$object": "os.system"}}, "unknown entry '$object'"),
        ({"arrays": {}, "meta": {"$tuple": [], "$dict": []}}, "unknown entry"),
        ({"arrays": {"coef_": {"$items": {"kind": "text", "shape": [9], "items": []}}}}, "reshape"),
        ({"arrays": {"coef_": {"$items": {"kind": "text", "shape": [1], "items": [1]}}}}, "text"),
        ({"arrays": {"coef_": {"$float": "1e5"}}, "meta": {}}, "1e5"),
        ([], "list"),
    ],
)
def test_a_state_that_does_not_fit(saved, state, problem):
    rewrite(saved, state=state)
    message = refused(saved)
    assert message.startswith("does not hold a complete model")
    assert problem in message


def test_a_state_that_the_class_refuses(tmp_path):
    save(Fake({"coef_": np.ones(3)}, {}), tmp_path / "m")
    assert "coef_ must have two dimensions" in refused(tmp_path / "m")
