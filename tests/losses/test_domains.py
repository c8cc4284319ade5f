"""Duals in single precision, moved into the domain of the conjugate."""

import numpy as np
import pytest

from shortlist.losses.domains import domain_of, feasible
from shortlist.losses.labels import label_rows
from tests import references
from tests.instances import DUAL, by_id
from tests.multilabel import CASES
from tests.multilabel import random_dual as random_dual_of_labels

UNIT = float(np.finfo(np.float32).eps)
# Of what a row may miss its domain by, and of how far it may be moved.
FEW_UNITS = 40
HINGES = [row for row in DUAL if "hinge" in row.name and not row.one_vs_all]


def nearly_feasible(rng, exact):
    """Rounded to single precision, and wrong by a few units in the last place besides."""
    noise = 1 + UNIT * rng.integers(-3, 4, size=exact.shape)
    return (exact * noise).astype(np.float32)


def corners(row):
    """Duals at all bounds at once: the largest shares there are."""
    v = np.zeros(row.m)
    if row.one_vs_all:
        v[1:] = 1.0
    else:
        ranks = references.largest_shares(row, 1.0)
        v[1 : 1 + len(ranks)] = ranks
    v[0] = -1.0
    return v


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_rounded_duals_are_moved_inside_by_units_in_the_last_place(row):
    loss, rng = row.loss(), np.random.default_rng(row.m)
    assert domain_of(loss.spec) is not None
    labels = np.concatenate([rng.integers(row.m, size=40), np.zeros(20, int)])
    inside = [references.random_dual(row, rng, y) for y in labels[:40]] + [corners(row)] * 20
    v = nearly_feasible(rng, np.array(inside))
    moved = feasible(loss.spec, v, labels)
    # In double the conjugate is infinite a few units in double's last place outside.
    assert np.isfinite(loss.conjugate(moved, labels)).all()
    assert np.abs(moved - v).max() <= FEW_UNITS * UNIT
    # Nothing is left to move but rounding of double.
    np.testing.assert_allclose(feasible(loss.spec, moved, labels), moved, atol=1e-15)


@pytest.mark.parametrize("row", HINGES, ids=by_id)
def test_hinges_at_their_bound_stay_there(row):
    """A sum that is 1 but for rounding is 1: less would cost a part of the example's loss."""
    v = nearly_feasible(np.random.default_rng(0), np.tile(corners(row), (20, 1)))
    moved = feasible(row.loss().spec, v, np.zeros(20, int))
    np.testing.assert_allclose(moved[:, 0], -1.0, atol=1e-15)


@pytest.mark.parametrize("case", CASES, ids=by_id)
def test_duals_of_several_labels(case):
    loss, rng = case.loss(), np.random.default_rng(case.m)
    right = case.indicators(seed=0, n=40)
    v = nearly_feasible(rng, np.array([random_dual_of_labels(case, rng, row) for row in right]))
    moved = feasible(loss.spec, v, label_rows(right))
    assert np.isfinite(loss.conjugate(moved, right)).all()
    assert np.abs(moved - v).max() <= FEW_UNITS * UNIT
