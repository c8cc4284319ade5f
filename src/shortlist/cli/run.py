"""From arguments to an exit code: every foreseeable failure is one line on standard error.

0     done; also when training stopped short of its tolerance, which is a warning
1     it cannot be done here: out of memory or disk, a package is missing
2     wrong usage, unreadable or unsuitable data
130   interrupted with Ctrl-C; 143 and 129 by SIGTERM and SIGHUP, which are treated alike
141   the reader of the output has gone (as in ``shortlist predict ... | head``)
"""

import contextlib
import errno
import os
import sys
import warnings
from collections.abc import Sequence
from typing import Any, TextIO, cast

from shortlist._text import escape_controls
from shortlist.cli.signals import Received, ended_like_ctrl_c
from shortlist.cli.streams import Unread, abandon
from shortlist.cli.words import message_of

DONE, FAILED, REFUSED, INTERRUPTED, UNREAD = 0, 1, 2, 130, 141

# Set it to see where an error comes from.
DEBUG = "SHORTLIST_DEBUG"
_DISK_FULL_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_MACHINE_ERRORS = (*_DISK_FULL_ERRORS, errno.EIO, errno.EMFILE)


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
        return _fail(_of_system(error), _code_of(error))
    except MemoryError as error:
        return _fail(message_of(error) or "out of memory", FAILED)
    except ImportError as error:
        return _fail(message_of(error), FAILED)
    except ValueError as error:
        return _fail(message_of(error), REFUSED)


def _call(args: Sequence[str] | None) -> int:
    import typer

    from shortlist.cli.app import app
    from shortlist.cli.imports import import_quickly
    from shortlist.cli.liblinear import usage_hint, with_weights_joined

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
        return _fail(f"{message}{usage_hint(message)} (see {command} --help)", REFUSED)


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


def _code_of(error: OSError) -> int:
    return FAILED if error.errno in _MACHINE_ERRORS else REFUSED


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
