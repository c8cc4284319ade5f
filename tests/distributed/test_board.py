"""Sums that workers of one machine make among themselves, in memory that they share."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("ray")

from shortlist.distributed import board as boards
from shortlist.distributed.board import Board, OwnBoard, SumLostError
from shortlist.distributed.rounds import Rounds, Sigma, Squares, Visited
from shortlist.distributed.storage import rounds_on_board

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files without a name")

SHAPE = (3, 4)
SIGMA = Sigma(1.5, 1.5)


@pytest.fixture
def own():
    made = OwnBoard(2, SHAPE, np.float32)
    yield made
    made.close()


def turns(place, number: int, first: int, count: int) -> list[tuple]:
    """What a worker gets that writes the turns that it has made, times its number.

    One turn in three is about the last row alone, and one in three by classes.
    """
    board, found = Board.joined(place), []
    for turn in range(first, first + count):
        order = "F" if turn % 3 == 1 else "C"
        weights, copy = np.ones(SHAPE, np.float32, order), np.zeros(SHAPE, np.float32, order)
        of = slice(-1, None) if turn % 3 == 2 else slice(None)
        board.room(turn, number, weights[of])[:] = (number + 1) * (turn - first)
        sums = board.add_up(turn, number, Visited(number, turn), weights[of], copy[of])
        found.append((*sums, weights, copy))
    return found


def test_all_get_the_same_sums(own):
    first = own.next_turn()
    with ThreadPoolExecutor(1) as other:
        there = other.submit(turns, own.place, 1, first, 500)
        here = turns(own.place, 0, first, 500)
        for turn, both in enumerate(zip(here, there.result(), strict=True), first):
            of, change = slice(-1, None) if turn % 3 == 2 else slice(None), 3 * (turn - first)
            expected = np.ones(SHAPE, np.float32)
            expected[of] += change
            for reports, squares, norm, weights, copy in both:
                assert reports == [Visited(0, turn), Visited(1, turn)]
                np.testing.assert_array_equal(weights, expected)
                np.testing.assert_array_equal(copy[of], expected[of])
                assert squares == (change**2 * expected[of][:-1].size, change**2 * SHAPE[1])
                assert norm == pytest.approx(float((expected[of] ** 2).sum()))


def test_who_waits_for_a_lost_worker_is_let_go(own):
    first = own.next_turn()
    with ThreadPoolExecutor(1) as other:
        alone = other.submit(turns, own.place, 1, first, 1)
        while own.signals[boards.SIGNAL_STRIDE] != first:  # it waits
            pass
        assert own.slowest == 0
        own.tell_lost(True)
        with pytest.raises(SumLostError):
            alone.result(timeout=60)
    own.tell_lost(False)
    test_all_get_the_same_sums(own)


def test_a_board_that_cannot_be_reached(own, tmp_path):
    other = tmp_path / "other"
    for content in (b"", bytes(own.place.nbytes)):
        other.write_bytes(content)
        assert Board.joined(own.place._replace(path=str(other))) is None
    assert other.read_bytes() == bytes(own.place.nbytes)
    assert Board.joined(own.place._replace(path=str(tmp_path / "nothing"))) is None
    assert Board.joined(own.place) is not None


def test_no_board_where_there_is_no_room(monkeypatch):
    assert OwnBoard.made(2, (20_000, 2000), np.float32) is None
    monkeypatch.delattr(os, "memfd_create")
    assert OwnBoard.made(2, SHAPE, np.float32) is None


def test_rounds_end():
    """After so many passes, or with one that saw little of the first one's gap."""
    first = Rounds("polish", 0, 2, SIGMA, parts=2, passes=5, gap_left=0.1)

    def after(rounds, *gaps):
        for gap in gaps:
            halves = 2 * [Visited(gap / 2, 1.0, 3, 1.0, 1.0)]
            rounds = rounds.after(halves, Squares(2.0, 2.0), 1.0)
        return rounds

    assert not first.over
    assert not after(first, 5, 5, 0).over  # in the middle of a pass
    assert after(first, 5, 5, 1, 0).gaps == (10, 1)
    assert after(first, 5, 5, 1, 0).over
    assert not after(first, 5, 5, 2, 0).over
    assert after(first, *[5] * 10).over
    assert (after(first, 5, 5).number, after(first, 5, 5).of_pass) == (2, 1)
    assert (after(first, 5, 5, 5).part, after(first, 5, 5, 5).of_pass) == (1, 1)


def test_a_pass_over_few_examples_has_few_parts():
    first = Rounds("polish", 0, 2, SIGMA, parts=2, passes=9, rows_per_part=10)

    def after(rounds, *moved):
        for one, other in moved:
            found = [Visited(1.0, 1.0, one), Visited(1.0, 1.0, other)]
            rounds = rounds.after(found, Squares(0.0, 0.0), 1.0)
        return rounds

    assert after(first, (8, 7), (1, 4)).parts == 2  # at most 12 of one worker
    assert after(first, (8, 7), (2, 1)).parts == 1
    assert after(first, (8, 7), (2, 1), (99, 0)).parts == 1


def test_most_sums_are_of_the_intercept():
    rounds, whole, settled = Rounds("epoch", 0, 2, SIGMA, parts=6, whole_every=4), [], []
    while not rounds.over:
        whole.append(rounds.whole)
        settled.append(rounds.settled)
        rounds = rounds.after([Visited(1.0, 1.0)] * 2, Squares(0.0, 0.0), 1.0)
    assert whole == [False, False, False, True, False, True]
    assert settled == [True, False, False, False, True, False]


def test_sigma_is_what_the_last_round_would_have_needed():
    rounds = Rounds("epoch", 0, 2, SIGMA, 4)
    visited = 2 * [Visited(0.0, 0.0, 0, 12.0, 3.0)]
    # All alike: |sum|^2 = 48; at right angles: |sum|^2 = 6.
    assert rounds.after(visited, Squares(48.0, 6.0), 1.0).sigma == pytest.approx((2.0, 1.1))
    assert rounds.after(visited, Squares(0.0, 12.0), 1.0).sigma == (1.0, 2.0)
    assert rounds.after(2 * [Visited(1.0, 1.0)], Squares(0.0, 0.0), 1.0).sigma == SIGMA


@pytest.mark.parametrize(
    ("rows", "given", "sparsity", "expected"),
    [(100, None, 1.0, 1), (30_000, None, 1.0, 234), (30_000, None, 10.0, 23), (5000, 500, 9.0, 10)],
)
def test_rounds_on_a_board(rows, given, sparsity, expected):
    assert rounds_on_board(rows, given, sparsity) == expected
