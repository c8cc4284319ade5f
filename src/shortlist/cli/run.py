"""From arguments to an exit code: every foreseeable failure is one line on standard error."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TextIO, cast

from shortlist._signals import handled
from shortlist._text import Setting, escape_controls
from shortlist.cli.declare import words_of_option
from shortlist.cli.output import DONE, FAILED, INTERRUPTED, REFUSED, UNREAD

# Set it to see where an error comes from.
DEBUG = "SHORTLIST_DEBUG"
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MACHINE_ERRORS = (*_DISK_FULL_ERRORS, errno.EIO, errno.EMFILE)
# The errors of writing to a pipe whose reader has left, or to a closed terminal.
_READER_GONE_ERRORS = (errno.EPIPE, errno.EIO)


def run(args: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code."""
    warnings.showwarning = _show_warning
    # Files are read into arrays; their columns' names are compared with the model's on reading.
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    heard = contextlib.redirect_stderr(cast(TextIO, Unread(sys.stderr)))
    with heard, ended_like_ctrl_c() as received:
        return _run(args, received)


def _run(args: Sequence[str] | None, received: Received) -> int:
    try:
        code = _call(args)
        sys.stdout.flush()
        # typer turns Ctrl-C into this code; train uses it too, having saved what there is.
        return _fail(received.told, received.exit_code) if code == INTERRUPTED else code
    except KeyboardInterrupt:
        return _fail(received.told, received.exit_code)
    except BrokenPipeError:
        abandon(sys.stdout)
        return UNREAD
    except OSError as error:
        code = FAILED if error.errno in _MACHINE_ERRORS else REFUSED
        return _fail(_of_system(error), code)
    except MemoryError as error:
        return _fail(message_of(error) or "out of memory", FAILED)
    except ImportError as error:
        return _fail(message_of(error), FAILED)
    except ValueError as error:
        return _fail(message_of(error), REFUSED)


def _call(args: Sequence[str] | None) -> int:
    import typer

    from shortlist.cli.app import app
    from shortlist.cli.options import with_weights_joined
    from shortlist.cli.start import import_quickly

    import_quickly()

    given = with_weights_joined(sys.argv[1:] if args is None else args)
    try:
        return app(given, prog_name="shortlist", standalone_mode=False) or DONE
    except typer.Abort:
        raise KeyboardInterrupt from None
    except SystemExit as stop:
        # typer exits this way when it cannot write the help text.
        if isinstance(stop.__context__, OSError) and stop.__context__.errno == errno.EPIPE:
            return UNREAD
        raise
    except Exception as error:
        # typer's errors of usage have no common public class across its versions.
        if not hasattr(error, "format_message"):
            raise
        context = getattr(error, "ctx", None)
        named = f"shortlist {given[0]}" if given and not given[0].startswith("-") else "shortlist"
        command = context.command_path if context else named
        message = error.format_message().rstrip(".")
        if getattr(error, "option_name", None) == "-C":
            message += ": a number. LIBLINEAR's -C, which searches for one, is shortlist cv"
        return _fail(f"{message} (see {command} --help)", REFUSED)


def _fail(message: str, code: int) -> int:
    if os.environ.get(DEBUG):
        import traceback

        traceback.print_exc()
    try:
        sys.stdout.flush()
    except OSError:
        abandon(sys.stdout)
    line = escape_controls(" ".join(message.split()))
    sys.stderr.write(f"shortlist: {line}\n")
    return code


def _of_system(error: OSError) -> str:
    """The system's message with the file first, as in all other messages."""
    if error.strerror is None:
        return str(error)
    if error.filename is None and error.errno in _DISK_FULL_ERRORS:
        # Errors of files carry the file's name. Without a name it is standard output.
        return f"standard output: {error.strerror}"
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    told = message_of(message) if isinstance(message, Warning) else message
    sys.stderr.write(f"shortlist: warning: {told}\n")


@dataclass
class Received:
    """The signal that ended the command."""

    number: int = signal.SIGINT

    @property
    def exit_code(self) -> int:
        return 128 + self.number

    @property
    def told(self) -> str:
        name = signal.Signals(self.number).name
        return "interrupted" if self.number == signal.SIGINT else f"interrupted by {name}"


@contextlib.contextmanager
def ended_like_ctrl_c() -> Iterator[Received]:
    """SIGTERM and SIGHUP raise KeyboardInterrupt within the body: what was reached is kept."""
    received = Received()

    def interrupt(number: int, frame: Any) -> None:
        received.number = number
        on_ctrl_c = signal.getsignal(signal.SIGINT)
        if callable(on_ctrl_c):
            on_ctrl_c(number, frame)
        else:  # ignored, as a shell arranges for jobs in the background
            raise KeyboardInterrupt

    with handled(interrupt):
        yield received


class Unread:
    """Standard error whose reader may leave.

    ``shortlist train ... 2>&1 | head`` is not to lose its model when ``head`` has seen enough:
    what is said after that goes nowhere, and the work goes on.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError as error:
            self._leave(error)
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError as error:
            self._leave(error)

    def _leave(self, error: OSError) -> None:
        if error.errno not in _READER_GONE_ERRORS:
            raise error
        abandon(self._stream)


def abandon(stream: TextIO) -> None:
    """Point a stream that nobody reads to nowhere: the interpreter flushes it when it exits."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


# What the command calls a parameter, where it has another name.
_FIELDS = {
    "C": "cost",
    "Cs": "costs",
    "cv": "folds",
    "intercept_scaling": "bias",
    "max_extensions": "extensions",
    "n_jobs": "jobs",
    "n_workers": "workers",
    "random_state": "seed",
    "sample_weight": "weight_column",
}
# Parameters that, where they are named without a value, get the placeholder of --help.
_WITH_PLACEHOLDER = ("labels", "label", "drop", "split")
# Settings that have an option of their own.
_WHOLE = {
    Setting("header", True): "--header",
    Setting("header", False): "--no-header",
    Setting("label", None): "--label none",
    Setting("zero_based", True): "--index-base 0",
    Setting("zero_based", False): "--index-base 1",
}


def as_option(setting: Setting) -> str:
    """A parameter as the command's users know it: ``loss='hinge'`` is ``--loss hinge``."""
    for whole, flag in _WHOLE.items():
        if whole == setting:
            return flag
    words = words_of_option(_FIELDS.get(setting.parameter, setting.parameter))
    if words is None:  # the command does not have it
        option, placeholder = "--" + setting.parameter.replace("_", "-"), None
    else:
        # The flag of the parameter's own name, such as -C and -k, or else the long one.
        own = [flag for flag in words.flags if flag.lstrip("-") == setting.parameter]
        option, placeholder = [*own, words.flags[-1]][0], words.placeholder
    if setting.has_value:
        values = setting.value if isinstance(setting.value, list | tuple) else [setting.value]
        return f"{option} {shlex.quote(','.join(map(str, values)))}"
    return f"{option} {placeholder}" if setting.parameter in _WITH_PLACEHOLDER else option


def message_of(error: BaseException) -> str:
    """What an error or a warning says, in one line that a terminal can show."""
    say = getattr(error, "worded", None)
    if say is not None:
        return str(say(as_option))
    return escape_controls(" ".join(str(error).split()))
