"""Model files, edited as an attacker could edit them."""

import json
import struct

import pytest
import safetensors.numpy

from shortlist._state_files import digest
from shortlist.errors import DataError, ModelFileError
from shortlist.persistence import load


def refused(path):
    """Return the message with which both readers refuse a file: one line that names it."""
    with pytest.raises(ModelFileError) as loading:
        load(path)
    message = str(loading.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    assert isinstance(loading.value, DataError)
    assert isinstance(loading.value, ValueError)
    return message.removeprefix(f"{path}: ")


def own_entry(path):
    """Return what a file says of itself, as plain data."""
    whole = path.read_bytes()
    end = 8 + struct.unpack("<Q", whole[:8])[0]
    return json.loads(json.loads(whole[8:end])["__metadata__"]["shortlist-model"])


def rewrite(path, arrays=None, **changes):
    """Change a file's entries or arrays, with a checksum that fits, as an attacker could."""
    arrays = safetensors.numpy.load(path.read_bytes()) if arrays is None else arrays
    own = {**own_entry(path), **changes}
    own["sha256"] = digest(own["state"], arrays)
    metadata = {"shortlist-model": json.dumps(own)}
    path.write_bytes(safetensors.numpy.save(arrays, metadata=metadata))
