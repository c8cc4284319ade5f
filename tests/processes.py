"""Code run in fresh Python processes, for what a process can show only once."""

import json
import os
import subprocess
import sys
from typing import Any

CACHE_SETTINGS = (
    "NUMBA_CACHE_DIR",
    "NUMBA_DISABLE_JIT",
    "SHORTLIST_CACHE",
    "SHORTLIST_JIT_CACHE",
    "XDG_CACHE_HOME",
    "LOCALAPPDATA",
)


def start(code: str, *, site: Any = None, **environment: Any) -> subprocess.Popen:
    """Start a process that sees only these cache settings."""
    inherited = {name: value for name, value in os.environ.items() if name not in CACHE_SETTINGS}
    if site is not None:
        inherited["PYTHONPATH"] = str(site)
    return subprocess.Popen(
        [sys.executable, "-B", "-c", code],
        env={**inherited, **{name: str(value) for name, value in environment.items()}},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def answer(process: subprocess.Popen, seconds: float = 300.0) -> Any:
    """What a process prints as JSON; it must end well, and in time."""
    output, errors = process.communicate(timeout=seconds)
    assert process.returncode == 0, errors
    return json.loads(output)


def run(code: str, *, site: Any = None, **environment: Any) -> Any:
    """What the code prints as JSON, in a fresh process that sees only these cache settings."""
    return answer(start(code, site=site, **environment))
