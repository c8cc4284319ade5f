"""The command in this process, as the tests of the command line have it; workers on a local Ray."""

import pytest

from tests.cli.conftest import command

__all__ = ["cluster", "command", "groups"]


@pytest.fixture(scope="package")
def cluster():
    """One for all files: to start one takes seconds."""
    pytest.importorskip("ray")
    from shortlist.distributed.cluster import Cluster, connected

    with connected(Cluster(16)):
        yield


@pytest.fixture(scope="package")
def groups(cluster):
    """Workers for several tests: to start one takes longer than a fit."""
    from tests.distributed.groups import dealt, group_of, group_within

    largest = group_of(*dealt(3))
    yield {1: group_within(largest, *dealt(1)), 2: group_within(largest, *dealt(2)), 3: largest}
    largest.close()
