"""Code run in fresh Python processes, for what a process can show only once.

Most of the time of such a process would go into loading numba. So :func:`run` takes copies of a
process that has loaded numba, and nothing of Shortlist.
"""

import contextlib
import io
import json
import multiprocessing
import os
import subprocess
import sys
import traceback
from typing import Any

CACHE_SETTINGS = (
    "NUMBA_CACHE_DIR",
    "NUMBA_DISABLE_JIT",
    "SHORTLIST_CACHE",
    "SHORTLIST_JIT_CACHE",
    "XDG_CACHE_HOME",
    "LOCALAPPDATA",
)
SECONDS = 300.0


def start(code: str, *, site: Any = None, **environment: Any) -> subprocess.Popen:
    """Start a process that sees only these cache settings."""
    settings = _settings(environment)
    if site is not None:
        settings["PYTHONPATH"] = str(site)
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code],
        env=settings,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen, seconds: float = SECONDS) -> Any:
    """What a process prints as JSON; it must end well, and in time."""
    output, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors
    return json.loads(output)


def run(code: str, *, site: Any = None, **environment: Any) -> Any:
    """What the code prints as JSON, in a fresh process that sees only these cache settings.

    With other settings of numba, which it reads as it is loaded, this is a process from scratch.
    """
    of_numba = {name for name in environment if name.startswith("NUMBA_")} - {"NUMBA_CACHE_DIR"}
    if of_numba or "forkserver" not in multiprocessing.get_all_start_methods():
        return answer(start(code, site=site, **environment))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.numba_loaded"])
    here, there = context.Pipe(duplex=False)
    arguments = (code, None if site is None else str(site), _settings(environment), there)
    process = context.Process(target=_run_here, args=arguments)
    process.start()
    there.close()
    if not here.poll(SECONDS):
        process.kill()
        raise AssertionError("no answer in time")
    try:
        output, errors = here.recv()
    except EOFError:
        output, errors = "", "it ended without an answer"
    process.join(SECONDS)
    assert not errors, errors
    assert process.exitcode == 0
    return json.loads(output)


def _settings(environment: dict[str, Any]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name not in CACHE_SETTINGS}
    return {**inherited, **{name: str(value) for name, value in environment.items()}}


def _run_here(code: str, site: str | None, settings: dict[str, str], there: Any) -> None:
    sys.dont_write_bytecode = True
    os.environ.clear()
    os.environ.update(settings)
    if site is not None:
        sys.path.insert(0, site)
    output, errors = io.StringIO(), ""
    try:
        with contextlib.redirect_stdout(output):
            exec(code, {"__name__": "__main__"})
    except BaseException:
        errors = traceback.format_exc()
    there.send((output.getvalue(), errors))
