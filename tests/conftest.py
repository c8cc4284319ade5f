"""Settings all tests share."""

import gc
import os
import signal
import sys

import pytest
from hypothesis import settings
from threadpoolctl import threadpool_limits

# Test processes share the cores. Were each to use them all, its threads would wait for the others'
# most of the time, and the suite would take twice as long. Libraries that are loaded later, and
# processes that tests start, read the environment.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    share = max(1, (os.cpu_count() or 1) // int(workers))
    threadpool_limits(share)
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(variable, str(share))

# Shells without a terminal start background jobs with Ctrl-C ignored, and nohup has a lost terminal
# ignored. Processes inherit that, and tests would wait in vain for those they interrupt to end.
for name, default in (("SIGINT", signal.default_int_handler), ("SIGHUP", signal.SIG_DFL)):
    number = getattr(signal, name, None)  # Windows has no SIGHUP
    if number is not None and signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, default)

# No deadline: the first example compiles kernels. Derandomised: a failure here is a failure
# everywhere, and the seeds that searched further are in the batteries themselves.
settings.register_profile("shortlist", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("shortlist")


# Modules and tests stay to the end: there is no garbage to look for among them.
gc.disable()
# To compile a kernel makes some hundred thousand objects. Python would look for garbage at every
# 700th, which takes a tenth of the time.
gc.set_threshold(50_000, 20, 20)


def pytest_collection_finish():
    # What garbage there is stays too: a few MB. To look for it takes 0.4 s in each process.
    gc.freeze()
    gc.enable()
    _leave_llvm_untold()


def _leave_llvm_untold():
    """numba tells every compilation that is under way of each call of LLVM: 5 % of the time."""
    if ffi := sys.modules.get("llvmlite.binding.ffi"):
        ffi.lib._lock._cblist.clear()


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    left_out = pytest.mark.skip(reason="slow: make test-slow runs it")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(left_out)
