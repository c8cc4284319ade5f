"""Edited model files whose checksum fits: what fit could not have made is refused by name."""

import warnings

import numpy as np
import pytest
import safetensors.numpy
from scipy import sparse

from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV, losses
from shortlist.persistence import load, save
from tests.model_files import own_entry, refused, rewrite


def rewritten(path, change):
    """Apply a change to a file's state and arrays, and write it with a checksum that fits."""
    arrays = safetensors.numpy.load(path.read_bytes())
    state = own_entry(path)["state"]
    change(state, arrays)
    for name, array in arrays.items():
        for part in (state["arrays"], state["meta"]):
            for value in part.values():
                entry = value.get("$array") if isinstance(value, dict) else None
                if entry and entry["name"] == name:
                    entry.update(dtype=array.dtype.str, shape=list(array.shape))
    rewrite(path, arrays, state=state)


def set_meta(**changes):
    return lambda state, arrays: state["meta"].update(changes)


def set_data(**reading):
    whole = {"format": "csv", "n_features": 6, **reading}
    return lambda state, arrays: state.update(data={"reading": whole})


def set_parameter(**changes):
    return lambda state, arrays: state["meta"]["params"].update(changes)


def set_result(**changes):
    return lambda state, arrays: state["meta"]["result"].update(changes)


def set_array(name, edit):
    return lambda state, arrays: arrays.update({name: np.ascontiguousarray(edit(arrays[name]))})


def nan_first(array):
    changed = array.copy()
    changed.flat[0] = np.nan
    return changed


def words(*items):
    return {"$items": {"kind": "text", "shape": [len(items)], "items": list(items)}}


def set_classes(edit):
    """Change the classes where they are stored: numbers are an array of the file."""
    return set_array("meta.classes", edit)


IMPOSSIBLE_LINEAR = {
    "NaN weights": (set_array("coef", nan_first), "coef holds a value that is not finite"),
    "a row less": (set_array("coef", lambda a: a[:-1]), r"coef has shape (3, 6), not (4, 6)"),
    "integers": (set_array("coef", lambda a: a.astype(int)), "coef is of type int64"),
    "text": (set_array("coef", lambda a: np.frombuffer(b"text" * 24, np.uint8)), "type uint8"),
    "flat": (set_array("coef", np.ravel), "coef has shape (24,)"),
    "long intercept": (set_array("intercept", lambda a: np.append(a, 0)), "shape (5,), not (4,)"),
    "a class twice": (set_classes(lambda a: a // 2), "not sorted, or one is there twice"),
    "unsorted classes": (set_classes(lambda a: a[::-1]), "not sorted, or one is there twice"),
    "a class more": (set_classes(lambda a: np.arange(5)), r"coef has shape (4, 6), not (5, 6)"),
    "half classes": (set_classes(lambda a: a + 0.5), "a class is a number that is not whole"),
    "words, unsorted": (set_meta(classes=words("b", "a", "c", "d")), "not sorted"),
    "no features": (set_meta(n_features_in=0), "n_features_in is 0"),
    "other features": (set_meta(n_features_in=7), r"coef has shape (4, 6), not (4, 7)"),
    "names": (set_meta(feature_names_in=words("a")), "not one name for each feature"),
    "k": (set_parameter(k=9), "k"),
    "C": (set_parameter(C=-1.0), "C must be a positive finite number; got -1.0"),
    "loss": (set_parameter(loss="os.system"), "os.system"),
    "unknown parameter": (set_parameter(code="x"), "unexpected keyword argument 'code'"),
    "seed": (set_parameter(random_state=-1), "random_state is -1"),
    "class_weight": (set_parameter(class_weight={"a": "b"}), "a weight in class_weight is 'b'"),
    "intercept": (set_parameter(fit_intercept=False), "there is an intercept, but none was fitted"),
    "status": (set_result(status="fine"), "the training's status is 'fine'"),
    "dual": (set_result(dual=1e9), "dual is larger than primal"),
    "primal": (set_result(primal="many"), "primal in the training's record is 'many'"),
    "gap": (set_result(gap=0.0), "gap is not what primal and dual say"),
    "distance": (set_result(distance=1e-9), "distance to the optimum is 1e-09, less than the gap"),
    "no distance": (set_result(distance="near"), "distance to the optimum is 'near'"),
    "epochs": (set_meta(n_iter=-1), "n_iter is not a number of epochs"),
    "data": (set_data(code="x"), "unknown entry 'code' in a description of data"),
    "data's width": (set_data(n_features=7), "the data had another number of features"),
    "data's base": (set_data(index_base=2), "index_base of a description of data cannot be 2"),
    "data's scaling": (
        set_data(scaling={"kind": "standard", "factor": [1.0]}),
        "factor of a scaling must be a finite number for each feature",
    ),
    "data's names": (set_data(class_names=[[0, "a"], [0, "b"]]), "a class has two names"),
    "data's labels": (set_data(classes=[1, 2]), "the data had another number of labels"),
    "several labels": (set_meta(multilabel=1), "multilabel is neither True nor False"),
}


@pytest.fixture(scope="module")
def fitted_files(tmp_path_factory):
    """Return the contents of one file for each kind of estimator."""
    y = np.repeat(np.arange(4), 20)
    X = np.random.default_rng(0).normal(size=(80, 6)) + 2 * np.eye(6)[y]
    path = tmp_path_factory.mktemp("models") / "m"
    models = {
        "linear": TopKClassifier(k=2, C=2.0, random_state=0),
        "kernel": KernelTopKClassifier(k=2),
        "cross-validated": TopKClassifierCV(Cs=[0.1, 1.0], ks=(1, 2), cv=2),
    }
    contents = {}
    for name, model in models.items():
        save(model.fit(X, y), path)
        contents[name] = path.read_bytes()
    return contents


@pytest.mark.parametrize("case", IMPOSSIBLE_LINEAR)
def test_what_fit_could_not_have_made_is_refused_by_name(case, fitted_files, tmp_path):
    path = tmp_path / "m"
    path.write_bytes(fitted_files["linear"])
    change, problem = IMPOSSIBLE_LINEAR[case]
    rewritten(path, change)
    assert problem in refused(path)


IMPOSSIBLE_OTHERS = {
    "support order": ("kernel", set_array("support", lambda a: a[::-1]), "in their order"),
    "support type": ("kernel", set_array("support", lambda a: a * 1.5), "support is of type"),
    "dual NaN": ("kernel", set_array("dual_coef", nan_first), "dual_coef holds a value"),
    "dual zero": ("kernel", set_array("dual_coef", lambda a: a * 0), "has no coefficient"),
    "gamma": ("kernel", set_meta(gamma=-1.0), "gamma is -1.0"),
    "kernel": ("kernel", set_parameter(kernel="os.system"), "kernel is 'os.system'"),
    "degree": (
        "kernel",
        set_parameter(kernel="poly", degree={"$float": "nan"}),
        "degree is nan",
    ),
    "vectors": ("kernel", set_meta(support_vectors=words("a")), "the support vectors is of type"),
    "ks": ("cross-validated", set_meta(ks={"$tuple": [1, 9]}), "9 is among the ks"),
    "chosen": ("cross-validated", set_meta(chosen=[5, 6]), "choices are not those of the models"),
    "chosen rows": ("cross-validated", set_meta(rows=[9, 9]), "a chosen row is not of the table"),
    "families": ("cross-validated", set_meta(families=[]), "a family that was not searched"),
    "a family": ("cross-validated", set_meta(families=["x"]), "is not named by its parameters"),
    "models": ("cross-validated", set_meta(models=[]), "there are no models"),
    "a model's kind": ("cross-validated", set_meta(models=["x"]), "a model is of another class"),
    "scores": (
        "cross-validated",
        set_array("mean_scores", lambda a: a + 1),
        "values outside 0 to 1",
    ),
    "table": (
        "cross-validated",
        set_array("std_scores", lambda a: a * 0.5 + 0.1),
        "column std_top1 differs from std_scores",
    ),
    "folds": ("cross-validated", set_parameter(cv=1), "cv is 1"),
    "k": ("cross-validated", set_parameter(k=2**63), "k must lie between 1 and"),
    "a family's k": (
        "cross-validated",
        set_parameter(losses=[{"$dict": [["loss", "hinge"], ["k", 9]]}]),
        "got k=9 with 4 classes",
    ),
    "k besides families": (
        "cross-validated",
        set_parameter(k=4, losses=["hinge"]),
        "got k=4 with 4 classes",
    ),
}


@pytest.mark.parametrize("case", IMPOSSIBLE_OTHERS)
def test_what_other_estimators_could_not_have_made(case, fitted_files, tmp_path):
    name, change, problem = IMPOSSIBLE_OTHERS[case]
    path = tmp_path / "m"
    path.write_bytes(fitted_files[name])
    rewritten(path, change)
    assert problem in refused(path)


# --- what fit makes is always accepted ------------------------------------------------------------

N_CLASSES = 4
LABELS = {
    "int": np.arange(N_CLASSES) - 2,
    "uint8": np.arange(N_CLASSES, dtype=np.uint8),
    "float": np.array([0.0, 1.0, 5.0, 9.0], np.float32),
    "text": np.array(["", "a", "ü", "猫"]),
    "objects": np.array(["a", "b", "c", "dd"], dtype=object),
}
KERNELS = {
    "linear": {"kernel": "linear", "coef0": -3.0, "degree": None},
    "poly": {"kernel": "poly", "gamma": 0.5, "degree": 2, "coef0": 1.0},
    "rbf": {"kernel": "rbf", "gamma": "auto", "fit_intercept": 1},
}


@pytest.fixture(scope="module")
def training_data():
    codes = np.repeat(np.arange(N_CLASSES), 10)
    X = np.random.default_rng(0).normal(size=(40, 5)) + 2 * np.eye(5)[codes]
    return X, codes


def survives(model, X, path):
    save(model, path)
    back = load(path)
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    assert back.classes_.tolist() == model.classes_.tolist()


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("loss", losses.names())
def test_every_loss(loss, k, training_data, tmp_path):
    X, codes = training_data
    model = TopKClassifier(loss, k=k, max_epochs=2, verbose=False, class_weight={0: 0.5})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model.fit(X, codes, X_val=X, y_val=codes)
        except ValueError as error:
            pytest.skip(str(error))  # "softmax" is at k=1 only
    survives(model, X, tmp_path / "m")


@pytest.mark.parametrize("kind", LABELS)
def test_every_kind_of_label(kind, training_data, tmp_path):
    X, codes = training_data
    survives(TopKClassifier().fit(X, LABELS[kind][codes]), X, tmp_path / "m")


@pytest.mark.parametrize("kind", KERNELS)
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_matrix], ids=["dense", "sparse"])
def test_every_kernel(kind, convert, training_data, tmp_path):
    X, codes = training_data
    model = KernelTopKClassifier("smooth_hinge", **KERNELS[kind]).fit(convert(X), codes)
    survives(model, X, tmp_path / "m")


def test_training_that_was_stopped(training_data, tmp_path):
    X, codes = training_data
    model = TopKClassifier("hinge", tol=1e-9, C=1e3).fit(X, codes, callback=lambda progress: True)
    assert model.result_.status == "stopped"
    survives(model, X, tmp_path / "m")


def test_searches(training_data, tmp_path):
    X, codes = training_data
    families = ["truncated_entropy", {"loss": "smooth_hinge", "k": 2}]
    search = TopKClassifierCV(losses=families, Cs=[0.1, 1.0], ks=[1, 2], cv=2, max_extensions=0)
    survives(search.fit(X, codes), X, tmp_path / "m")
    given = TopKClassifierCV(Cs=2, ks=1, refit="train", max_extensions=0, random_state=3)
    survives(given.fit(X, codes, X_val=X, y_val=codes), X, tmp_path / "m")
