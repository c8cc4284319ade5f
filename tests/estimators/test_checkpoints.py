"""Checkpoints of the estimators: what they resume, what they refuse, what they leave alone."""

import json
import os
import struct
import warnings

import numpy as np
import pytest
import safetensors.numpy
from scipy import sparse

import shortlist
from shortlist import KernelTopKClassifier, TopKClassifier, TopKClassifierCV
from shortlist._state_files import digest
from shortlist.errors import CheckpointError
from shortlist.estimators.checkpoints import CHECKPOINT_FILE
from tests.solvers.problems import make_data

X, Y = make_data(60, 5, 4)
TOL = 1e-6


def softmax(path, **changes):
    options = {"C": 3.0, "tol": TOL, "random_state": 0, "checkpoint_every": 0.0} | changes
    return TopKClassifier(checkpoint=path, **options)


def stop_after(epochs):
    return lambda progress: progress.epoch >= epochs


@pytest.fixture
def stopped(tmp_path):
    """A checkpoint of a fit that was stopped after three epochs, and the epochs it had taken."""
    path = tmp_path / "fit"
    model = softmax(path).fit(X, Y, callback=stop_after(3))
    assert model.result_.status == "stopped"
    return path, model.result_.epochs


@pytest.fixture(scope="module")
def optimum():
    return softmax(None).fit(X, Y).result_


def refused(path, model, data=X, y=Y, **weights):
    with pytest.raises(CheckpointError) as error:
        model.fit(data, y, **weights)
    message = str(error.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_a_fit_goes_on_where_it_stopped(stopped, optimum):
    path, epochs = stopped
    model = softmax(path).fit(X, Y)
    assert model.result_.status == "converged"
    assert model.result_.relative_gap <= TOL
    assert model.result_.primal == pytest.approx(optimum.primal, rel=3 * TOL)
    assert model.result_.history[0].epoch <= epochs
    # What is finished is certified anew and not trained again.
    again = softmax(path).fit(X, Y)
    assert again.result_.status == "converged"
    assert again.result_.epochs == model.result_.epochs


def test_another_tolerance_goes_on_too(stopped):
    path, _ = stopped
    assert softmax(path, tol=1e-3).fit(X, Y).result_.relative_gap <= 1e-3
    assert softmax(path, tol=1e-8).fit(X, Y).result_.relative_gap <= 1e-8


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"C": 2.0}, "is of another fit: C is 2.0 here and 3.0 there"),
        ({"loss": "hinge"}, "loss is 'hinge' here and 'entropy' there"),
        ({"fit_intercept": False}, "fit_intercept is False here and True there"),
        ({"class_weight": "balanced"}, "the weights of examples differ"),
    ],
)
def test_other_parameters_are_refused(stopped, changes, words):
    path, _ = stopped
    before = path.read_bytes()
    assert words in refused(path, softmax(path, **changes))
    assert path.read_bytes() == before


def test_other_data_is_refused(stopped):
    path, _ = stopped
    moved = X.copy()
    moved[7, 2] += 1e-9
    assert "the examples differ" in refused(path, softmax(path), moved)
    swapped = Y.copy()
    swapped[[4, 5]] = (swapped[[4, 5]] + 1) % 4
    assert "the labels differ" in refused(path, softmax(path), X, swapped)
    assert "the labels differ" in refused(path, softmax(path), X, Y + 1)
    weights = np.linspace(1, 2, len(Y))
    assert "the weights" in refused(path, softmax(path), sample_weight=weights)


def test_files_that_are_no_checkpoint(stopped, tmp_path):
    path, _ = stopped
    whole = path.read_bytes()
    for content, words in [
        (b"", "is not a Shortlist checkpoint file"),
        (whole[: len(whole) // 2], "is cut short"),
        (whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:], "its checksum does not match"),
    ]:
        path.write_bytes(content)
        assert words in refused(path, softmax(path))
    model = tmp_path / "model"
    shortlist.save(softmax(None).fit(X, Y), model)
    assert "is not a Shortlist checkpoint file" in refused(model, softmax(model))
    assert "is a directory" in refused(tmp_path, softmax(tmp_path))
    nowhere = tmp_path / "no" / "where"
    assert "no such folder" in refused(nowhere, softmax(nowhere))


def edited(path, change):
    """Change a checkpoint's state and arrays, with a checksum that fits."""
    content = path.read_bytes()
    end = 8 + struct.unpack("<Q", content[:8])[0]
    own = json.loads(json.loads(content[8:end])["__metadata__"][CHECKPOINT_FILE.mark])
    arrays = safetensors.numpy.load(content)
    change(own["state"], arrays)
    own["sha256"] = digest(own["state"], arrays)
    path.write_bytes(
        safetensors.numpy.save(arrays, metadata={CHECKPOINT_FILE.mark: json.dumps(own)})
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda state, arrays: arrays["state.duals"].fill(np.nan),
        lambda state, arrays: arrays["state.starts"].fill(np.inf),
        lambda state, arrays: state.update(epochs=-1),
        lambda state, arrays: state.update(seconds="long"),
        lambda state, arrays: state["stage"].update(name="dinner"),
        lambda state, arrays: state["stage"].update(looks=10**9),
        lambda state, arrays: state.update(duals=None),
        lambda state, arrays: state.update(weights=[1.0]),
        lambda state, arrays: state.update(history=[{}]),
        lambda state, arrays: state.pop("identity"),
        lambda state, arrays: arrays.update({"state.duals": arrays["state.duals"][:-1].copy()}),
    ],
)
def test_what_no_fit_could_have_written_is_refused(stopped, change):
    path, _ = stopped
    edited(path, lambda state, arrays: change(state, arrays))
    assert "does not hold a complete checkpoint" in refused(path, softmax(path))


def test_a_fit_of_a_path_that_is_over_is_none_to_go_on_from(tmp_path):
    softmax(tmp_path).fit_path(X, Y, [1.0, 3.0])
    path = tmp_path / "C=1.0"

    def forget_the_path(state, arrays):
        for name in ("tol", "max_epochs"):
            del state["identity"]["parameters"][name]

    assert "is of another fit: tol is None here" in refused(path, softmax(path, C=1.0))
    edited(path, forget_the_path)
    assert "holds a finished fit of fit_path; use another path or delete it" in refused(
        path, softmax(path, C=1.0)
    )


def test_duals_edited_to_certify_too_much_do_not(stopped, optimum):
    path, _ = stopped
    edited(path, lambda state, arrays: arrays["state.duals"].fill(5.0))
    result = softmax(path).fit(X, Y).result_
    assert result.primal == pytest.approx(optimum.primal, rel=3 * TOL)
    assert result.dual <= optimum.primal * (1 + 1e-12)


def test_csr_and_kernels(tmp_path):
    rows = sparse.csr_array(X)
    path = tmp_path / "csr"
    softmax(path).fit(rows, Y, callback=stop_after(2))
    assert softmax(path).fit(rows, Y).result_.relative_gap <= TOL
    options = {"C": 3.0, "checkpoint": tmp_path / "rbf", "checkpoint_every": 0, "random_state": 0}
    KernelTopKClassifier(tol=TOL, **options).fit(X, Y, callback=stop_after(2))
    assert KernelTopKClassifier(tol=TOL, **options).fit(X, Y).result_.relative_gap <= TOL
    other = KernelTopKClassifier(gamma=7.0, **options)
    assert "gamma is 7.0 here" in refused(options["checkpoint"], other)


def test_a_disk_that_is_full_does_not_end_training(tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shortlist.estimators.checkpoints.write_state", full)
    with pytest.warns(UserWarning, match="No space left on device.; training goes on"):
        model = softmax(tmp_path / "fit").fit(X, Y)
    assert model.result_.status == "converged"


def test_where_checkpoints_lie_is_no_part_of_a_model(tmp_path):
    model = softmax(tmp_path / "fit").fit(X, Y)
    shortlist.save(model, tmp_path / "model")
    assert shortlist.load(tmp_path / "model").checkpoint is None
    assert model.checkpoint == tmp_path / "fit"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"checkpoint": 3}, TypeError),
        ({"checkpoint_every": -1.0}, ValueError),
        ({"checkpoint_every": None}, ValueError),
    ],
)
def test_parameters_are_checked(changes, error, tmp_path):
    with pytest.raises(error, match=next(iter(changes))):
        softmax(tmp_path / "fit").set_params(**changes).fit(X, Y)


# --- paths and searches ---------------------------------------------------------------------------

CS = [0.1, 1.0, 3.0]


def test_a_path_goes_on_after_the_fits_it_had_finished(tmp_path):
    whole = softmax(None).fit_path(X, Y, CS)
    folder = tmp_path / "path"
    first = softmax(folder).fit_path(X, Y, CS, callback=lambda model: model.C == 1.0)
    assert [model.C for model in first] == CS[:2]
    assert sorted(os.listdir(folder)) == ["C=0.1", "C=1.0"]
    # The duals of a fit are kept until the next one is finished.
    assert (folder / "C=0.1").stat().st_size < (folder / "C=1.0").stat().st_size
    again = softmax(folder).fit_path(X, Y, CS)
    assert again[0].result_ == first[0].result_
    np.testing.assert_array_equal(again[0].coef_, first[0].coef_)
    for model, expected in zip(again, whole, strict=True):
        assert model.result_.relative_gap <= TOL
        assert model.result_.primal == pytest.approx(expected.result_.primal, rel=3 * TOL)
        assert model.checkpoint is None
    with pytest.raises(CheckpointError, match=r"C=0.1: is of another fit: tol is 0.01 here"):
        softmax(folder, tol=0.01).fit_path(X, Y, CS)


def test_a_search_goes_on_after_the_fits_it_had_finished(tmp_path, monkeypatch):
    folder = tmp_path / "search"
    options = {"Cs": CS, "ks": (1, 2), "cv": 2, "max_extensions": 0, "random_state": 0, "tol": TOL}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = TopKClassifierCV(**options).fit(X, Y)
        options |= {"checkpoint": folder, "checkpoint_every": 0.0}
        TopKClassifierCV(**options).fit(X, Y)
        # Of the second process: the refit had not begun, the second fold was in its last fit.
        for file in folder.glob("*refit/*"):
            file.unlink()
        (folder / "family 0, fold 1" / "C=3.0").unlink()
        again = TopKClassifierCV(**options).fit(X, Y)
    assert again.C_ == whole.C_
    np.testing.assert_allclose(again.mean_scores_, whole.mean_scores_)
    for k, model in again.estimators_.items():
        expected = whole.estimators_[k].result_
        assert model.result_.primal == pytest.approx(expected.primal, rel=3 * TOL)
    shortlist.save(again, tmp_path / "model")
    assert shortlist.load(tmp_path / "model").checkpoint is None
