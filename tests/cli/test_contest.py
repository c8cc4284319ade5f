"""The search for the weakest setting that reaches a goal."""

import pytest

from shortlist.cli.bench import MAX_UNCERTAIN_SHARE, Search


@pytest.mark.parametrize("first_enough", [0, 1, 2, 3, 17, 40, 999])
def test_the_weakest_setting_is_found_with_few_runs(first_enough):
    runs = []

    def run(place):
        runs.append(place)
        return (0.0 if place >= first_enough else 1.0), 0.1

    search = Search(run, 1000, patience=1.0)
    found = search.weakest(0.5)
    assert first_enough <= found <= first_enough * (1 + MAX_UNCERTAIN_SHARE)
    assert len(runs) == len(set(runs)) < 20
    # A weaker goal goes on from what was tried.
    tried = len(runs)
    assert search.weakest(2.0) == 0
    assert len(runs) == tried


def test_giving_up():
    slow = Search(lambda place: (1.0, 2.0 if place > 2 else 0.1), 1000, patience=1.0)
    assert slow.weakest(0.5) is None
    assert slow.best_effort() == (1.0, 2.0)
    stuck = Search(lambda place: (1.0 - place, 0.1), 3, patience=1.0)
    assert stuck.weakest(-5.0) is None
    assert stuck.best_effort() == (-1.0, 0.1)
