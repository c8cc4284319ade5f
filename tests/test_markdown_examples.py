"""The convention by which pages are checked must itself be able to find a page wrong."""

from pathlib import Path

import pytest

from tests.markdown_examples import examples_in, run_page, same_text

PAGE = Path("page.md")


def test_blocks_share_a_namespace_and_outputs_are_found():
    text = "```python\na = 2\n```\nwords\n```python\nprint(a + 1)\n```\n\n```text\n3\n```\n"
    first, second = examples_in(text)
    assert (first.shown, second.shown, second.line) == ("", "3\n", 6)
    assert run_page(PAGE, text) == []


def test_a_text_block_after_words_belongs_to_nobody():
    text = "```python\nprint(1)\n```\nwords\n```text\n1\n```\n"
    assert examples_in(text)[0].shown == ""
    assert "line 2" in run_page(PAGE, text)[0]


@pytest.mark.parametrize(
    "text",
    [
        "```python\nprint(3)\n```\n```text\n4\n```\n",
        "```python\nprint('silent?')\n```\n",
        "```python\npass\n```\n```text\nsomething\n```\n",
    ],
)
def test_what_is_not_printed_as_shown_is_reported(text):
    assert len(run_page(PAGE, text)) == 1


def test_marked_blocks_are_compiled_but_do_not_run():
    assert run_page(PAGE, "<!-- not run -->\n```python\nraise ValueError\n```\n") == []
    with pytest.raises(SyntaxError):
        run_page(PAGE, "<!-- not run -->\n```python\nbroken(\n```\n")


def test_other_languages_do_not_run():
    assert examples_in("no code at all") == []
    assert examples_in("```console\n$ make demo\n```\n```pycon\n>>> 1\n```\n") == []


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("0.753", "0.752", True),
        ("0.753", "0.749", False),
        ("1.25e-04", "1.27e-04", True),
        ("1.25e-04", "1.25e-03", False),
        ("75.1 % of 20", "75.2 % of 20", True),
        ("75.1 % of 20", "75.1 % of 21", False),
        ("a  \nb", "a\nb\n", True),
        ("a b", "a  b", False),
    ],
)
def test_decimals_may_differ_in_the_last_place_and_nothing_else(shown, printed, same):
    assert same_text(shown, printed) is same
