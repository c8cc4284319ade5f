"""The commands that the README shows do what it says."""

import re
import shlex
from pathlib import Path

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")


def test_the_commands_run_in_the_order_shown(command):
    block = re.search(r"```sh\n(.*?)```", README, re.S).group(1)
    ended = {}
    for line in block.splitlines():
        program, name, *options = shlex.split(line)
        assert program == "shortlist"
        ended[name] = command(name, *options)
        assert ended[name].code == 0, ended[name].err
    assert list(ended) == ["train", "evaluate", "predict", "cv"]
    assert "top-5" in ended["evaluate"].out
    assert len(Path("shortlists.csv").read_text().splitlines()) == 1 + 5000
