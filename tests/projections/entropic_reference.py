"""The entropic step by nested bisection, with scipy's Wright omega function.

    min  <x, log x> + (1-s) log(1-s) - <a,x> + eta/2 (|x|^2 + s^2)   over the set

Inside, for a given sum s, the solution is x_j = min(X(a_j - sigma), cap), where X(t) solves
eta x + log x = t, and sigma makes the sum right. Outside, the objective is convex in s: its
derivative is  eta s - log(1-s) - sigma - p/k,  p the multipliers of the caps s/k. Many rows at
once, since each takes thousands of evaluations.
"""

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, wrightomega


def elementwise(t: NDArray, eta: NDArray) -> NDArray:
    """X(t), the solution of  eta x + log x = t."""
    with np.errstate(all="ignore"):
        scaled = t + np.log(eta)
        # Where W(z) is z to all digits, also where scipy underflows early.
        small = (eta == 0) | (scaled < -40.0)
        return np.where(small, np.exp(np.minimum(t, 700.0)), wrightomega(scaled) / eta)


def _caps(s: NDArray, k: int, variant: str) -> NDArray:
    if k == 1:
        return np.full_like(s, np.inf)
    return s / k if variant == "alpha" else np.full_like(s, 1.0 / k)


def _given_sum(z: NDArray, eta: NDArray, s: NDArray, cap: NDArray) -> tuple[NDArray, NDArray]:
    """x and sigma for each row's sum s; z has maximum 0."""
    # There the smallest entry alone has all it may have; here the largest only its fair share.
    most, fair = np.minimum(cap, s), s / z.shape[1]
    low = z.min(axis=1) - eta * most - np.log(most)
    high = -eta * fair - np.log(fair)
    for _ in range(64):
        sigma = 0.5 * (low + high)
        x = np.minimum(elementwise(z - sigma[:, None], eta[:, None]), cap[:, None])
        too_much = x.sum(axis=1) > s
        low, high = np.where(too_much, sigma, low), np.where(too_much, high, sigma)
    return x, sigma


def solve(a: NDArray, eta: NDArray, k: int, variant: str) -> NDArray:
    """The solution of every row of ``a``, with one eta each."""
    top = a.max(axis=1)
    z = a - top[:, None]
    low = np.minimum(top, 0.0) - 2.0 * eta - np.abs(z).max(axis=1) - 50.0
    low = np.maximum(low, -700.0)  # smaller sums are zero
    high = np.maximum(top, 0.0) + np.log(a.shape[1]) + 5.0
    for _ in range(64):
        omega = 0.5 * (low + high)
        s = expit(omega)
        cap = _caps(s, k, variant)
        x, sigma = _given_sum(z, eta, s, cap)
        gain = top + sigma - eta * s - np.logaddexp(0.0, omega)
        if k > 1 and variant == "alpha":
            over = z - (sigma + eta * cap + np.log(cap))[:, None]
            gain += np.maximum(over, 0.0).sum(axis=1) / k
        low, high = np.where(gain > 0, omega, low), np.where(gain > 0, high, omega)
    return x
