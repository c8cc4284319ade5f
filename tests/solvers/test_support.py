"""When rounds of visits on the support end."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from shortlist.solvers.storage.support import (
    AFTER_EPOCH,
    IN_PIECE,
    MIN_EXAMPLES_TO_END_EARLY,
    Patience,
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
    # Rounds before each joint step.
    steps: list[int] = field(default_factory=list)

    def visit(self, loss, order):
        self.gaps.append(self.gap)
        self.gap *= self.left
        return self.gaps[-1], self.entries, order.size

    def step_jointly(self, loss):
        self.steps.append(len(self.gaps))
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


@dataclass
class Shrinking(Support):
    """The second round and all later ones visit ``later`` entries."""

    later: int = 0

    def visit(self, loss, order):
        found = super().visit(loss, order)
        self.entries = self.later
        return found


@pytest.mark.parametrize(
    ("later", "steps"), [(100, [2, 4, 6, 8]), (50, [3, 7]), (25, [5]), (400, [2, 3, 4, 5, 6, 7, 8])]
)
def test_joint_steps_follow_when_as_much_was_visited_as_in_two_first_rounds(later, steps):
    support = Shrinking(0.99, 100, later=later)
    patience = Patience(0.0, epochs=1000.0)
    random = np.random.default_rng(0)
    visit_in_rounds(Storage(), None, support, random, patience, 0.99**8.5)
    assert [step for step in support.steps if step < 9] == steps


def test_a_few_rounds_take_no_joint_step():
    support = Support(0.99, 100)
    visit_in_rounds(Storage(), None, support, np.random.default_rng(0), IN_PIECE)
    assert len(support.gaps) == IN_PIECE.rounds
    assert support.steps == []
