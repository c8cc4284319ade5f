"""Training on a local Ray: the optimum and certificate of one machine, whatever happens."""

import os
import pickle
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import ConvergenceWarning

ray = pytest.importorskip("ray")

from shortlist import TopKClassifier, TopKClassifierCV, distributed  # noqa: E402
from shortlist.distributed.rounds import Rounds, Sigma  # noqa: E402
from shortlist.distributed.storage import RemoteRows, rounds_of  # noqa: E402
from tests.distributed.groups import (  # noqa: E402
    TOL,
    WEIGHTS,
    X,
    Y,
    check,
    dealt,
    forget,
    group_of,
    train,
)
from tests.instances import Instance  # noqa: E402
from tests.solvers import exact  # noqa: E402

pytestmark = pytest.mark.usefixtures("cluster")


@pytest.mark.parametrize("name", ["entropy", "hinge"])
def test_the_certificate_with_fifty_digits(groups, name):
    # This process compiles what the workers would compile twice, at the same time.
    alone = TopKClassifier(name, tol=1e-7, random_state=0).fit(X, Y, WEIGHTS)
    model = train(groups[2], dealt(2), name)
    row, bias = Instance(name, m=4), 1.0

    def primal(fitted):
        W = np.vstack([fitted.coef_.T, fitted.intercept_])
        return float(exact.primal(row, W, X, Y, WEIGHTS, bias))

    here, least = primal(model), min(primal(model), primal(alone))
    result = model.result_
    assert result.primal == pytest.approx(here, rel=1e-13)
    assert 0 < result.dual <= least * (1 + 1e-13)
    assert result.gap >= here - least - 1e-13 * here


@pytest.mark.parametrize(
    ("n_workers", "loss"),
    [
        (1, "hinge"),
        (2, "softmax"),
        (3, "smooth_hinge"),
    ],
)
def test_workers_reach_the_optimum_of_one_machine(groups, n_workers, loss):
    check(train(groups[n_workers], dealt(n_workers), loss), loss)


@pytest.mark.slow
@pytest.mark.parametrize("matrix", [np.asarray, csr_matrix], ids=["dense", "csr"])
@pytest.mark.parametrize("n_workers", [1, 2, 4])
def test_every_loss_on_every_number_of_workers(n_workers, matrix):
    """The cases above are some of these; the workers' start takes most of the time."""
    group = group_of(*dealt(n_workers), matrix=matrix)
    try:
        for loss in ("softmax", "smooth_hinge", "hinge"):
            check(train(group, dealt(n_workers), loss), loss)
    finally:
        group.close()


def test_rounds_add_up_to_sdca(groups, monkeypatch):
    """Without a descent too: a few features let one take over at once otherwise."""
    from shortlist.solvers.strategy import train as strategy

    monkeypatch.setattr(strategy, "_descend_at_once", lambda *_: False)
    monkeypatch.setattr(strategy, "_patience", lambda *_: np.inf)
    model = train(groups[2], dealt(2))
    assert model.result_.solver == "sdca"
    check(model)


def test_a_path_over_C(groups):
    order = np.concatenate(dealt(2))
    models = TopKClassifier(random_state=0).fit_path(
        RemoteRows(groups[2], None), Y[order], [0.1, 1.0, 0.3]
    )
    alone = TopKClassifier(random_state=0, tol=1e-6).fit_path(X, Y, [0.1, 1.0, 0.3])
    for model, other in zip(models, alone, strict=True):
        assert model.result_.primal == pytest.approx(other.result_.primal, rel=1e-3)


def test_a_path_is_shared_out(tmp_path):
    """Two workers, each with neighbouring values of C; the data fits on both."""
    Cs = [1.0, 0.1, 3.0, 0.3, 1.0]
    told = []
    model = TopKClassifier(random_state=0, checkpoint=tmp_path / "path")
    models = distributed.fit_path(
        model, X, Y, Cs=Cs, sample_weight=WEIGHTS, n_workers=2, callback=told.append
    )
    assert [each.C for each in models] == Cs
    assert [each.C for each in told] == sorted(set(Cs))
    assert models[0].coef_ is not models[4].coef_
    assert len(list((tmp_path / "path").iterdir())) == 4
    # Each worker's first model is a cold start: the one of a fit of its own.
    alone = TopKClassifier(random_state=0, C=1.0).fit(X, Y, WEIGHTS)
    assert models[0].result_.primal == alone.result_.primal
    for each in models:
        exact = TopKClassifier(random_state=0, C=each.C, tol=1e-6).fit(X, Y, WEIGHTS)
        assert each.result_.relative_gap <= 1e-3
        assert each.result_.primal == pytest.approx(exact.result_.primal, rel=1e-3)


def test_warnings_and_stops_of_a_shared_path():
    with pytest.warns(ConvergenceWarning, match="not converged after 1.4") as told:
        models = distributed.fit_path(
            TopKClassifier("hinge", max_epochs=1, tol=1e-6),
            *(X, Y),
            Cs=[0.3, 3.0],
            n_workers=2,
            callback=lambda model: model.C == 3.0,
        )
    assert [model.C for model in models] == [0.3, 3.0]
    assert len(told) == 2
    with pytest.raises(ValueError, match="split by rows"):
        distributed.fit_path(TopKClassifier(), ["a"], Cs=[1.0], n_workers=2, split="fits")


@pytest.mark.slow
@pytest.mark.parametrize("split", ["auto", "rows"])
def test_a_search_is_shared_out(split):
    options = {"Cs": [0.03, 0.3, 3.0], "ks": (1, 2), "cv": 2, "random_state": 0}
    there = TopKClassifierCV(**options, max_extensions=0)
    here = TopKClassifierCV(**options, max_extensions=0)
    assert distributed.fit(there, X, Y, n_workers=6, split=split) is there
    here.fit(X, Y)
    assert there.C_ == here.C_
    np.testing.assert_allclose(there.mean_scores_, here.mean_scores_, atol=0.02)
    for k, model in there.estimators_.items():
        assert model.result_.primal == pytest.approx(here.estimators_[k].result_.primal, rel=2e-3)


@pytest.mark.slow
def test_uneven_shards_of_sparse_rows():
    """One holds a single example; none holds all classes."""
    by_class = np.argsort(Y, kind="stable")
    parts = [by_class[:1], by_class[1:120], by_class[120:]]
    group = group_of(*parts, matrix=csr_matrix)
    try:
        check(train(group, parts, "smooth_hinge"), "smooth_hinge")
    finally:
        group.close()


def test_a_killed_worker_is_replaced(groups):
    loss = "hinge"
    group, told = groups[2], []

    def kill(progress):
        if not told:
            told.append(group.loaded[1].process)
            os.kill(told[0], signal.SIGKILL)

    with pytest.warns(RuntimeWarning, match=r"worker 1 .*shard 1\) died and is replaced"):
        model = train(group, dealt(2), loss, callback=kill)
    assert told
    check(model, loss)


def test_a_worker_that_is_killed_while_another_waits_for_it(groups):
    """In mid-round: the other is let go, and goes on with the replacement."""
    group, told = groups[2], []

    def stop(progress):
        if not told:
            told.append(group.loaded[1].process)
            os.kill(told[0], signal.SIGSTOP)
            threading.Timer(0.5, os.kill, (told[0], signal.SIGKILL)).start()

    with pytest.warns(RuntimeWarning, match=r"worker 1 .*shard 1\) died and is replaced"):
        model = train(group, dealt(2), "smooth_hinge", callback=stop)
    assert group.board is not None
    check(model, "smooth_hinge")


def test_a_worker_that_others_wait_for_is_named(groups):
    """Not the one that waits, though that has not answered either."""
    group, told = groups[2], []
    process, before = RemoteRows(group, None).group.loaded[1].process, group.timeout

    def stop(progress):
        group.timeout = before
        if not told:
            told.append(process)
            group.timeout = 1.0
            os.kill(process, signal.SIGSTOP)
            threading.Timer(2.5, os.kill, (process, signal.SIGCONT)).start()

    try:
        with pytest.warns(RuntimeWarning) as warned:
            train(group, dealt(2), "hinge", callback=stop)
    finally:
        group.timeout = before
    first = next(str(each.message) for each in warned if "answered" in str(each.message))
    assert first.startswith("worker 1 on node")


def test_what_a_worker_raises_while_another_waits_for_it(groups):
    group = groups[2]
    train(group, dealt(2))
    group.ask_one(1, "set_costs", Y[:3], None)
    rounds, loss = Rounds("epoch", 0, 2, Sigma(1.0, 1.0), 4), group.prepared["open"](0)[3]
    weights = np.zeros((6, 4), X.dtype)
    with pytest.raises(TypeError, match="NoneType"):
        group.ask_together("visit_rounds", lambda turn: (rounds, loss, weights, 1, turn))
    check(train(group, dealt(2)))


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_sums_through_ray_are_those_on_the_board(groups, monkeypatch, loss):
    """As many rounds either way: the same steps. Workers on several machines have no board.

    With other weights a hinge may part ways where the last digits decide, within the tolerance.
    """
    from shortlist.distributed import storage
    from shortlist.solvers.strategy import train as strategy

    monkeypatch.setattr(strategy, "_descend_at_once", lambda *_: False)
    monkeypatch.setattr(storage, "MAX_SUPPORT_PARTS", 1)
    group, found = groups[2], []
    monkeypatch.setattr(group, "rows_per_round", 20)
    for board in (True, False):
        if not board:
            monkeypatch.setattr(group, "share_board", lambda *_: group._drop_board())
        found.append(train(group, dealt(2), loss))
        assert (group.board is not None) == board
    check(found[1], loss)
    here, there = (model.result_ for model in found)
    # Part of an epoch is as large as the gap asks for, which rounding changes a little.
    assert here.epochs == pytest.approx(there.epochs, rel=1e-9)
    assert here.primal == pytest.approx(there.primal, rel=1e-9)
    np.testing.assert_allclose(found[0].coef_, found[1].coef_, rtol=1e-6, atol=1e-9)


class Cut(Exception):
    """Ends a fit from its callback."""


def cut_at_third(progress):
    if progress.epoch >= 3:
        raise Cut


def test_a_fit_that_was_cut_goes_on(groups, tmp_path):
    """Softmax's duals stay with the workers: a descent goes on from the weights."""
    saved = tmp_path / "checkpoint"
    with pytest.raises(Cut):
        train(groups[2], dealt(2), checkpoint=saved, callback=cut_at_third)
    groups[2].ask("set_zero_duals", lambda _: (4, False))
    model = train(groups[2], dealt(2), checkpoint=saved)
    check(model)
    assert model.result_.history[0].epoch < 3 < model.result_.epochs
    with pytest.raises(ValueError, match="n_workers is 3 here and 2 there"):
        train(groups[3], dealt(3), checkpoint=saved)


# A driver that is killed after some epochs, when it has written a checkpoint.
DRIVER = """
import os, signal, sys
import numpy as np
from shortlist import TopKClassifier, distributed

def kill(progress):
    if progress.epoch >= 3:
        os.kill(os.getpid(), signal.SIGKILL)

data, checkpoint, address = sys.argv[1:]
found = np.load(data)
model = TopKClassifier("hinge", tol=1e-4, checkpoint=checkpoint, checkpoint_every=0)
distributed.fit(
    model, found["X"], found["y"], sample_weight=found["weights"], n_workers=2,
    address=address, callback=kill,
)
"""


def test_a_killed_driver_is_resumed(tmp_path):
    """Training goes on from the epochs, weights and duals of the checkpoint."""
    data, saved = tmp_path / "data.npz", tmp_path / "checkpoint"
    np.savez(data, X=X, y=Y, weights=WEIGHTS)
    address = ray.get_runtime_context().gcs_address
    ended = subprocess.run([sys.executable, "-c", DRIVER, data, saved, address], timeout=600)
    assert ended.returncode == -signal.SIGKILL
    model = TopKClassifier("hinge", tol=TOL, checkpoint=saved)
    distributed.fit(model, X, Y, sample_weight=WEIGHTS, n_workers=2)
    check(model, "hinge")
    first, second = model.result_.history[:2]
    assert 0 < first.epoch <= 3
    assert second.gap < first.gap


@pytest.mark.parametrize("loss", ["softmax", "hinge"])
def test_a_warm_start_after_the_workers_are_gone(groups, loss):
    """Their duals are gone with them: smooth losses go on from the weights, hinges start anew."""
    model = TopKClassifier(loss, tol=TOL, random_state=0, warm_start=True)
    order = np.concatenate(dealt(2))
    model.fit(RemoteRows(groups[2], None), Y[order], WEIGHTS[order])
    epochs = model.result_.epochs
    model = pickle.loads(pickle.dumps(model))
    # Other workers, which have never seen those duals, or the same without their memory.
    if loss == "softmax":
        distributed.fit(model, X, Y, sample_weight=WEIGHTS, n_workers=2)
    else:
        forget(groups[2])
        model.fit(RemoteRows(groups[2], None), Y[order], WEIGHTS[order])
    check(model, loss)
    if loss == "softmax":
        assert model.result_.epochs < 0.5 * epochs
    # One machine goes on from there too.
    check(model.fit(X, Y, WEIGHTS), loss)


def test_a_silent_worker_is_named(groups):
    group = groups[2]
    process = RemoteRows(group, None).group.loaded[1].process
    before, group.timeout = group.timeout, 0.3
    os.kill(process, signal.SIGSTOP)
    threading.Timer(1.0, os.kill, (process, signal.SIGCONT)).start()
    try:
        with pytest.warns(RuntimeWarning, match=f"worker 1 on node .*process {process}"):
            group.ask("scale_duals", lambda _: (1.0,))
    finally:
        group.timeout = before


@pytest.mark.parametrize(
    ("rows", "n_workers", "given", "expected"),
    [
        (500, 2, None, 1),
        (5000, 8, None, 5),
        (60_000, 2, None, 8),
        (10**6, 64, None, 32),
        (5000, 2, 500, 10),
    ],
)
def test_rounds_of_an_epoch(rows, n_workers, given, expected):
    assert rounds_of(rows, n_workers, given, sparse_duals=False) == expected


@pytest.mark.parametrize(
    ("rows", "n_workers", "given", "expected"),
    [(500, 2, None, 1), (5000, 8, None, 10), (60_000, 2, None, 32), (5000, 2, 500, 10)],
)
def test_hinges_take_more_rounds(rows, n_workers, given, expected):
    assert rounds_of(rows, n_workers, given, sparse_duals=True) == expected
