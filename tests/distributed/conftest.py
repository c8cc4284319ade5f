"""The command in this process, as the tests of the command line have it; workers on a local Ray."""

import pytest

from tests.cli.conftest import command

__all__ = ["cluster", "command", "groups"]


@pytest.fixture(scope="module")
def cluster():
    pytest.importorskip("ray")
    from shortlist.distributed.cluster import Cluster, connected

    with connected(Cluster(16)):
        yield


@pytest.fixture(scope="module")
def groups(cluster):
    """Workers for several tests: to start one takes longer than a fit."""
    from tests.distributed.groups import dealt, group_of

    made = {n_workers: group_of(*dealt(n_workers)) for n_workers in (1, 2, 3)}
    yield made
    for group in made.values():
        group.close()
