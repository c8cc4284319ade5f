"""Sums that workers of one machine make among themselves, in memory that they share."""

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

pytest.importorskip("ray")

from shortlist.distributed import board as boards
from shortlist.distributed.board import Board, OwnBoard, SumLostError
from shortlist.distributed.rounds import Rounds, Visited
from shortlist.distributed.storage import rounds_on_board

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no files without a name")

SHAPE = (3, 4)


@pytest.fixture
def own():
    made = OwnBoard(2, SHAPE, np.float32)
    yield made
    made.close()


def turns(place, number: int, first: int, count: int) -> list[tuple]:
    """What a worker gets that writes the turns that it has made, times its number."""
    board, found = Board.joined(place), []
    for turn in range(first, first + count):
        board.room(turn, number)[:] = (number + 1) * (turn - first)
        found.append(board.add_up(turn, number, Visited(number, turn, 0.0)))
    return found


def test_all_get_the_same_sums(own):
    first = own.next_turn()
    with ThreadPoolExecutor(1) as other:
        there = other.submit(turns, own.place, 1, first, 500)
        here = turns(own.place, 0, first, 500)
        for turn, both in enumerate(zip(here, there.result(), strict=True), first):
            for reports, total in both:
                assert reports == [Visited(0, turn, 0.0), Visited(1, turn, 0.0)]
                np.testing.assert_array_equal(total, np.full(SHAPE, 3 * (turn - first), np.float32))


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
    """After so many, or with a pass that saw little of the first one's gap."""
    first = Rounds("polish", 0, 2, 1.5, per_pass=2, most=10, gap_left=0.1)
    w = np.ones(SHAPE)
    halves = [Visited(2.0, 1.0, 1.0), Visited(3.0, 1.0, 1.0)]

    def after(rounds, *gaps):
        for gap in gaps:
            rounds = rounds.after([report._replace(gap=gap / 2) for report in halves], w, w)
        return rounds

    assert not first.over
    assert not after(first, 5, 5, 0).over  # in the middle of a pass
    assert after(first, 5, 5, 1, 0).gaps == (10, 1)
    assert after(first, 5, 5, 1, 0).over
    assert not after(first, 5, 5, 2, 0).over
    assert after(first, *[5] * 10).over
    assert after(first, 5, 5).number == 2


def test_sigma_is_what_the_last_round_would_have_needed():
    rounds = Rounds("epoch", 0, 2, 1.5, 4, 4)
    one = np.ones(SHAPE)
    visited = [Visited(0.0, 0.0, 12.0), Visited(0.0, 0.0, 12.0)]
    assert rounds.after(visited, 2 * one, one).sigma == 2.0  # all alike: |sum|^2 = 48
    apart = np.sqrt(2) * one  # at right angles: |sum|^2 = 24
    assert rounds.after(visited, apart, one).sigma == pytest.approx(1.1)
    assert rounds.after(visited, 0 * one, one).sigma == 1.0


@pytest.mark.parametrize(
    ("rows", "given", "sparsity", "expected"),
    [(100, None, 1.0, 1), (30_000, None, 1.0, 117), (30_000, None, 10.0, 12), (5000, 500, 9.0, 10)],
)
def test_rounds_on_a_board(rows, given, sparsity, expected):
    assert rounds_on_board(rows, given, sparsity) == expected
