"""Progress of the command on a real terminal: one line, as wide as the terminal at most."""

import fcntl
import os
import pty
import re
import struct
import termios

import pytest

from tests.cli.conftest import environment, start


def on_terminal(columns: int, *args: object) -> str:
    """Run the command with a terminal for standard error; return all that it wrote there."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    narrow = {name: value for name, value in environment().items() if name != "COLUMNS"}
    with start(*args, stderr=its, env={**narrow, "TERM": "xterm"}) as process:
        os.close(its)
        written = b""
        while True:
            try:
                written += os.read(ours, 4096)
            except OSError:  # how Linux says that the other end is closed
                break
        process.communicate(timeout=300)
    os.close(ours)
    assert process.returncode == 0, written
    return written.decode()


def test_a_search_rewrites_one_line(files, tmp_path):
    written = on_terminal(80, "cv", files / "data.svm", "--Cs", "0.1,1", "-v", 3, "--ks", "1,2,3")
    plain = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", written)
    lines = [line for line in plain.split("\r\n") if "entropy k=1, fold" in line]
    assert len(lines) == 1
    states = [state for state in lines[0].split("\r") if state]
    assert all(len(state) <= 80 for state in states)
    assert re.fullmatch(r"entropy k=1, fold 3, C=1: top-1 0\.\d+, .* s\)", states[-1])


@pytest.mark.parametrize("columns", [80, 40])
def test_training_rewrites_one_line(files, tmp_path, columns):
    # A tolerance that takes many epochs, for many states.
    written = on_terminal(columns, "train", files / "data.svm", "-o", tmp_path / "m", "-e", 1e-9)
    plain = re.sub(r"\x1b\[[?0-9;]*[a-zA-Z]", "", written)
    states = [state for state in re.split(r"[\r\n]+", plain) if state.startswith("entropy k=1 C=1")]
    assert states
    assert all(len(state) <= columns for state in states)
    # All states are written on one line of the terminal.
    lines = [line for line in plain.split("\r\n") if "entropy k=1 C=1: epoch" in line]
    assert len(lines) == 1
    assert ("relative gap" in states[-1]) == (columns == 80)
