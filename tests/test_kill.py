"""Real processes killed at random moments; ``python -m tests.kill`` does it for longer."""

import re
import subprocess
import sys

import pytest

pytest.importorskip("resource")


def test_a_killed_fit_goes_on_to_the_same_optimum():
    options = ("--case", "softmax", "--runs", "2", "--examples", "1000", "--every", "0", "--late")
    done = subprocess.run(
        [sys.executable, "-m", "tests.kill", *options], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    told = re.match(
        r"softmax +2 kills in \d+ runs of .* s, (\d+) resumed, .*same optimum", done.stdout
    )
    assert told, done.stdout
    assert int(told[1]) >= 2
