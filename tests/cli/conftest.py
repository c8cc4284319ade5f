"""Small files of one data set in every format, and the command to use them with."""

import contextlib
import io
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from shortlist.datasets import write_libsvm

NAMES = np.array(["ant", "bee", "cat", "dog"])


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Files:
    """120 examples of 4 overlapping classes with 5 features, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        random = np.random.default_rng(0)
        self.y = random.integers(0, 4, 120)
        self.X = random.normal(size=(120, 5)) + 2 * np.eye(5)[self.y]
        write_libsvm(folder / "data.svm", self.X, self.y)
        write_libsvm(folder / "data.svm.gz", self.X, self.y)
        self.write_csv("data.csv", [*"pqrst", "label"], self.X, NAMES[self.y])
        self.write_csv("bare.csv", [*"pqrst"], self.X)
        np.savez(
            folder / "parts.npz",
            X_train=self.X[:80],
            y_train=self.y[:80],
            X_test=self.X[80:],
            y_test=self.y[80:],
        )
        np.save(folder / "X.npy", self.X)
        np.save(folder / "y.npy", self.y)

    def __truediv__(self, name: str) -> str:
        return str(self.folder / name)

    def write_csv(self, name: str, columns: list[str], *blocks: np.ndarray) -> str:
        rows = np.column_stack([np.asarray(block).astype(str) for block in blocks])
        lines = [",".join(columns), *(",".join(row) for row in rows)]
        path = self.folder / name
        path.write_text("\n".join(lines) + "\n")
        return str(path)


@pytest.fixture(scope="session")
def files(tmp_path_factory) -> Files:
    return Files(tmp_path_factory.mktemp("files"))


def environment() -> dict[str, str]:
    # Several processes share the machine: more threads would only get into each other's way.
    return {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "100"}


COMMAND = ("-m", "shortlist.cli")


def start(*args: object, how: Sequence[str] = COMMAND, **options) -> subprocess.Popen:
    """Start the command in a process of its own; ``how`` is what Python runs."""
    command = [sys.executable, *how, *map(str, args)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, **{"env": environment(), **pipes, **options})


def shell(*args: object, input: str | None = None, **options) -> Ended:
    """Run the command in a process of its own, as a user does."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    process = start(*args, **options)
    out, err = process.communicate(input, timeout=300)
    return Ended(process.returncode, out, err)


@pytest.fixture
def command(capsys, tmp_path, monkeypatch):
    """Run the command in this process, in an empty directory: quicker, for the many small cases."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(warnings, "showwarning", warnings.showwarning)  # run() replaces it
    monkeypatch.setattr(sys, "path", [*sys.path])

    def run_here(*args: object) -> Ended:
        from shortlist.cli.run import run

        capsys.readouterr()
        with contextlib.ExitStack() as stack:
            stack.enter_context(warnings.catch_warnings())
            # As in a process of its own, but every time.
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)
            code = run([str(arg) for arg in args])
        out, err = capsys.readouterr()
        return Ended(code, out, err)

    return run_here


@pytest.fixture(scope="session")
def model(files) -> str:
    """A model trained by the command on the LibSVM file, for shortlists of 2."""
    return train_here(files / "data.svm", files / "trained.model")


@pytest.fixture(scope="session")
def named_model(files) -> str:
    """The same from the CSV file: columns have names, labels are text."""
    return train_here(files / "data.csv", files / "named.model")


def train_here(data: str, path: str) -> str:
    """Train without a word, in this process."""
    from shortlist.cli.run import run

    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        code = run(["train", data, "-o", path, "-k", "2", "-q"])
    assert (code, out.getvalue()) == (0, "")
    return path
