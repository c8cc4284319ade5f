"""Small files that would become very large are refused before they do."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest
from scipy.io import savemat

from shortlist.datasets import limits, read_dataset
from shortlist.errors import DataError


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setenv(limits.LIMIT_VARIABLE, "1M")


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_compressed_text(tmp_path, monkeypatch, small_limit, compress):
    path = tmp_path / "a.csv"
    line = b"1,2.".ljust(63, b"0") + b"\n"
    path.write_bytes(compress(line * 2**16))
    with pytest.raises(DataError, match=r"a\.csv: would take more than the 1\.0 MiB allowed"):
        read_dataset(path)
    monkeypatch.setenv(limits.LIMIT_VARIABLE, "8 MiB")
    assert read_dataset(path).n_samples == 2**16


def test_a_member_of_an_archive(tmp_path, small_limit):
    path = tmp_path / "a.npz"
    np.savez_compressed(path, X=np.zeros((2**12, 2**6)), y=np.arange(2**12) % 2)
    with pytest.raises(DataError, match=r"array 'X' would take more than the 1\.0 MiB allowed"):
        read_dataset(path)


def test_a_matlab_variable(tmp_path, small_limit):
    path = tmp_path / "a.mat"
    savemat(path, {"X": np.zeros((2**12, 2**6)), "y": np.zeros(2**12)}, do_compression=True)
    with pytest.raises(DataError, match=r"would take more than the 1\.0 MiB allowed"):
        read_dataset(path)


def test_a_long_run_in_a_parquet_file(tmp_path, small_limit):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"a": np.zeros(2**21), "y": np.zeros(2**21, np.int8)}), path)
    assert path.stat().st_size < 2**16
    with pytest.raises(DataError, match=r"would take more than the 1\.0 MiB allowed"):
        read_dataset(path)


@pytest.mark.parametrize("suffix", [".feather", ".arrow"])
def test_compressed_batches(tmp_path, small_limit, suffix):
    pa = pytest.importorskip("pyarrow")
    table = pa.table({"a": np.zeros(2**18), "y": np.zeros(2**18, np.int8)})
    path = tmp_path / f"a{suffix}"
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    kind = pa.ipc.new_file if suffix == ".feather" else pa.ipc.new_stream
    with kind(path, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2**14)
    assert path.stat().st_size < 2**16
    with pytest.raises(DataError, match=r"would take more than the 1\.0 MiB allowed"):
        read_dataset(path)


def test_the_limit_without_a_word(monkeypatch):
    monkeypatch.delenv(limits.LIMIT_VARIABLE, raising=False)
    monkeypatch.setattr(limits, "available_bytes", lambda: None)
    assert limits.read_limit(1000) == 2**30
    assert limits.read_limit(2**26) == 200 * 2**26
    # Two gigabytes from two megabytes are what zeros compress to, and too many.
    with pytest.raises(DataError, match=limits.LIMIT_VARIABLE):
        limits.check_read_size(2 * 2**30, 2 * 2**20, "file")
    monkeypatch.setattr(limits, "available_bytes", lambda: 2**29)
    assert limits.read_limit(1000) == 2**28


@pytest.mark.parametrize(
    ("text", "size"), [("1000", 1000), ("2k", 2048), ("3 MB", 3 * 2**20), ("1TiB", 2**40)]
)
def test_the_variable(monkeypatch, text, size):
    monkeypatch.setenv(limits.LIMIT_VARIABLE, text)
    assert limits.read_limit(0) == size


def test_a_variable_that_says_nothing(monkeypatch):
    monkeypatch.setenv(limits.LIMIT_VARIABLE, "plenty")
    with pytest.raises(ValueError, match=r"must be a number of bytes such as 16G; got 'plenty'"):
        limits.read_limit(0)


def test_memory_that_cannot_be_had_is_told(tmp_path, monkeypatch):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n3,4\n")

    def full(*args):
        raise MemoryError

    monkeypatch.setattr("shortlist.datasets.csv_tables.fill_missing", full)
    with pytest.raises(DataError, match=r"a\.csv: does not fit in memory"):
        read_dataset(path)


def test_a_member_that_claims_more_than_deflate_can_make(tmp_path):
    content = io.BytesIO()
    np.savez_compressed(content, X=np.zeros((4, 4)), y=np.arange(4))
    data = bytearray(content.getvalue())
    # The central directory's uncompressed size of the first member.
    place = data.index(b"PK\x01\x02") + 24
    data[place : place + 4] = (2**31 - 1).to_bytes(4, "little")
    path = tmp_path / "a.npz"
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"array 'X' cannot be read \(2147483647 bytes cannot come"):
        read_dataset(path)
