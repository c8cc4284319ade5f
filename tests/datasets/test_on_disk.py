"""Features that stay on disk: slices are those of the data read whole."""

import numpy as np
import pytest
from scipy import sparse

from shortlist.datasets import read_dataset
from shortlist.datasets.on_disk import DealtRows, DenseOnDisk, JoinedRows, rows_on_disk

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = np.arange(30) % 3


def write(folder, kind, dtype):
    """Two shards of different lengths."""
    folder.mkdir()
    for number, part in enumerate((slice(0, 11), slice(11, 30))):
        x, y = X[part].astype(dtype), Y[part]
        path = folder / f"{number}.{kind}"
        if kind == "npz":
            np.savez(path, X=x, y=y)
        elif kind == "npy":
            np.save(path, np.column_stack([x, y.astype(dtype)]))
        elif kind == "parquet":
            pandas = pytest.importorskip("pandas")
            pandas.DataFrame({**{f"x{j}": x[:, j] for j in range(4)}, "y": y}).to_parquet(path)
        else:
            lines = [
                " ".join([str(label), *(f"{j + 1}:{v}" for j, v in enumerate(row))])
                for row, label in zip(x, y, strict=True)
            ]
            path.write_text("\n".join(lines))
    return folder


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("npz", np.float16),
        ("npz", np.float32),
        ("npy", np.float32),
        ("parquet", np.float32),
        ("svm", np.float64),
    ],
)
def test_a_folder_of_shards(tmp_path, kind, dtype):
    folder = write(tmp_path / "data", kind, dtype)
    options = {"label": -1} if kind == "npy" else {}
    whole = read_dataset(folder, **options)
    data = read_dataset(folder, on_disk=True, **options)
    np.testing.assert_array_equal(data.y, whole.y)
    assert data.X.shape == (30, 4)
    assert data.X.dtype == (np.float32 if dtype == np.float16 else dtype)
    expected = whole.X.toarray() if sparse.issparse(whole.X) else whole.X
    for rows in (slice(0, 30), slice(5, 20), slice(12, 13), slice(0, 30, 7)):
        found = data.X[rows]
        found = found.toarray() if sparse.issparse(found) else found
        np.testing.assert_array_equal(found, expected[rows].astype(found.dtype))
    ranges = [(28, 30), (3, 4), (9, 15), (20, 20)]
    found = data.X.read_ranges(ranges)
    found = found.toarray() if sparse.issparse(found) else found
    several = np.concatenate([expected[begin:end] for begin, end in ranges])
    np.testing.assert_array_equal(found, several.astype(found.dtype))


def test_libsvm_shards_of_different_widths(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "a.svm").write_text("0 1:1\n1 2:1\n")
    (tmp_path / "data" / "b.svm").write_text("1 5:2\n")
    found = read_dataset(tmp_path / "data", on_disk=True).X[:]
    expected = [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 0, 2]]
    np.testing.assert_array_equal(found.toarray(), expected)


def test_a_part_of_a_memory_map_is_read_from_its_place(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for view in (mapped, mapped[7:20], mapped[3:][4:17]):
        rows = rows_on_disk(view)
        assert isinstance(rows, DenseOnDisk)
        np.testing.assert_array_equal(rows[2:5], view[2:5])
    # Rows that do not lie together are copied.
    np.testing.assert_array_equal(rows_on_disk(mapped[:, 1:])[:], X[:, 1:])


def test_a_file_that_shrinks_is_named(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, X)
    rows = rows_on_disk(np.load(path, mmap_mode="r"))
    with open(path, "r+b") as file:
        file.truncate(400)
    with pytest.raises(ValueError, match=r"x\.npy: has become shorter"):
        rows[20:30]
    with pytest.raises(ValueError, match=r"x\.npy: has become shorter"):
        rows.read_ranges([(0, 2), (20, 30)])


@pytest.mark.parametrize("dtype", [np.float16, np.float32, ">f4"])
@pytest.mark.parametrize("named", [True, False])
def test_ranges_of_one_file(tmp_path, dtype, named):
    """Of a file with a name and of one that is open, in precisions to be widened and not."""
    path = tmp_path / "x.npy"
    np.save(path, X.astype(dtype))
    rows = rows_on_disk(np.load(path, mmap_mode="r") if named else X.astype(dtype))
    ranges = [(7, 8), (29, 30), (0, 5), (12, 12)]
    expected = X.astype(dtype).astype(np.float32)[[7, 29, *range(5)]]
    found = rows.read_ranges(ranges)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, expected)
    assert rows.read_ranges([(4, 4)]).shape == (0, 4)


@pytest.mark.parametrize("hands", [1, 3, 30])
@pytest.mark.parametrize("matrix", [np.asarray, sparse.csr_matrix], ids=["dense", "csr"])
def test_rows_are_dealt_out(matrix, hands):
    """Every row to one hand, in several runs; slices are those of the rows it got."""
    whole = JoinedRows([rows_on_disk(matrix(X[:11])), rows_on_disk(matrix(X[11:]))])
    dealt = [DealtRows(whole, hand, hands) for hand in range(hands)]
    np.testing.assert_array_equal(np.sort(np.concatenate([own.places for own in dealt])), range(30))
    for own in dealt:
        assert 30 // hands - 1 <= len(own) <= 30 // hands + 1
        for rows in (slice(None), slice(3, 8), slice(2, 3), slice(0, 0)):
            found = own[rows]
            assert sparse.issparse(found) == own.is_sparse
            found = found.toarray() if own.is_sparse else found
            np.testing.assert_array_equal(found, X[own.places][rows])
    assert len(DealtRows(whole, 30, 31)) == 0


def test_dealt_rows_are_runs_of_neighbours():
    many = DenseOnDisk("nowhere", 0, (10_000, 2), np.float32)
    places = DealtRows(many, 1, 4).places
    assert (np.diff(places) != 1).sum() == len(places) // 64 - (len(places) % 64 == 0)
