"""Lemma 1 by enumeration: the smallest top-k error and the shortlists that attain it."""

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shortlist.calibration import (
    bayes_topk_error,
    is_bayes_optimal,
    optimal_shortlists,
    worst_topk_error,
)
from tests.calibration.distributions import shortlists

# Few distinct weights: probabilities tie at the cut as often as not.
DISTRIBUTIONS = (
    st.lists(st.integers(0, 4), min_size=2, max_size=6)
    .filter(any)
    .map(lambda weights: np.array(weights) / sum(weights))
)


class TestLemma1:
    @given(p=DISTRIBUTIONS, data=st.data())
    @settings(max_examples=80, deadline=None)
    def test_error_and_optimal_shortlists_by_enumeration(self, p, data):
        k = data.draw(st.integers(1, len(p)))
        errors = [(1 - p[mask].sum(), mask) for mask in shortlists(len(p), k)]
        smallest = min(error for error, _ in errors)
        assert bayes_topk_error(p, k) == pytest.approx(smallest, abs=1e-14)
        optimal = optimal_shortlists(p, k)
        for error, mask in errors:
            described = (mask >= optimal.required).all() and (mask <= optimal.allowed).all()
            assert described == (error < smallest + 1e-9)

    @given(p=DISTRIBUTIONS, data=st.data())
    @settings(max_examples=80, deadline=None)
    def test_worst_error_by_breaking_ties_in_every_order(self, p, data):
        k = data.draw(st.integers(1, len(p)))
        scores = data.draw(
            st.lists(st.sampled_from([-np.inf, 0, 1, 2, np.inf]), min_size=len(p), max_size=len(p))
        )
        errors = []
        for priority in permutations(range(len(p))):
            ranking = sorted(range(len(p)), key=lambda j: (-scores[j], priority[j]))
            errors.append(1 - p[ranking[:k]].sum())
        assert worst_topk_error(scores, p, k) == pytest.approx(max(errors), abs=1e-14)
        assert is_bayes_optimal(scores, p, k) == (max(errors) < bayes_topk_error(p, k) + 1e-9)

    def test_many_distributions_at_once(self):
        P = np.random.default_rng(0).dirichlet(np.ones(6), 20)
        each = [bayes_topk_error(p, 2) for p in P]
        np.testing.assert_array_equal(bayes_topk_error(P, 2), each)
        assert bayes_topk_error(P[0], 6) == 0

    def test_constant_scores_are_not_optimal_unless_p_is(self):
        assert not is_bayes_optimal([0, 0, 0], [0.4, 0.3, 0.3], 1)
        assert is_bayes_optimal([0, 0, 0], [1 / 3, 1 / 3, 1 / 3], 2)
        assert is_bayes_optimal([0, 0, 0], [0.4, 0.3, 0.3], 3)

    def test_lemma_as_stated_does_not_suffice_where_the_cut_is_tied(self):
        # All three labels satisfy p_y >= the second largest, yet {1, 2} leaves out label 0.
        p = [0.5, 0.25, 0.25]
        assert optimal_shortlists(p, 2).allowed.all()
        assert not is_bayes_optimal([0, 1, 1], p, 2)
        assert is_bayes_optimal([1, 0, 0], p, 2)

    def test_tolerance_on_scores(self):
        assert is_bayes_optimal([1e-9, 0.0], [0.6, 0.4], 1)
        assert not is_bayes_optimal([1e-9, 0.0], [0.6, 0.4], 1, atol=1e-8)
        assert is_bayes_optimal([0.1, 0.3], [0.1 + 0.2, 0.7], 1)
