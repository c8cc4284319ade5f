"""Saving and loading: exact, data only, whole or not at all, and clear about bad files."""

import errno
import os
import pickle
import struct
import subprocess
import sys

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shortlist
from shortlist import persistence
from shortlist.errors import ModelFileError
from shortlist.persistence import describe, load, save
from tests.model_files import own_entry, refused, rewrite


class Fake:
    """A stand-in for an estimator: arrays and metadata, given and taken as they are."""

    def __init__(self, arrays, meta):
        self.arrays, self.meta = arrays, meta

    def _to_state(self):
        return self.arrays, self.meta

    @classmethod
    def _from_state(cls, arrays, meta):
        if "coef_" in arrays and arrays["coef_"].ndim != 2:
            raise ValueError("coef_ must have two dimensions")
        return cls(arrays, meta)


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setitem(persistence._REGISTERED, "Fake", __name__)


@pytest.fixture
def model():
    coef = np.asfortranarray(np.random.default_rng(0).normal(size=(3, 4)))
    return Fake({"coef_": coef}, {"C": 1.0, "classes_": np.array(["a", "b", "ü"])})


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / "model.shortlist"
    save(model, path)
    return path


def round_trip(arrays, meta, path):
    save(Fake(arrays, meta), path)
    back = load(path)
    return back.arrays, back.meta


def same(a, b):
    """Whether two values are equal in type, shape and content, NaN equal to NaN."""
    if isinstance(a, np.ndarray):
        return (
            isinstance(b, np.ndarray)
            and a.dtype.kind == b.dtype.kind
            and a.shape == b.shape
            and all(same(x, y) for x, y in zip(a.ravel().tolist(), b.ravel().tolist(), strict=True))
        )
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list | tuple):
        return (
            type(a) is type(b)
            and len(a) == len(b)
            and all(same(x, y) for x, y in zip(a, b, strict=True))
        )
    if isinstance(a, float) and np.isnan(a):
        return isinstance(b, float) and np.isnan(b)
    return type(a) is type(b) and a == b


def test_arrays_come_back_bit_for_bit_whatever_their_layout(tmp_path):
    base = np.random.default_rng(0).normal(size=(5, 6))
    arrays = {
        "c_order": base,
        "fortran": np.asfortranarray(base),
        "strided": base[::2, ::-1],
        "big_endian": base.astype(">f4"),
        "read_only": np.broadcast_to(np.float32(2.5), (2, 3)),
        "scalar": np.array(1.5),
        "empty": np.zeros((0, 4)),
        "half": base.astype(np.float16),
        "bytes": np.arange(7, dtype=np.uint8),
        "large": np.array([2**63 - 1, -(2**63)]),
        "truth": np.array([True, False]),
        "special": np.array([np.nan, np.inf, -np.inf, -0.0, 5e-324]),
    }
    back, _ = round_trip(arrays, {}, tmp_path / "m")
    assert set(back) == set(arrays)
    for name, array in arrays.items():
        assert back[name].shape == array.shape, name
        assert back[name].dtype == array.dtype.newbyteorder("="), name
        np.testing.assert_array_equal(back[name], array, err_msg=name)
    assert np.signbit(back["special"][3])


@pytest.mark.parametrize(
    "classes",
    [
        np.array([0, 1, 2]),
        np.array([-5, 10], dtype=np.int32),
        np.array([0.5, 1.5, np.inf]),
        np.array([False, True]),
        np.array(["cat", "", "naïve 猫\n"]),
        np.array([None, "a", 3, 2.5, True], dtype=object),
        np.array([], dtype=object),
    ],
    ids=["int", "int32", "float", "bool", "text", "object", "empty"],
)
def test_labels_of_every_kind(classes, tmp_path):
    arrays, meta = round_trip({"classes_": classes}, {"classes_": classes}, tmp_path / "m")
    for back in (arrays["classes_"], meta["classes_"]):
        assert same(classes, back)


def test_metadata_of_every_kind(tmp_path):
    meta = {
        "none": None,
        "flag": True,
        "count": 3,
        "rate": 0.1,
        "never": float("nan"),
        "bounds": [float("-inf"), float("inf")],
        "ks": (1, 3, 5, 10),
        "class_weight": {0: 1.0, 1: 2.0},
        "by_name": {"a": 1, "$b": 2},
        "by_tuple": {(1, "x"): [1], None: (2,)},
        "text": 'quotes " and \\ and \n and ü',
        "nested": [{"a": ({"b": (1,)},)}],
        "Cs": np.logspace(-3, 3, 7),
        "dtype": np.dtype("float32"),
    }
    _, back = round_trip({}, meta, tmp_path / "m")
    assert same(meta, back)


def test_numpy_scalars_become_python_numbers(tmp_path):
    _, back = round_trip(
        {}, {"a": np.float32(0.5), "b": np.int64(3), "c": np.True_}, tmp_path / "m"
    )
    assert same(back, {"a": 0.5, "b": 3, "c": True})


def test_sparse_matrices(tmp_path):
    matrix = sparse.random(20, 30, density=0.1, format="csc", random_state=0)
    arrays, meta = round_trip({"X": matrix}, {"support": matrix}, tmp_path / "m")
    for back in (arrays["X"], meta["support"]):
        assert sparse.issparse(back)
        assert (back != matrix).nnz == 0
        assert back.shape == matrix.shape


def test_models_within_models(model, tmp_path):
    outer = Fake({"coef_": np.ones((2, 2))}, {"best": {1: model, 3: Fake({}, {"k": 3})}})
    save(outer, tmp_path / "m")
    best = load(tmp_path / "m").meta["best"]
    np.testing.assert_array_equal(best[1].arrays["coef_"], model.arrays["coef_"])
    assert best[3].meta == {"k": 3}


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda children: (
        st.lists(children, max_size=4)
        | st.lists(children, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5) | st.integers() | st.none(), children, max_size=4)
    ),
    max_leaves=12,
)


@settings(deadline=None, max_examples=60)
@given(meta=st.dictionaries(st.text(max_size=8), json_like, max_size=4))
def test_any_plain_data_survives(tmp_path_factory, meta):
    _, back = round_trip({}, meta, tmp_path_factory.mktemp("m") / "model")
    assert same(meta, back)


def test_random_generators_are_left_out_with_a_warning(tmp_path):
    with pytest.warns(UserWarning, match="random_state is a random generator"):
        _, back = round_trip({}, {"random_state": np.random.RandomState(0)}, tmp_path / "m")
    assert back == {"random_state": None}


@pytest.mark.parametrize("thing", [len, object(), {1, 2}, 1 + 2j, np.array(["2020"], "M8[D]")])
def test_what_is_not_data_is_refused_by_name(thing, tmp_path):
    with pytest.raises(TypeError, match=r"meta\.kernel cannot be saved"):
        save(Fake({}, {"kernel": thing}), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


def test_other_classes_are_refused(tmp_path):
    class Lookalike(Fake):
        pass

    Lookalike.__name__ = "Fake"
    for other in (object(), Lookalike({}, {})):
        with pytest.raises(TypeError, match="cannot be saved, only Fake, Kernel"):
            save(other, tmp_path / "m")


def test_a_pipeline_is_pointed_to_skops(tmp_path):
    pipeline = make_pipeline(StandardScaler(), DummyClassifier()).fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(
        TypeError, match=r"a Pipeline with a Dummy.* cannot be saved.*skops\.io\.dump"
    ):
        save(pipeline, tmp_path / "m")


def test_describe_reads_no_arrays(model, saved):
    info = describe(saved)
    assert info.estimator == "Fake"
    assert info.format_version == persistence.MODEL_FILE.format_version
    assert info.shortlist_version == shortlist.__version__
    assert info.arrays == {"coef_": ("F64", (3, 4))}
    assert info.meta["C"] == 1.0
    assert info.meta["classes_"].tolist() == ["a", "b", "ü"]


def test_describe_outlines_nested_models(model, tmp_path):
    matrix = sparse.eye(4, format="csr")
    save(Fake({}, {"best": {1: model}, "X": matrix, "Cs": np.ones(3)}), tmp_path / "m")
    meta = describe(tmp_path / "m").meta
    assert meta["X"] == "CSR (4, 4)"
    assert meta["Cs"] == "float64 (3,)"
    assert meta["best"][1]["state"]["arrays"] == {"coef_": "float64 (3, 4)"}


def test_saving_twice_gives_the_same_bytes(model, saved, tmp_path):
    for i in range(5):
        save(model, tmp_path / f"{i}")
        assert (tmp_path / f"{i}").read_bytes() == saved.read_bytes()
    save(load(saved), tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_lazy_public_names():
    assert shortlist.save is save
    assert shortlist.load is load


# --- bad files -------------------------------------------------------------------------------


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


# --- writing ---------------------------------------------------------------------------------


@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left"), KeyboardInterrupt()])
@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_a_failed_save_leaves_the_old_file_and_nothing_else(saved, monkeypatch, failure, moment):
    before = saved.read_bytes()

    def fail(*args):
        raise failure

    monkeypatch.setattr(os, moment, fail)
    with pytest.raises(type(failure)):
        save(Fake({"coef_": np.zeros((100, 100))}, {}), saved)
    monkeypatch.undo()
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
    assert saved.read_bytes() == before


def test_a_disk_that_fills_while_writing(saved, monkeypatch):
    before = saved.read_bytes()
    real_open = open

    def open_full(file, mode="r", *args, **kwargs):
        # The temporary file is opened for writing: let it be the device that is always full.
        target = "/dev/full" if "w" in mode else file
        return real_open(target, mode, *args, **kwargs)

    if not os.path.exists("/dev/full"):
        pytest.skip("this system has no /dev/full")
    monkeypatch.setattr("builtins.open", open_full)
    with pytest.raises(OSError, match="No space left"):
        save(Fake({"coef_": np.zeros((100, 100))}, {}), saved)
    monkeypatch.undo()
    assert [p.name for p in saved.parent.iterdir()] == [saved.name]
    assert saved.read_bytes() == before


def test_a_new_file_has_ordinary_permissions_and_a_replaced_one_keeps_its_own(model, tmp_path):
    path, plain = tmp_path / "m", tmp_path / "plain"
    plain.touch()
    save(model, path)
    assert path.stat().st_mode == plain.stat().st_mode
    path.chmod(0o640)
    save(model, path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_link_stays_a_link(model, saved, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(saved)
    save(Fake({}, {"k": 7}), link)
    assert link.is_symlink()
    assert load(saved).meta == {"k": 7}


def test_places_that_cannot_be_written(model, tmp_path):
    with pytest.raises(FileNotFoundError, match="no such directory"):
        save(model, tmp_path / "gone" / "m")
    with pytest.raises(OSError, match="not a regular file"):
        save(model, tmp_path)
    # A device is not replaced by a file.
    with pytest.raises(OSError, match="not a regular file"):
        save(model, os.devnull)


def test_loading_imports_neither_pickle_based_nor_heavy_modules(saved):
    code = (
        "import sys, shortlist.persistence as p\n"
        f"p.describe({str(saved)!r})\n"
        "print([m for m in ('numba', 'torch', 'joblib', 'matplotlib') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# --- the estimators --------------------------------------------------------------------------

ESTIMATORS = {
    "linear": ("TopKClassifier", {"loss": "entropy", "k": 2, "C": 2.0, "random_state": 0}),
    "sparse duals": ("TopKClassifier", {"loss": "smooth_hinge", "k": 2, "fit_intercept": False}),
    "weighted": ("TopKClassifier", {"loss": "ova_logistic", "class_weight": "balanced"}),
    "kernel": ("KernelTopKClassifier", {"loss": "entropy", "k": 2}),
    "cross-validated": ("TopKClassifierCV", {"Cs": [0.1, 1.0], "ks": (1, 2), "cv": 2}),
}


def make(name):
    class_name, params = ESTIMATORS[name]
    return getattr(shortlist, class_name)(**params)


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 20)
    return rng.normal(size=(80, 6)) + 2 * np.eye(6)[y], y


@pytest.mark.parametrize("name", ESTIMATORS)
def test_estimators_predict_the_same_after_loading(name, problem, tmp_path):
    X, y = problem
    fitted = make(name).fit(X, y)
    save(fitted, tmp_path / "m")
    back = load(tmp_path / "m")
    assert type(back) is type(fitted)
    assert same(back.get_params(), fitted.get_params())
    np.testing.assert_array_equal(back.decision_function(X), fitted.decision_function(X))
    np.testing.assert_array_equal(back.predict_topk(X, k=3), fitted.predict_topk(X, k=3))
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))
    assert back.score(X, y) == fitted.score(X, y)
    # A second generation is the same file.
    save(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()


@pytest.mark.parametrize(
    "labels",
    [["ant", "bee", "cat", "düne"], [10, -3, 7, 99], [0.0, 1.0, 2.0, 3.0]],
    ids=["text", "int", "float"],
)
def test_estimators_keep_their_labels(labels, problem, tmp_path):
    X, y = problem
    fitted = make("linear").fit(X, np.array(labels)[y])
    save(fitted, tmp_path / "m")
    back = load(tmp_path / "m")
    assert same(back.classes_, fitted.classes_)
    np.testing.assert_array_equal(back.predict(X), fitted.predict(X))


def test_estimators_keep_booleans_feature_names_and_their_record(problem, tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = problem
    frame = pandas.DataFrame(X, columns=[f"column {i}" for i in range(6)])
    fitted = make("linear").set_params(k=1).fit(frame, y > 1)
    save(fitted, tmp_path / "m")
    back = load(tmp_path / "m")
    assert same(back.classes_, np.array([False, True]))
    assert back.feature_names_in_.tolist() == frame.columns.tolist()
    assert back.n_features_in_ == 6
    assert back.result_ == fitted.result_
    assert back.n_iter_ == fitted.n_iter_
    with pytest.raises(ValueError, match="feature names"):
        back.predict(frame.rename(columns={"column 0": "other"}))


def test_an_estimator_that_is_not_fitted_is_not_saved(tmp_path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(make("linear"), tmp_path / "m")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_array_that_does_not_fit_the_others_is_refused(name, problem, tmp_path):
    X, y = problem
    path = tmp_path / "m"
    save(make(name).fit(X, y), path)
    arrays = safetensors.numpy.load(path.read_bytes())
    largest = max(arrays, key=lambda key: arrays[key].size)
    arrays[largest] = np.ascontiguousarray(arrays[largest][:-1])
    rewrite(path, arrays)
    assert "does not hold a complete model" in refused(path)


# --- how the data was read ------------------------------------------------------------------------


def test_data_is_kept_with_the_model(model, tmp_path):
    data = {"reading": {"format": "csv", "n_features": 3, "label": "digit"}, "other": [1.0, 2.0]}
    save(model, tmp_path / "m", data=data)
    assert describe(tmp_path / "m").data == data
    back = load(tmp_path / "m")
    assert back.data_ == data
    save(back, tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "m").read_bytes()
    save(back, tmp_path / "other", data={})
    assert load(tmp_path / "other").data_ == {}


def test_without_data_there_is_none(saved):
    assert not hasattr(load(saved), "data_")
    assert describe(saved).data is None


@pytest.mark.parametrize("data", [{"a": object()}, {"a": float("nan")}, 3, {"a": np.ones(2)}])
def test_data_must_be_plain(model, tmp_path, data):
    with pytest.raises(TypeError, match="data must be a mapping of plain data"):
        save(model, tmp_path / "m", data=data)
    assert list(tmp_path.iterdir()) == []


def test_damaged_data_is_noticed(model, tmp_path):
    save(model, tmp_path / "m", data={"a": 1})
    state = own_entry(tmp_path / "m")["state"]
    rewrite(tmp_path / "m", state={**state, "data": [1]})
    assert "data is not a mapping" in refused(tmp_path / "m")
