"""When rounds of visits on the support end."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from shortlist.solvers.storage.support import (
    AFTER_EPOCH,
    MIN_EXAMPLES_TO_END_EARLY,
    visit_in_rounds,
)

N, M = 1000, 10


@dataclass
class Storage:
    n: int = N
    support_price: float = 1.0


@dataclass
class Support:
    """All examples change in every round, and the gap falls by the same factor."""

    left: float
    entries: int
    gap: float = 1.0
    price: float = 1.0
    order: np.ndarray = field(default_factory=lambda: np.arange(N))
    by_class: np.ndarray = field(default_factory=lambda: np.zeros((M, 3)))
    gaps: list[float] = field(default_factory=list)

    def visit(self, loss, order):
        self.gaps.append(self.gap)
        self.gap *= self.left
        return self.gaps[-1], self.entries, order.size

    def step_jointly(self, loss):
        return 0.0

    def narrow(self, order):
        return order


def last_gap(left, entries, enough=0.1):
    support = Support(left, entries)
    patience = AFTER_EPOCH._replace(epochs=1000.0)
    visit_in_rounds(Storage(), None, support, np.random.default_rng(0), patience, enough)
    return support.gaps[-1]


@pytest.mark.parametrize("left", [0.3, 0.6, 0.9])
def test_cheap_rounds_go_on_to_the_gap_that_is_enough(left):
    assert 0.1 * left < last_gap(left, entries=10) <= 0.1


@pytest.mark.parametrize("left", [0.8, 0.9, 0.95])
def test_dear_rounds_end_where_a_look_takes_less_than_those_left(left):
    assert 0.25 * left < last_gap(left, entries=N * M) <= 0.28


def test_dear_rounds_go_on_where_few_are_left():
    assert last_gap(0.4, entries=N * M) <= 0.1


def test_rounds_of_few_examples_say_too_little():
    support = Support(0.9, N * M, order=np.arange(MIN_EXAMPLES_TO_END_EARLY - 1))
    patience = AFTER_EPOCH._replace(epochs=1000.0)
    visit_in_rounds(Storage(), None, support, np.random.default_rng(0), patience, 0.1)
    assert support.gaps[-1] <= 0.1


def test_the_first_round_tells_no_rate():
    support = Support(0.9, N * M, gap=0.15)
    visit_in_rounds(Storage(), None, support, np.random.default_rng(0), AFTER_EPOCH, 0.1)
    assert len(support.gaps) == 2


def test_without_a_gap_that_is_enough_rounds_end_by_patience():
    assert last_gap(0.7, entries=10, enough=0.0) <= AFTER_EPOCH.gap_left
