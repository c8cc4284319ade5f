"""Every error is one line that names file and line, with exit code 2 and no file left behind."""

import io
import os
import re
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import shell

GOOD = "1 1:0.5 2:1\n2 1:1.5 2:2\n3 1:2.5 2:4\n"


def bad_file(tmp_path, name, content):
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def npz(**arrays):
    """The bytes of an .npz file."""
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def check_refused(ended, tmp_path, left, *words):
    assert ended.code == 2
    assert ended.out == ""
    assert ended.err.startswith("shortlist: ")
    assert ended.err.count("\n") == 1
    assert "Traceback" not in ended.err
    for word in words:
        assert word in ended.err
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(left)


BAD = {
    "cut.svm": (GOOD + "1 1:0.5 2:", "line 4"),
    "word.svm": ("1 1:1\ntwo 1:1\n", "line 2: label 'two' is not a number"),
    "half.svm": ("1 1:1\n1.5 1:1\n", "line 2: label '1.5' is not an integer"),
    "nan.svm": ("1 1:1\n2 1:nan\n", "line 2: value 'nan' of feature 1 is not finite"),
    "order.svm": ("1 2:1 1:1\n", "line 1: feature index 1 follows 2"),
    "empty.svm": ("", "holds no examples"),
    "one.svm": ("1 1:1\n1 1:2\n", "holds only one class, 1; training needs at least 2"),
    "cut.svm.gz": (b"\x1f\x8b\x08\x00", "cut short or damaged"),
    "columns.csv": ("a,b,y\n1,2,0\n1,2,3,1\n", "line 3: has 4 columns where 3 are expected"),
    "short.csv": ("a,b,y\n1,2,0\n1,2\n", "line 3: has 2 columns where 3 are expected"),
    "label.csv": ("a,b,y\n1,2,0\n1,2,1.5\n", "line 3: label '1.5' is not an integer"),
    "mixed.csv": ("a,b,y\n1,2,0\n1,2,cat\n", "line 3: label 'cat' is not a number"),
    "nan.csv": ("a,b,y\n1,2,0\n1,nan,1\n", "line 3: column 'b' is nan, not finite"),
    "text.csv": ("a,b,y\n1,2,0\n1,x,1\n", "line 3: column 'b' is 'x', not a number"),
    "words.csv": ("a,y,group\n1,2,b\n", "(no feature? --drop group leaves it out; the labels? "),
    "guess.csv": ("a,y,group\n1,2,b\n", "--label group in place of column 'y', a guess)"),
    "semicolons.csv": ("a;b;y\n1;2;0\n", "separated by ';': --delimiter ';')"),
    "missing.csv": ("a,b,y\n1,,0\n", "column 'b' is empty (missing? --missing mean fills it"),
    "bare.svm": ("1:1\n2:1\n", "no label before the first feature (--label none reads"),
    "two.csv": ("a,label,target\n1,2,3\n", "may both hold the labels: say which with --label"),
    "huge.csv": ("1,1\n2,1e300\n", "beyond 64-bit integers (--label-type str takes"),
    "comma.txt": ("1,2\n3,4\n", "holds a comma (for CSV: --format csv)"),
    "features.npz": (npz(X=np.ones((2, 2))), "give their file (--labels FILE), or --label none"),
    "many.npz": (npz(**{f"a{i:02}": np.ones(1) for i in range(20)}), "a10, a11, ...)"),
    "empty.csv": ("", "holds no examples"),
    "header.csv": ("a,b,y\n", "holds no examples, only a header"),
    "cut.npz": (b"PK\x03\x04", "is not a complete .npz archive"),
    "cut.npy": (b"\x93NUMPY", "cut.npy"),
    "cut.parquet": (b"PAR1", "is not a complete Parquet file"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_training_files(command, tmp_path, name):
    content, words = BAD[name]
    path = bad_file(tmp_path, name, content)
    place = [] if name == "one.svm" else [f"shortlist: {path}"]
    options = ["--label", "-1"] if name == "cut.npy" else []
    ended = command("train", path, "-o", "m", *options)
    check_refused(ended, tmp_path, [name], words, *place)


@pytest.mark.parametrize("name", ["cut.svm", "columns.csv"])
def test_bad_files_in_a_process_of_their_own(tmp_path, name):
    content, words = BAD[name]
    path = bad_file(tmp_path, name, content)
    ended = shell("train", path, "-o", tmp_path / "m")
    check_refused(ended, tmp_path, [name], f"shortlist: {path}, line", words)


@pytest.mark.parametrize("subcommand", ["predict", "evaluate"])
@pytest.mark.parametrize("name", ["cut.svm", "nan.csv", "empty.csv"])
def test_bad_files_to_predict(command, tmp_path, model, subcommand, name):
    content, words = BAD[name]
    path = bad_file(tmp_path, name, content)
    output = ["-o", "out.csv"] if subcommand == "predict" else []
    ended = command(subcommand, model, path, *output)
    if name == "nan.csv":
        words = "has 2 features where 5 are expected"
    check_refused(ended, tmp_path, [name], f"shortlist: {path}", words)


def test_an_earlier_output_file_stays_as_it_was(command, tmp_path, model):
    (tmp_path / "m").write_text("precious")
    path = bad_file(tmp_path, "cut.svm", BAD["cut.svm"][0])
    for args in (["train", path], ["predict", model, path], ["cv", path]):
        assert command(*args, "-o", "m").code == 2
        assert (tmp_path / "m").read_text() == "precious"


def test_missing_and_unreadable_files(command, tmp_path):
    check_refused(command("train", "none.svm", "-o", "m"), tmp_path, [], "none.svm: no such file")
    ended = command("train", "lettre", "-o", "m")
    check_refused(ended, tmp_path, [], "nor a data set of this name", "letter")
    (tmp_path / "folder").mkdir()
    ended = command("train", "folder", "-o", "m")
    check_refused(ended, tmp_path, ["folder"], "is a directory without data files")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_no_permission(command, tmp_path):
    path = bad_file(tmp_path, "secret.svm", GOOD)
    path.chmod(0)
    ended = command("train", path, "-o", "m")
    check_refused(ended, tmp_path, ["secret.svm"], "no permission to read this file")


def test_no_permission_as_the_system_reports_it(command, tmp_path, monkeypatch):
    """Root may read everything; what the system would say to others is put in its mouth."""
    from shortlist.datasets import files as opening

    path = bad_file(tmp_path, "secret.svm", GOOD)

    def refuse(name, *_):
        raise PermissionError(13, "Permission denied", name)

    monkeypatch.setattr(opening, "open", refuse, raising=False)
    ended = command("train", path, "-o", "m")
    check_refused(ended, tmp_path, ["secret.svm"], f"{path}: no permission to read this file")


PARAMETERS = [
    (["-k", 3], "k must lie between 1 and the number of classes less one, here 2"),
    (["-k", 0], "k must be 1 or larger; got 0"),
    (["-k", "many"], "Invalid value for '-k' / '--k'"),
    (["-C", 0], "shortlist: -C must be a positive finite number"),
    (["-C", "-1"], "C must be a positive finite number"),
    (["-e", 0], "shortlist: --tol must be a positive finite number"),
    (["-B", "nan"], "-B must be a finite number"),
    (["--max-epochs", 0], "--max-epochs must be an integer, 1 or larger"),
    (["--smoothing", "-1", "--loss", "smooth_hinge"], "--smoothing must be a finite number"),
    (["--loss", "nosuch"], "'nosuch' is not one of 'entropy'"),
    (["--loss", "softmax", "-k", 2], "at k=1; got k=2. Use --loss entropy."),
    (["--nosuch"], "No such option"),
    (["--class-weight", "9=2"], "the data has no label '9'"),
    (["--class-weight", "heavy"], "must be balanced or LABEL=WEIGHT"),
    (["--class-weight", "1=-2"], "must be balanced or LABEL=WEIGHT"),
    (["--split", "test"], "has no parts, so --split test does not apply"),
    (["--delimiter", ";"], "--delimiter is for csv files"),
    (["--index-base", "1", "--format", "csv"], "--index-base is for libsvm files"),
    (["--label", "species"], "LibSVM text has its labels in front"),
    (["-v", 3], "leave out -o, or -v"),
]


@pytest.mark.parametrize(("options", "words"), PARAMETERS, ids=lambda value: str(value)[:40])
def test_bad_parameters(command, tmp_path, options, words):
    path = bad_file(tmp_path, "good.svm", GOOD)
    check_refused(command("train", path, "-o", "m", *options), tmp_path, ["good.svm"], words)


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["train", "good.svm"], "say where to save the model"),
        (["train"], "Missing argument 'DATA'"),
        (["trian", "good.svm"], "Did you mean 'train'?"),
        (["train", "good.svm", "-o", "no/m"], "no such directory"),
        (["train", "good.svm", "-o", "."], "is a directory, not a file"),
        (["cv", "good.svm", "-o", "-"], "must be a file here"),
        (["train", "good.svm", "-o", "-", "--json"], "would both write to standard output"),
        (["train", "good.svm", "-v", 1], "-v must be 2 or more folds"),
        (["train", "letter", "--format", "csv", "-o", "m"], "letter is a data set known by name"),
        (["train", "letter", "--label", "3", "-o", "m"], "which letter is not"),
        (["cv", "good.svm", "-v", 4], "-v 4: the largest class has only 1 examples"),
        (
            ["train", "good.svm", "-o", "m", "-C"],
            "LIBLINEAR's -C, which searches for one, is short",
        ),
        (["train", "good.svm", "-o", "m", "-k", 3], "-k must lie between 1 and the number of"),
        (["train", "good.svm", "-o", "m", "-k", 3], "less one, here 2; got -k 3 with 3 classes"),
        (
            ["train", "good.svm", "-o", "m", "--loss", "hinge", "--rank-weights", "3,2,1"],
            "--rank-weights may hold at most 2 positive numbers",
        ),
        (
            ["train", "good.svm", "-o", "m", "-q", "--kernel", "rbf", "--gamma", -1],
            "--gamma must be 'scale', 'auto' or a positive",
        ),
        (["train", "good.svm", "-o", "m", "--variant", "printed"], "--variant must be 'alpha'"),
        (["train", "good.svm", "-o", "m", "--margins", "ldam"], "--margins ldam is for hinge and"),
        (
            ["train", "good.svm", "-o", "m", "--loss", "hinge", "--margins", "1"],
            "shortlist: --margins must be numbers, one for each class",
        ),
        (
            ["train", "good.svm", "-o", "m", "--loss", "hinge", "--margins", "1,-1,1"],
            "shortlist: --margins must be finite, zero or larger",
        ),
        (
            ["train", "letter", "-o", "m", "-q", "--workers", 0],
            "shortlist: --workers must be an integer, 1 or larger; got 0",
        ),
        (
            ["cv", "good.svm", "-q", "--val", "good.svm", "--Cs", "1:10:0"],
            "--Cs must hold at least one value",
        ),
        (["train", "good.svm", "-o", "m", "--seed", -1], "Invalid value for '--seed'"),
        (["cv", "good.svm", "-j", 0], "--jobs must be 1 or more, or -1"),
        (["cv", "good.svm", "--Cs", "a,b"], "--Cs must be numbers separated by commas"),
        (["cv", "good.svm", "--ks", "1.5"], "--ks must be numbers separated by commas"),
        (["cv", "good.svm", "--also", "nosuch"], "unknown loss 'nosuch'"),
        (["cv", "good.svm", "--also", "hinge:x"], "must be LOSS or LOSS:K"),
        (["predict", "good.svm", "good.svm"], "good.svm: is not a Shortlist model file"),
        (["evaluate", "none", "good.svm"], "none: no such file"),
        (["info", "good.svm"], "good.svm: is not a Shortlist model file"),
        (["bench", "--losses", "nosuch"], "--losses must be among softmax, hinge"),
        (["features", "net.pt", "x.npy", "-o", "f.txt"], "the name must end in .npy"),
    ],
    ids=lambda value: " ".join(map(str, value))[:40] if isinstance(value, list) else None,
)
def test_bad_usage(command, tmp_path, args, words):
    bad_file(tmp_path, "good.svm", GOOD)
    check_refused(command(*args), tmp_path, ["good.svm"], words)


def test_what_training_refuses_is_told_in_options(command, tmp_path):
    bad_file(tmp_path, "good.svm", GOOD)
    ended = command("cv", "good.svm", "--val", "good.svm", "--Cs", "-1,1")
    assert ended.code == 2
    assert ended.err.endswith("every C in --Cs must be a positive finite number; got -1.0\n")


def test_lengths_beyond_the_classes(command, files, tmp_path, model):
    for args in (["predict", "-k", 5], ["evaluate", "-k", 5], ["evaluate", "--ks", "1,5"]):
        ended = command(args[0], model, files / "data.svm", *args[1:])
        check_refused(ended, tmp_path, [], "must be from 1 to 4, the model's number of classes")


def test_a_damaged_model(command, files, tmp_path, model):
    whole = Path(model).read_bytes()
    path = bad_file(tmp_path, "cut.model", whole[:-8])
    ended = command("predict", path, files / "data.svm", "-o", "out.csv")
    check_refused(ended, tmp_path, ["cut.model"], f"shortlist: {path}: is cut short")


def test_features_of_another_number(command, files, tmp_path, model):
    np.save(tmp_path / "wide.npy", np.ones((3, 6)))
    ended = command("predict", model, "wide.npy", "-o", "out.csv")
    check_refused(ended, tmp_path, ["wide.npy"], "has 6 features where 5 are expected")


def test_what_is_not_the_users_fault_is_code_1(command, files, tmp_path, monkeypatch):
    import errno

    import shortlist.persistence
    from shortlist.solvers import memory

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device", "m")

    monkeypatch.setattr(shortlist.persistence, "save", full)
    ended = command("train", files / "data.svm", "-o", "m", "-k", 2, "-q")
    assert (ended.code, ended.err) == (1, "shortlist: m: No space left on device\n")
    monkeypatch.setattr(memory, "available_bytes", lambda: 1000)
    ended = command("train", files / "data.svm", "-o", "m", "-k", 2, "-q")
    assert ended.code == 1
    assert re.match(r"shortlist: training on 120 examples.* needs about", ended.err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs POSIX limits")
def test_a_full_disk_is_named_and_leaves_nothing_behind(files, tmp_path, model):
    """A limit on the size of files stands in for a full disk: both show when data is written."""
    import resource

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

    ended = shell("predict", model, files / "data.svm", "-o", tmp_path / "p", preexec_fn=limited)
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == f"shortlist: {tmp_path / 'p'}: File too large\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_standard_output_that_takes_no_more(files, model):
    with open("/dev/full", "w") as full:
        ended = shell("predict", model, files / "data.svm", stdout=full)
    assert ended.code == 1
    assert ended.err == "shortlist: standard output: No space left on device\n"


def test_debugging_shows_where_an_error_comes_from(command, tmp_path, monkeypatch):
    monkeypatch.setenv("SHORTLIST_DEBUG", "1")
    ended = command("train", "none.svm", "-o", "m")
    assert ended.code == 2
    assert "Traceback" in ended.err
    assert ended.err.endswith("none.svm: no such file\n")


@pytest.mark.parametrize(
    "command", ["reproduce finetune --quick", "features my:network images -o x.npy"]
)
def test_a_missing_package_is_named_with_what_to_do(command, tmp_path):
    (tmp_path / "torch.py").write_text("raise ImportError('no torch here')")
    ended = shell(*command.split(), cwd=tmp_path)
    assert ended.code == 1
    assert ended.err.startswith("shortlist: ")
    assert ended.err.count("\n") == 1
    assert "pip install 'shortlist[torch]'" in ended.err
    assert "--data" not in ended.err


def test_no_output_replaces_an_input(command, model, tmp_path):
    data = bad_file(tmp_path, "data.svm", GOOD)
    link = tmp_path / "link.svm"
    link.symlink_to(data)
    hard = tmp_path / "hard.svm"
    os.link(data, hard)
    before = Path(model).read_bytes()
    for arguments in (
        ["train", data, "-o", data],
        ["train", data, "-o", link],
        ["cv", data, "-v", "2", "-o", data],
        ["predict", model, data, "-o", model],
        ["predict", model, data, "-o", data],
        ["train", data, "-o", hard],
        ["train", tmp_path, "-o", tmp_path / "new"],
    ):
        ended = command(*map(str, arguments))
        check_refused(ended, tmp_path, ["data.svm", "hard.svm", "link.svm"], "and would be lost")
        assert data.read_text() == GOOD
        assert Path(model).read_bytes() == before
