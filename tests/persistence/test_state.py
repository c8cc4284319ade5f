"""Saving and loading: exact, data only, whole or not at all, and clear about bad files."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.dummy import DummyClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shortlist
from shortlist import persistence
from shortlist.persistence import describe, load, save
from tests.model_files import own_entry, refused, rewrite
from tests.persistence.fake import Fake, same


def round_trip(arrays, meta, path):
    save(Fake(arrays, meta), path)
    back = load(path)
    return back.arrays, back.meta


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
