"""What commands load: only what they use, for they are to start at once."""

import os
import subprocess
import sys

import pytest

from tests.cli.conftest import environment

#: A package, or a module that is there only once the package has loaded.
HEAVY = {
    "pandas": "pandas",
    "scipy.stats": "scipy.stats._stats_py",
    "numpy.f2py": "numpy.f2py.f2py2e",
    "sklearn": "sklearn",
    "sklearn.model_selection": "sklearn.model_selection",
    "numba": "numba",
    "cffi": "cffi.api",
    "torch": "torch",
    "matplotlib": "matplotlib",
    "onnx": "onnx",
    "rich": "rich",
}


def loaded_by(*args: object) -> set[str]:
    """Which of HEAVY a process has loaded when the command is done."""
    script = (
        "import sys\n"
        "from shortlist.cli.run import run\n"
        "assert run(sys.argv[1:]) == 0\n"
        f"for name, module in {HEAVY!r}.items():\n"
        "    if module in sys.modules: print(name, file=sys.stderr)\n"
    )
    command = [sys.executable, "-c", script, *map(str, args)]
    ended = subprocess.run(
        command, capture_output=True, text=True, env=environment(), check=True, timeout=300
    )
    return set(ended.stderr.split())


@pytest.mark.parametrize("args", [["--help"], ["train", "--help"]])
def test_help_loads_nothing_heavy(args):
    assert loaded_by(*args) == set()


def test_training_loads_what_it_uses(files, tmp_path):
    used = loaded_by("train", files / "data.csv", "-o", tmp_path / "m", "-k", 2, "-q")
    assert used - {"rich"} == {"numba", "sklearn"}


def test_predicting_and_evaluating_load_neither_scikit_learn_nor_numba(files, named_model):
    assert loaded_by("predict", named_model, files / "data.csv", "-o", os.devnull) == set()
    used = loaded_by("evaluate", named_model, files / "data.csv", "--json")
    assert used == set()


def test_what_is_left_out_works_when_it_is_used():
    script = (
        "from shortlist.cli.start import import_quickly\n"
        "import_quickly(); import_quickly()\n"
        "import sys, sklearn.base\n"
        "assert 'pandas' not in sys.modules and 'scipy.stats._stats_py' not in sys.modules\n"
        "import scipy.stats\n"
        "print(scipy.stats.norm.cdf(0.0))\n"
        "from scipy.stats import rankdata\n"
        "import pandas\n"  # hidden from scikit-learn only
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("0.5\n", "")
