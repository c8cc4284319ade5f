""".npy and .npz files whose headers, sizes or checksums lie."""

import io
import struct
import zipfile

import numpy as np
import pytest

from shortlist.datasets import read_dataset
from shortlist.datasets.npy import Archive
from shortlist.errors import DataError

X = np.arange(12.0).reshape(4, 3)
Y = np.array([0, 1, 0, 1])


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array), version=version)
    return file.getvalue()


def with_header(text, data=b""):
    """Return a .npy file whose header is this text."""
    header = text.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


def archive(path, members, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return path


HEADERS = {
    "more rows than there are": "{'descr': '<f8', 'fortran_order': False, 'shape': (9, 3)}",
    "fewer": "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 3)}",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-4, -3)}",
    "enormous": "{'descr': '<f8', 'fortran_order': False, 'shape': (99999999999999999999, 9)}",
    "no bytes each": "{'descr': 'S0', 'fortran_order': False, 'shape': (4, 3)}",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (4, 3)}",
    "records": "{'descr': [('a', '<f8')], 'fortran_order': False, 'shape': (4, 3)}",
    "dates": "{'descr': '<M8[s]', 'fortran_order': False, 'shape': (4, 3)}",
    "not Python": "{'descr': '<f8', 'fortran_order'",
    "a bracket left open": "{'descr': '<f8', 'shape': (" + "(" * 200,
    "no dictionary": "12",
    "no type": "{'descr': 'what', 'fortran_order': False, 'shape': (4, 3)}",
}


@pytest.mark.parametrize("case", HEADERS)
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_headers_that_lie(tmp_path, case, compression):
    content = with_header(HEADERS[case], X.tobytes())
    path = archive(tmp_path / "a.npz", {"X": content, "y": npy(Y)}, compression)
    with pytest.raises(DataError, match=r"a\.npz: array 'X' cannot be read"):
        read_dataset(path)
    alone = tmp_path / "a.npy"
    alone.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npy: is not a complete \.npy file"):
        read_dataset(alone, label=None)


def test_a_stored_member_is_not_read_into_the_next(tmp_path):
    """Nine rows are announced where four are; the bytes after them are the next member's."""
    content = with_header(HEADERS["more rows than there are"], X.tobytes())
    path = archive(tmp_path / "a.npz", {"X": content, "y": npy(np.arange(9)), "z": npy(X)})
    with pytest.raises(DataError, match=r"\(216 bytes are announced and 96 are there\)"):
        read_dataset(path)


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_every_byte_of_the_arrays_is_under_the_checksum(tmp_path, compression):
    path = archive(tmp_path / "a.npz", {"X": npy(X), "y": npy(Y)}, compression)
    whole = path.read_bytes()
    end = whole.index(b"PK\x01\x02")
    for place in range(end):
        damaged = bytearray(whole)
        damaged[place] ^= 0x04
        path.write_bytes(damaged)
        try:
            data = read_dataset(path)
        except DataError:
            continue
        np.testing.assert_array_equal(data.X, X)
        np.testing.assert_array_equal(data.y, Y)


def test_a_checksum_that_does_not_match(tmp_path):
    long = np.arange(30_000.0).reshape(-1, 3)  # more than zipfile reads ahead
    path = archive(tmp_path / "a.npz", {"X": npy(long), "y": npy(np.arange(len(long)))})
    content = path.read_bytes()
    path.write_bytes(content.replace(struct.pack("<d", 29_999.0), struct.pack("<d", 8.0)))
    with pytest.raises(
        DataError, match=r"array 'X' cannot be read \(its checksum does not match\)"
    ):
        read_dataset(path)


def test_members_are_decompressed_once(tmp_path, monkeypatch):
    path = archive(tmp_path / "a.npz", {"X": npy(X), "y": npy(Y)}, zipfile.ZIP_DEFLATED)
    opened = []
    real_open = zipfile.ZipFile.open

    def counted(self, member, *args, **kwargs):
        opened.append(member.filename)
        return real_open(self, member, *args, **kwargs)

    monkeypatch.setattr(zipfile.ZipFile, "open", counted)
    with Archive(str(path)) as arrays:
        assert arrays["X"] is arrays["X"]
        assert "y" in arrays
    assert opened == ["X.npy"]


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_versions_and_layouts(tmp_path, version, compression):
    for stored in (X, np.asfortranarray(X), X.astype(">f4"), X[::2]):
        members = {"X": npy(stored, version), "y": npy(Y[: len(stored)])}
        path = archive(tmp_path / "a.npz", members, compression)
        np.testing.assert_array_equal(read_dataset(path).X, stored)


def test_other_methods_of_compression(tmp_path):
    for method in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = archive(tmp_path / "a.npz", {"X": npy(X), "y": npy(Y)}, method)
        np.testing.assert_array_equal(read_dataset(path).X, X)


def test_an_encrypted_member(tmp_path):
    path = archive(tmp_path / "a.npz", {"X": npy(X), "y": npy(Y)})
    data = bytearray(path.read_bytes())
    for mark, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + offset] |= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match="array 'X' cannot be read"):
        read_dataset(path)
