"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from shortlist import losses
from tests.markdown_examples import examples_in, run_page

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_shows():
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S).groups()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == shown


def test_the_torch_example_prints_what_the_readme_shows():
    pytest.importorskip("torch")
    section = re.search(r"## For PyTorch\n(.*?)\n## ", README, re.S).group(1)
    assert len(examples_in(section)) == 1
    assert run_page(Path("README.md"), section) == []


def test_no_other_python_is_shown():
    assert len(examples_in(README)) == 2


def test_the_table_of_losses_is_the_registry():
    table = re.search(r"<!-- losses -->\n(.*?)<!-- /losses -->", README, re.S).group(1)
    lines = [line.strip("| ") for line in table.strip().splitlines()]
    columns, _, *rows = [[c.strip().strip("`") for c in line.split("|")] for line in lines]
    assert columns[:2] == ["loss", "what"]
    assert rows == [[row[column] for column in columns] for row in losses.table()]


def test_make_knows_the_commands_shown():
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M)
    shown = re.findall(r"^    make (\w+)", README, re.M)
    assert shown == ["demo", "test"]
    assert set(shown) <= set(targets)


def test_the_speed_table_divides_the_seconds_it_shows():
    rows = re.findall(r"\| \*\*([\d.]+)\*\* \| ([\d.]+) \| ([\d.]+) ", README)
    assert len(rows) == 13
    for ratio, ours, peer in rows:
        assert float(peer) / float(ours) == pytest.approx(float(ratio), abs=0.06)
