"""Conjugates: right inside their domain, infinite outside, never below Young's inequality."""

import numpy as np
import pytest

from tests import references
from tests.instances import DUAL, by_id


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_inside_the_domain_finite_and_right(row):
    loss, rng = row.loss(), np.random.default_rng(row.m)
    for _ in range(30):
        y = int(rng.integers(row.m))
        v = references.random_dual(row, rng, y)
        expected = references.conjugate(row, v, y)
        assert loss.conjugate(v, y) == pytest.approx(expected, rel=1e-13, abs=1e-14)
        f = rng.normal(size=row.m) * 3
        assert loss.value(f, y) + expected >= f @ v - 1e-12


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_corners_of_the_domain(row):
    """Zero, and the largest shares there are."""
    loss = row.loss()
    assert loss.conjugate(np.zeros(row.m), 0) == 0.0
    v = np.zeros(row.m)
    ranks = references.largest_shares(row, 1.0)
    v[1 : 1 + len(ranks)] = ranks
    v[0] = -1.0
    expected = references.conjugate(row, v, 0)
    assert loss.conjugate(v, 0) == pytest.approx(expected, rel=1e-13, abs=1e-14)


def _moved(v, entries):
    v = v.copy()
    for j, value in entries.items():
        v[j] = value
    return v


def _outside(row, v, y, by):
    """Points that miss the domain by ``by``, each in one of its constraints."""
    if row.formulas is not None:
        return row.formulas.outside(v, y, by)
    wrong = np.delete(np.arange(row.m), y)
    first = wrong[0]
    if row.one_vs_all:
        changes = [{first: -by}, {first: 1.0 + by}, {y: by}, {y: -1.0 - by}]
        return [_moved(v, change) for change in changes]
    nothing = np.zeros(row.m)
    negative = _moved(v, {first: -by})
    negative[y] = -negative[wrong].sum()
    unbalanced = _moved(v, {y: v[y] + by})
    too_much = _moved(nothing, {y: -1.0 - by, **dict.fromkeys(wrong, (1.0 + by) / len(wrong))})
    points = [negative, unbalanced, too_much]
    ranks = references.largest_shares(row, 1.0)
    if len(ranks) > 1:
        # One entry above its cap while the sum stays below 1.
        over = nothing.copy()
        if row.variant == "alpha":
            over[wrong[: len(ranks)]] = 0.5 * ranks
        else:
            over[first] = ranks[0]
        over[first] += 2 * by
        over[y] = -over[wrong].sum()
        points.append(over)
    return points


@pytest.mark.parametrize("by", [1.0, 1e-3, 1e-9])
@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_outside_the_domain_infinite(row, by):
    loss, rng = row.loss(), np.random.default_rng(row.m)
    y = int(rng.integers(row.m))
    for v in _outside(row, references.random_dual(row, rng, y), y, by):
        assert loss.conjugate(v, y) == np.inf, v


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_infinite_entries_are_outside(row):
    loss = row.loss()
    for entries in ([np.inf, -np.inf], [-np.inf, np.inf], [np.inf, np.inf], [0.0, np.inf]):
        v = np.zeros(row.m)
        v[:2] = entries
        assert loss.conjugate(v, 0) == np.inf
        assert loss.conjugate(v, row.m - 1) == np.inf


@pytest.mark.parametrize("row", DUAL, ids=by_id)
def test_rounding_counts_as_inside(row):
    """A point scaled by one unit in the last place is still a dual point, in both precisions."""
    loss, rng = row.loss(), np.random.default_rng(row.m)
    for dtype in (np.float64, np.float32):
        y = int(rng.integers(row.m))
        v = (references.random_dual(row, rng, y) * (1 + np.finfo(dtype).eps)).astype(dtype)
        assert np.isfinite(loss.conjugate(v, y))
