"""Text from files cannot act on a terminal."""

import pytest

from shortlist._text import Setting, escape_controls
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


def test_messages_name_parameters_in_two_languages():
    import pickle

    from shortlist.cli.run import as_option, message_of
    from shortlist.errors import DataError, ParameterError

    error = ParameterError("max_epochs", "must be 1 or larger; or lower " + Setting("C"))
    assert error.parameter == "max_epochs"
    assert str(error) == "max_epochs must be 1 or larger; or lower C"
    assert message_of(error) == "--max-epochs must be 1 or larger; or lower -C"
    # Workers of a search send errors to the process that waits for them.
    back = pickle.loads(pickle.dumps(error))
    assert (str(back), back.parameter, message_of(back)) == (
        str(error),
        "max_epochs",
        message_of(error),
    )
    error = DataError("{braces} " + Setting("header", False), path="a\x1bb", line=3)
    assert str(error) == "a\\x1bb, line 3: {braces} header=False"
    assert message_of(error) == "a\\x1bb, line 3: {braces} --no-header"
    assert as_option(Setting("delimiter", ";")) == "--delimiter ';'"
    assert as_option(Setting("rank_weights", [3, 2, 1])) == "--rank-weights 3,2,1"
    assert as_option(Setting("loss", "smooth_hinge")) == "--loss smooth_hinge"
    assert message_of(ValueError("two\nlines \x1b")) == "two lines \\x1b"
