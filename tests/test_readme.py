"""What the README shows is what happens."""

import re
import subprocess
import sys
from pathlib import Path

from shortlist import losses

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_prints_what_the_readme_shows():
    code, shown = re.search(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.S).groups()
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == shown


def test_the_table_of_losses_is_the_registry():
    table = re.search(r"<!-- losses -->\n(.*?)<!-- /losses -->", README, re.S).group(1)
    lines = [line.strip("| ") for line in table.strip().splitlines()]
    rows = [[c.strip().strip("`") for c in re.split(r"(?<!\\)\|", line)] for line in lines]
    expected = losses.table()
    assert rows[0] == list(expected[0])
    found = [[cell.replace("\\|", "|") for cell in row] for row in rows[2:]]
    assert found == [list(row.values()) for row in expected]
