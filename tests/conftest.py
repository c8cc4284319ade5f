"""Settings all tests share."""

import gc
import os
import signal

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


def pytest_collection_finish():
    # Modules and tests stay to the end: collections of garbage need not look through them again.
    gc.collect()
    gc.freeze()


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    left_out = pytest.mark.skip(reason="slow: make test-slow runs it")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(left_out)
