"""Paired statistics against brute force and textbook values."""

import math
from itertools import product

import numpy as np
import pytest

from shortlist.experiments.comparison import compare, mean_ranks, standard_error


def hits(text):
    return np.array([letter == "1" for letter in text])


def test_mcnemar_counts_all_outcomes_at_least_as_uneven():
    ours, theirs = hits("1111111000" + "11"), hits("0000000111" + "10")
    found = compare(ours, theirs)
    # Eleven examples are decided by one of the two: eight for us, three for the other.
    outcomes = [sum(coins) for coins in product((0, 1), repeat=11)]
    uneven = sum(abs(heads - 5.5) >= 2.5 for heads in outcomes)
    assert found.p_value == pytest.approx(uneven / 2**11)
    assert found.ours == pytest.approx(100 * 5 / 12)


def test_the_error_of_a_difference_is_that_of_paired_examples():
    random = np.random.default_rng(0)
    ours, theirs = random.random(500) < 0.8, random.random(500) < 0.7
    found = compare(ours, theirs)
    each = 100 * (ours.astype(float) - theirs)
    assert found.ours == pytest.approx(each.mean())
    assert found.spread == pytest.approx(each.std() / math.sqrt(500))


def test_equal_classifiers_do_not_differ():
    same = hits("1101")
    found = compare(same, same)
    assert (found.ours, found.spread, found.p_value) == (0.0, 0.0, 1.0)


def test_standard_error_of_an_accuracy():
    assert standard_error(70.0, 100) == pytest.approx(100 * math.sqrt(0.7 * 0.3 / 100))
    assert standard_error(100.0, 50) == 0.0


def test_mean_ranks_share_ties_and_leave_out_what_is_missing():
    first = {"a": 90.0, "b": 80.0, "c": 80.0, "d": 10.0}
    second = {"a": 50.0, "b": 70.0, "c": 60.0}
    assert mean_ranks([first, second]) == {"a": 2.0, "b": 1.75, "c": 2.25}
