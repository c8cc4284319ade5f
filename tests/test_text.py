"""Text from files cannot act on a terminal."""

import pytest

from shortlist._text import escape_controls
from shortlist.errors import DataError


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("Düne 猫 \\n", "Düne 猫 \\n"),
        ("a\x1b[31mred", "a\\x1b[31mred"),
        ("two\nlines\r\t", "two\\nlines\\r\\t"),
        ("\x00\x07\x7f\x9b", "\\x00\\x07\\x7f\\x9b"),
        ("abc\u202etxt", "abc\\u202etxt"),
        ("line\u2028end", "line\\u2028end"),
        ("half \ud800", "half \\ud800"),
        ("family 👩\u200d👧", "family 👩\u200d👧"),
    ],
)
def test_controls_are_written_out(text, shown):
    assert escape_controls(text) == shown


def test_errors_are_safe_to_show():
    error = DataError("column \x1b]0;gone\x07 is\nempty", path="a\x1b.csv", line=3)
    assert str(error) == "a\\x1b.csv, line 3: column \\x1b]0;gone\\x07 is empty"
    assert error.path == "a\x1b.csv"
