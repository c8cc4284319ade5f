"""The grid of C: which values it has at first, and where it grows."""

import numpy as np
import pytest

from shortlist import TopKClassifierCV
from shortlist.estimators.cv_grid import Grid, best_row, grid_of


def run_grid(accuracy_of, Cs, limit):
    grid = Grid(Cs, limit)
    while pending := grid.pending():
        for C in pending:
            grid.scores[C] = np.array([accuracy_of(C)])
    return grid


def test_grid_growth_is_bounded_on_each_side_and_stops_when_nothing_is_gained():
    rising = run_grid(lambda C: [np.log10(C), -np.log10(C)], [1.0, 10.0], 3)
    np.testing.assert_allclose(rising.Cs, 10.0 ** np.arange(-3, 5))
    assert {side: ks.tolist() for side, ks in rising.open_edges().items()} == {
        "low": [False, True],
        "high": [True, False],
    }
    peaked = run_grid(lambda C: [-abs(np.log10(C) - 3)], [1.0, 10.0], 9)
    np.testing.assert_allclose(peaked.Cs, 10.0 ** np.arange(0, 5))
    assert peaked.Cs[best_row(peaked.means()[:, 0])] == pytest.approx(1e3)
    assert peaked.open_edges() == {}
    flat = run_grid(lambda C: [0.5], [1.0, 2.0], 9)
    np.testing.assert_allclose(flat.Cs, [0.5, 1.0, 2.0, 4.0])
    perfect = run_grid(lambda C: [1.0], [1.0, 2.0], 9)
    np.testing.assert_allclose(perfect.Cs, [0.5, 1.0, 2.0])
    single = run_grid(lambda C: [C], [7.0], 1)
    np.testing.assert_allclose(single.Cs, [0.7, 7.0, 70.0])
    coarse = run_grid(lambda C: [C], [1e-3, 1e3], 1)
    np.testing.assert_allclose(coarse.Cs, [1e-3, 1e3, 1e4])


def test_the_default_grid_is_the_papers_range():
    np.testing.assert_allclose(grid_of(9), 10.0 ** np.arange(-5, 4))
    assert grid_of((3, 1, 3.0)) == [1.0, 3.0]
    assert TopKClassifierCV().ks == (1, 3, 5, 10)
