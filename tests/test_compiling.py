"""The word to the user while kernels compile."""

import io
import sys
import time

import pytest
from numba.core import event

from shortlist import _compiling
from shortlist._compiling import CompileNotice, compilation_told, notice_text
from shortlist._jit_cache import Place


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def told():
    return []


def compile_twice(seconds=0.0):
    """What numba broadcasts around a kernel and one that it calls."""
    with event.trigger_event("numba:compile"):
        time.sleep(seconds)
        with event.trigger_event("numba:compile"):
            pass


def test_said_once_after_some_time(told):
    with event.install_listener("numba:compile", CompileNotice(told.append, patience=0.02)):
        compile_twice()
        assert told == []
        compile_twice(0.03)
        assert len(told) == 1
        compile_twice(0.03)
    assert told == [notice_text()]


def test_said_at_once_and_only_in_the_way_asked_for(told, monkeypatch):
    terminal = []
    monkeypatch.setattr(_compiling, "_notice", CompileNotice(terminal.append, patience=0.0))
    with event.install_listener("numba:compile", _compiling._notice):
        with compilation_told(told.append) as timer:
            compile_twice(0.01)
        assert timer.seconds >= 0.01
        assert (len(told), terminal) == (1, [])
        compile_twice()  # the user knows by now
        assert terminal == []


def test_a_quiet_stretch_does_not_use_up_the_word(told, monkeypatch):
    terminal = []
    monkeypatch.setattr(_compiling, "_notice", CompileNotice(terminal.append, patience=0.0))
    with event.install_listener("numba:compile", _compiling._notice):
        with compilation_told(told.append):
            pass
        compile_twice()
    assert (told, len(terminal)) == ([], 1)


def test_the_text_says_where_kernels_are_kept_or_why_not(tmp_path, monkeypatch):
    monkeypatch.setattr(_compiling, "cache_place", lambda: Place(tmp_path))
    assert notice_text().endswith(f"kept for the next time in {tmp_path}")
    for folder in (None, tmp_path):
        monkeypatch.setattr(_compiling, "cache_place", lambda f=folder: Place(f, "disk on fire"))
        assert notice_text().endswith("not kept for the next time: disk on fire")


def test_only_a_person_is_told(monkeypatch):
    def written_to(stream):
        monkeypatch.setattr(sys, "stderr", stream)
        _compiling._tell_safely("hello")
        return stream.getvalue()

    assert written_to(Terminal()) == ""  # a test, not a person
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    assert written_to(Terminal()) == "shortlist: hello\n"
    assert written_to(io.StringIO()) == ""  # a file or a pipe
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    assert written_to(io.StringIO()) == "shortlist: hello\n"  # a notebook


def test_a_closed_or_missing_terminal_does_no_harm(monkeypatch):
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    closed = Terminal()
    closed.close()
    for stream in (closed, None):
        monkeypatch.setattr(sys, "stderr", stream)
        _compiling._tell_safely("hello")
