"""Projections on the top-k simplex from a guess, against the walk from the beginning."""

import numpy as np
import pytest

from shortlist.projections.topk import settle_cap, walk_cap


def projection(z, ref, t, c):
    return np.clip(z - ref - t, 0.0, c)


def solve(rng, k, rho, scale):
    """A random problem with its solution: z, top, x, theta and c."""
    m = int(rng.integers(k, 40))
    z = scale * rng.normal(size=m)
    if rng.random() < 0.3:
        z = np.round(2.0 * z / scale) * scale / 2.0  # ties
    z -= z.max()
    top = float(scale * rng.normal() + scale)
    ref, t, c = walk_cap(z, top, k, 1.0, rho, np.empty_like(z))
    return z, top, projection(z, ref, t, c), top + ref + t, c


@pytest.mark.parametrize("rho", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("k", [2, 5])
def test_a_guess_leads_to_the_projection_or_nowhere(k, rho):
    rng = np.random.default_rng(k)
    settled = cases = 0
    for _ in range(600):
        z, top, x, theta, c = solve(rng, k, rho, rng.choice([1e-3, 0.1, 1.0, 1e3]))
        if c == 0.0:
            continue
        for error in (0.0, 1e-3, 0.1, 10.0):
            guess = theta + error * rng.normal() * c, c * np.exp(error * rng.normal())
            ref, t, found = settle_cap(z, top, k, 1.0, rho, *guess)
            if found > 0.0:
                np.testing.assert_allclose(projection(z, ref, t, found), x, atol=1e-12, rtol=1e-9)
            if error < 0.01:
                cases += 1
                settled += found > 0.0
    assert settled > 0.8 * cases


@pytest.mark.parametrize(
    "guess", [(np.inf, 1.0), (-np.inf, 1.0), (np.nan, 1.0), (0.0, 0.0), (0.0, 1e300)]
)
def test_a_useless_guess_is_given_up(guess):
    z = np.array([0.0, -0.1, -0.2, -0.3])
    with np.errstate(invalid="ignore"):
        ref, t, c = settle_cap(z, 1.0, 2, 1.0, 0.5, *guess)
    if c > 0.0:
        exact = walk_cap(z, 1.0, 2, 1.0, 0.5, np.empty_like(z))
        np.testing.assert_allclose(projection(z, ref, t, c), projection(z, *exact), atol=1e-12)
