"""Checkpoints of fits: files from which another process goes on with an unfinished fit.

A checkpoint is a file of :mod:`shortlist._state_files`: data, written whole or not at all, with a
checksum. It holds a solver's :class:`Snapshot` and the identity of its fit: the parameters that
define the problem, and hashes of examples, labels and weights. Of a fit that is over and whose
duals are not needed, such as an earlier one of a path, it holds the weights and the result.
"""

import hashlib
import os
import time
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._encoding import Decoder, Encoder
from shortlist._parameters import PLAIN_LOSS_PARAMETERS, is_integer
from shortlist._record_checks import check_array, check_number, check_result, require
from shortlist._state_files import (
    FileKind,
    bytes_of,
    read_arrays,
    read_header,
    told_as,
    write_state,
)
from shortlist.errors import CheckpointError
from shortlist.estimators.callers import level_outside
from shortlist.estimators.examples import contents_of_rows, examples_of
from shortlist.solvers.duals import Duals, SparseDuals, as_plain
from shortlist.solvers.problem import Problem
from shortlist.solvers.records.checkpoint import STAGES, Snapshot, Stage
from shortlist.solvers.records.result import Evaluation, Result
from shortlist.solvers.strategy.train import Solution

CHECKPOINT_FILE = FileKind("checkpoint", 1, CheckpointError)
# Parameters that define the problem. The first ones are the kernel classifier's own.
_PARAMETERS = (
    *("kernel", "gamma_", "degree", "coef0"),
    *PLAIN_LOSS_PARAMETERS,
    *("C", "fit_intercept", "intercept_scaling", "normalize"),
)

Identity = dict[str, Any]


def identity_of(model: Any, problem: Problem, X: Any, **more: Any) -> Identity:
    """What must be the same in a checkpoint and in a fit: parameters, and hashes of the data."""
    parameters = {name: getattr(model, name) for name in _PARAMETERS if hasattr(model, name)}
    if callable(parameters.get("kernel")):
        parameters["kernel"] = getattr(model.kernel, "__qualname__", type(model.kernel).__name__)
    classes = np.frombuffer(repr(model.classes_.tolist()).encode(), np.uint8)
    examples = examples_of(X, model.memory_limit)
    contents, layout = examples.contents(model)
    return {
        "parameters": {**parameters, **more, **layout},
        "examples": _hash(contents),
        "labels": _hash([problem.costs.y, classes]),
        "weights of examples": _hash([problem.costs.cost]),
        "margins": _hash_of(problem.loss.margins),
        "rank_weights": _hash_of(problem.loss.rank_weights),
    }


def hash_of_rows(rows: Any) -> str:
    """A hash of a matrix, the same for rows in memory and on disk."""
    return _hash(contents_of_rows(rows))


def _hash(arrays: Iterable[NDArray]) -> str:
    found = hashlib.blake2b(digest_size=32)
    for array in arrays:
        found.update(f"{array.dtype.str} {array.shape}\n".encode())
        found.update(bytes_of(array))
    return found.hexdigest()


def _hash_of(array: NDArray | None) -> str | None:
    return None if array is None else _hash([array])


def _differences(here: Identity, there: Any) -> Iterator[str]:
    mine, other = here["parameters"], there["parameters"]
    for name in {**mine, **other}:
        if mine.get(name) != other.get(name):
            yield f"{name.rstrip('_')} is {mine.get(name)!r} here and {other.get(name)!r} there"
    if mine == other:
        # The weights are hashed with their factor C, so they are compared only at the same C.
        yield from (f"the {name} differ" for name in here if here[name] != there.get(name))


class Checkpoint:
    """The checkpoint of one fit: the solver writes it, a later fit reads it."""

    def __init__(
        self, path: str | os.PathLike[str], every: float, identity: Identity, problem: Problem
    ) -> None:
        self.path = os.fspath(path)
        self.every = every
        self.identity = identity
        self.problem = problem
        self._last = time.monotonic()
        if not Path(os.path.realpath(self.path)).parent.is_dir():
            raise CheckpointError("there is no such folder to write it in", path=self.path)

    def due(self) -> bool:
        return time.monotonic() - self._last >= self.every

    def keep(self, snapshot: Snapshot) -> None:
        """Write the file. Where that fails, training goes on and the user is warned."""
        self._write(_plain(snapshot) | {"result": None})

    def finish(self, solution: Solution) -> None:
        """Replace the file by the finished fit, without its duals."""
        self._write({"weights": solution.weights, "result": solution.result.to_dict()})

    def _write(self, content: dict[str, Any]) -> None:
        encoder = Encoder(lambda value, name: None)
        state = encoder({"identity": self.identity, **content}, "state")
        try:
            write_state(self.path, CHECKPOINT_FILE, state, encoder.arrays)
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error.strerror or error}); "
                "training goes on",
                UserWarning,
                stacklevel=level_outside(),
            )
        self._last = time.monotonic()

    def load(self) -> Snapshot | Solution | None:
        """What the file holds, checked to be of this fit; None if there is no file yet."""
        if not os.path.lexists(self.path):
            return None
        with told_as(CHECKPOINT_FILE, self.path):
            header = read_header(self.path, CHECKPOINT_FILE)
            arrays = read_arrays(self.path, CHECKPOINT_FILE, header)
            state = Decoder(arrays, _no_model)(header.state)
            if different := list(_differences(self.identity, state["identity"])):
                raise CheckpointError(
                    f"is of another fit: {'; '.join(different)}. Use another path, or delete it",
                    path=self.path,
                )
            if state["result"] is not None:
                return _solution(self.problem, state)
            return _snapshot(self.problem, state)

    def snapshot(self) -> Snapshot | None:
        """What the file holds of a fit that is not one of a path."""
        saved = self.load()
        if isinstance(saved, Solution):
            raise CheckpointError(
                "holds a finished fit of fit_path; use another path or delete it", path=self.path
            )
        return saved


class CheckpointFolder:
    """The checkpoints of the fits along a path, one file for each C."""

    def __init__(
        self, folder: str | os.PathLike[str], every: float, identity: Identity, problem: Problem
    ) -> None:
        self.folder = Path(folder)
        self.every = every
        self.identity = identity
        self.problem = problem
        if self.folder.exists() and not self.folder.is_dir():
            raise CheckpointError(
                "is a file; several fits keep a folder of checkpoints", path=self.folder
            )
        self.folder.mkdir(parents=True, exist_ok=True)

    def at(self, C: float) -> Checkpoint:
        parameters = {**self.identity["parameters"], "C": C}
        identity = {**self.identity, "parameters": parameters}
        return Checkpoint(self.folder / f"C={C!r}", self.every, identity, self.problem)


def open_checkpoint(model: Any, problem: Problem, X: Any) -> Checkpoint | None:
    """The checkpoint of a fit, if the model asks for one."""
    if model.checkpoint is None:
        return None
    identity = identity_of(model, problem, X)
    return Checkpoint(model.checkpoint, float(model.checkpoint_every), identity, problem)


def open_folder(model: Any, checked: Any, problem: Problem, X: Any) -> CheckpointFolder | None:
    """The checkpoints of the fits along a path, if the model asks for them."""
    if model.checkpoint is None:
        return None
    # Finished fits of a path are not trained again: tol and max_epochs must have been the same.
    aim = {"tol": float(model.tol), "max_epochs": int(model.max_epochs)}
    identity = identity_of(checked, problem, X, **aim)
    return CheckpointFolder(model.checkpoint, float(model.checkpoint_every), identity, problem)


def _plain(snapshot: Snapshot) -> dict[str, Any]:
    """A snapshot as plain data and arrays, none of them copied."""
    return {
        "stage": asdict(snapshot.stage),
        "solver": snapshot.solver,
        "duals": as_plain(snapshot.duals),
        "starts": snapshot.starts,
        "weights": snapshot.weights,
        "epochs": snapshot.epochs,
        "seconds": snapshot.seconds,
        "history": [asdict(look) for look in snapshot.history],
    }


def _no_model(entry: Any) -> Any:
    raise ValueError("a checkpoint holds no model")


def _snapshot(problem: Problem, state: dict[str, Any]) -> Snapshot:
    history = tuple(Evaluation(**look) for look in state["history"])
    for look in history:
        check_number("epoch", look.epoch)
        check_number("primal", look.primal)
    for name in ("epochs", "seconds"):
        check_number(name, state[name])
    require(isinstance(state["solver"], str), "the solver's name is not text")
    weights = state["weights"]
    return Snapshot(
        _stage(state["stage"], len(history)),
        state["solver"],
        _duals(problem, state["duals"]),
        check_array("starts", state["starts"], (problem.storage.n, 2), np.float64),
        None if weights is None else _weights(problem, weights),
        float(state["epochs"]),
        float(state["seconds"]),
        history,
    )


def _stage(entry: Any, n_looks: int) -> Stage:
    stage = Stage(**entry)
    require(stage.name in STAGES, f"the stage is {stage.name!r}")
    require(is_integer(stage.looks) and 0 <= stage.looks <= n_looks, f"looks is {stage.looks!r}")
    check_number("epochs", stage.epochs)
    check_number("gamma", stage.gamma)
    return stage


def _duals(problem: Problem, entry: Any) -> Duals:
    shape, dtype = (problem.storage.n, problem.n_classes), problem.storage.dtype
    if isinstance(entry, np.ndarray):
        # A limit on memory may leave no room for duals: then there are none.
        return check_array("duals", entry, shape if len(entry) else (0, shape[1]), dtype)
    values = check_array("duals", entry["values"], entry["values"].shape, dtype)
    require(entry["counts"].shape == shape[:1], "there is not one number of duals an example")
    return SparseDuals.from_entries(shape[1], entry["counts"], entry["columns"], values)


def _weights(problem: Problem, weights: Any) -> NDArray:
    shape = problem.storage.zero_weights(problem.n_classes).shape
    return check_array("weights", weights, shape, problem.storage.dtype)


def _solution(problem: Problem, state: dict[str, Any]) -> Solution:
    check_result(state["result"], problem.loss.convex)
    weights = _weights(problem, state["weights"])
    return Solution(weights, problem.zero_state(), Result.from_dict(state["result"]))
