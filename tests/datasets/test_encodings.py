"""Text that is not UTF-8, or no text at all, is refused with what to do about it."""

import gzip

import pytest

from shortlist.datasets import read_csv, read_libsvm
from shortlist.errors import DataError

TABLE = "x,label\n" + "".join(f"{i}.5,{'ab'[i % 2]}\n" for i in range(9))
SPARSE = "".join(f"{i % 2} 1:{i}.5\n" for i in range(9))


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
@pytest.mark.parametrize(
    ("reader", "text"), [(read_csv, TABLE), (read_libsvm, SPARSE)], ids=["csv", "libsvm"]
)
def test_other_encodings_of_unicode(tmp_path, reader, text, encoding):
    path = tmp_path / "data"
    path.write_bytes(text.encode(encoding))
    name = encoding.upper().replace("-LE", "LE").replace("-BE", "BE")
    with pytest.raises(DataError, match=rf"is {name} text, not UTF-8") as refused:
        reader(path)
    # The advice is followed.
    assert f"(iconv -f {name} -t UTF-8 {path} > NEW)" in str(refused.value)
    path.write_bytes(path.read_bytes().decode(name).encode("utf-8"))
    assert reader(path).n_samples == 9


def test_compressed_files_are_looked_into(tmp_path):
    path = tmp_path / "data.csv.gz"
    path.write_bytes(gzip.compress(TABLE.encode("utf-16")))
    with pytest.raises(DataError, match=r"is UTF-16 text, .*\(iconv -f UTF-16 -t UTF-8\)"):
        read_csv(path)


def test_text_of_older_programs(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(TABLE.replace("x", "größe").encode("latin-1"))
    with pytest.raises(DataError, match=r"is not UTF-8 text .*\(iconv -f LATIN1 -t UTF-8"):
        read_csv(path)


def test_spreadsheets(tmp_path):
    path = tmp_path / "data.xlsx"
    path.write_bytes(b"PK\x03\x04" + bytes(40))
    with pytest.raises(DataError, match=r"as spreadsheets are, not text: save the table as \.csv"):
        read_csv(path)


@pytest.mark.parametrize("text", ["1,a\n2,b\n", "é,label\n1,a\n2,b\n", "\ufeffx,label\n1,a\n2,b\n"])
def test_what_is_utf_8_is_not_taken_for_anything_else(tmp_path, text):
    path = tmp_path / "data.csv"
    path.write_bytes(text.encode("utf-8"))
    assert read_csv(path).n_samples == 2


def test_decimal_commas(tmp_path):
    path = tmp_path / "data.svm"
    path.write_text("1 1:0,5\n0 1:1\n")
    with pytest.raises(DataError, match=r"line 1: value '0,5' .*\(a decimal comma\? write 0\.5\)"):
        read_libsvm(path)
    path = tmp_path / "data.csv"
    path.write_text("x;label\n0,5;a\n1;b\n")
    with pytest.raises(DataError, match=r"decimal comma\? write 0\.5: tr , \. < .*data\.csv > NEW"):
        read_csv(path, delimiter=";")
