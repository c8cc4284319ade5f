"""Settings all tests share."""

import pytest
from hypothesis import settings

# No deadline: the first example compiles kernels. Derandomised: a failure here is a failure
# everywhere, and the seeds that searched further are in the batteries themselves.
settings.register_profile("shortlist", deadline=None, derandomize=True, max_examples=50)
settings.load_profile("shortlist")


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="run the tests marked slow too")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    left_out = pytest.mark.skip(reason="slow: make test-slow runs it")
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(left_out)
