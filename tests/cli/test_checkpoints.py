"""--checkpoint and --resume, signals, and a model that cannot be saved where it should."""

import os
import signal
import threading

import pytest

import shortlist
from shortlist.cli import output
from shortlist.cli.run import ended_like_ctrl_c
from shortlist.estimators.cv_measure import Measure

TRAIN = ("--loss", "softmax", "-e", "1e-6", "-q")


def test_resume_goes_on_and_success_removes(command, files, tmp_path):
    kept, model = str(tmp_path / "kept"), str(tmp_path / "model")
    train = ("train", files / "data.svm", "-o", model, "--checkpoint", kept)
    often = ("--checkpoint-every", "0", *TRAIN)
    shortlist_options = {"loss": "softmax", "tol": 1e-6, "random_state": 0}
    stopped = shortlist.TopKClassifier(checkpoint=kept, checkpoint_every=0, **shortlist_options)
    data = shortlist.datasets.read_dataset(files / "data.svm")
    stopped.fit(data.X, data.y, callback=lambda progress: progress.epoch >= 2)
    refused = command(*train, *often)
    assert refused.code == 2
    assert refused.err.endswith("exists; go on from it with --resume, or delete it\n")
    other = command(*train, *often, "--resume", "-C", "7")
    assert other.code == 2
    assert "is of another fit: C is 7.0 here and 1.0 there" in other.err
    ended = command(*train, *often[:-1], "--resume")
    assert ended.code == 0, ended.err
    assert f"going on from {kept}" in ended.err
    assert shortlist.load(model).result_.relative_gap <= 1e-6
    assert shortlist.load(model).checkpoint is None
    assert not os.path.exists(kept)
    again = command(*train, *often[:-1], "--resume")
    assert again.code == 0
    assert "no checkpoint yet" in again.err


def test_what_does_not_go_together(command, files):
    assert "--checkpoint PATH" in command("train", files / "data.svm", "-o", "m", "--resume").err
    folds = command("train", files / "data.svm", "-v", "3", "--checkpoint", "kept")
    assert "-v keeps no checkpoints" in folds.err


@pytest.mark.parametrize("subcommand", ["train", "cv"])
def test_a_checkpoint_is_neither_the_data_nor_the_model(command, files, subcommand):
    args = [subcommand, files / "data.svm", "-o", "m", "--resume", "--checkpoint"]
    for path in (files / "data.svm", "./m"):
        refused = command(*args, path)
        assert refused.code == 2
        assert "is read or written here, and would be lost" in refused.err
    assert os.path.exists(files / "data.svm")


def interrupt_after(monkeypatch, fits):
    """Let SIGTERM arrive when so many fits of a search are finished."""
    measure, done = Measure.__call__, []

    def measured(*args):
        if len(done) == fits:
            os.kill(os.getpid(), signal.SIGTERM)
        done.append(True)
        return measure(*args)

    monkeypatch.setattr(Measure, "__call__", measured)


def test_a_search_ended_by_a_signal_keeps_what_it_has(command, files, tmp_path, monkeypatch):
    model = str(tmp_path / "model")
    kept = str(tmp_path / "kept")
    search = ("cv", files / "data.svm", "--Cs", "0.1,1", "--ks", "1", "-v", "3", "-o", model)
    interrupt_after(monkeypatch, fits=3)
    ended = command(*search, "--loss", "softmax", "--checkpoint", kept)
    assert ended.code == 128 + signal.SIGTERM
    assert "C is chosen from 2 values measured on 1 of 3 folds" in ended.err
    assert ended.err.endswith("shortlist: interrupted by SIGTERM\n")
    assert "best for top-1: C=" in ended.out
    assert shortlist.load(model).cv_results_["C"].tolist() == [0.1, 1.0]
    monkeypatch.undo()
    ended = command(*search, "--loss", "softmax", "--checkpoint", kept, "--resume")
    assert ended.code == 0, ended.err
    assert not os.path.exists(kept)


def test_nothing_is_chosen_from_nothing(command, files, monkeypatch):
    interrupt_after(monkeypatch, fits=0)
    ended = command("cv", files / "data.svm", "--Cs", "0.1,1", "--ks", "1", "-v", "2")
    assert ended.code == 128 + signal.SIGTERM
    assert ended.out == ""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
@pytest.mark.parametrize("ctrl_c", [signal.default_int_handler, signal.SIG_IGN])
def test_signals_are_like_ctrl_c(name, ctrl_c):
    number = getattr(signal, name)
    before = signal.signal(signal.SIGINT, ctrl_c)
    try:
        with pytest.raises(KeyboardInterrupt), ended_like_ctrl_c() as received:
            signal.raise_signal(number)
    finally:
        signal.signal(signal.SIGINT, before)
    assert received.exit_code == 128 + number
    assert received.told == f"interrupted by {name}"
    assert signal.getsignal(number) is signal.SIG_DFL


def test_an_ignored_signal_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_like_ctrl_c() as received:
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
    assert received.number == signal.SIGINT


def test_other_threads_leave_signals_alone():
    codes = []

    def work():
        with ended_like_ctrl_c() as received:
            codes.append(received.exit_code)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert codes == [130]


def test_a_model_that_cannot_be_saved_here_is_saved_elsewhere(
    command, files, tmp_path, monkeypatch
):
    here, home = tmp_path / "here", tmp_path / "home"
    here.mkdir(), home.mkdir()
    (home / "model").write_text("taken")
    monkeypatch.chdir(here)
    monkeypatch.setenv("HOME", str(home))
    save, full = shortlist.save, [str(tmp_path / "model"), here / "model"]

    def save_unless_full(model, path, **options):
        if path in full:
            raise OSError(28, "No space left on device", str(path))
        save(model, path, **options)

    monkeypatch.setattr(shortlist, "save", save_unless_full)
    ended = command("train", files / "data.svm", "-o", full[0], *TRAIN[:-1])
    elsewhere = home / "model.1"
    assert ended.code == 1
    assert f"No space left on device; the model is saved in {elsewhere} instead" in ended.err
    assert f"saved in {elsewhere}" in ended.out
    assert shortlist.load(elsewhere).result_.status == "converged"
    monkeypatch.setattr(output, "_other_places", lambda path: iter([here / "model"]))
    lost = command("train", files / "data.svm", "-o", full[0], *TRAIN)
    assert lost.code == 1
    assert lost.err == f"shortlist: {full[0]}: No space left on device\n"
