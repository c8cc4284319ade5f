"""How calibrated: the least expected loss that a given excess of top-k error costs.

For a loss and epsilon > 0 let psi(epsilon) be the infimum, over all distributions p and all scores
whose top-k error at p exceeds the Bayes error by epsilon or more (ties broken in the worst way), of
their expected loss beyond its infimum at p. If scores have an expected loss within psi(epsilon)
of the infimum, their top-k error is within epsilon of the Bayes error.

Labels can be renamed, so the search fixes the shortlist. It shares some labels C with the best
one, lists t labels B instead of A, and leaves out the rest D:

    minimise   inf {R(g; p): C and B on top} - inf {R(g; p)}
    over p     in the simplex with p(A) - p(B) >= epsilon,   for t = 1, ..., min(k, m - k).

Both infima are convex problems and are solved to full precision; their difference is concave less
concave in p, neither convex nor concave. So the outer search is by many starts: a grid of
distributions that are uniform within A, B, C and D, random ones, and descents from the best. The
derivative in p is L(., g_wrong) - L(., g_best), at no cost.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from sklearn.utils import check_random_state

from shortlist.calibration._bayes import check_shortlist_size
from shortlist.calibration._families import infimum
from shortlist.calibration._optimum import as_loss
from shortlist.calibration._theorems import proved_excess_risk
from shortlist.losses import Loss

Vector = NDArray[np.float64]
Mask = NDArray[np.bool_]

#: Shares of the free mass tried for B, and of what is left for C.
_GRID = np.linspace(0.0, 1.0, 6)
#: Probabilities below this are also tried as exact zeros.
_NEARLY_ZERO = 1e-4
#: Descents keep probabilities above this: at zero the derivative may be infinite.
_MIN_PROBABILITY = 1e-7
#: When a descent ends: it is one of many, and each round takes two minimisations.
_DESCENT = {"maxiter": 25, "ftol": 1e-12}


@dataclass(frozen=True)
class RegretBound:
    """The result of `regret_bound`.

    Attributes
    ----------
    epsilon, k, n_classes : what was asked
    value : the smallest excess risk found. It is attained, or approached, at `p` by `scores`, so
        the infimum psi(epsilon) is not larger
    proved : no p and no scores have a smaller one, by theorem; 0 where nothing is proved.
        psi(epsilon) lies between `proved` and `value`
    accuracy : an estimate of the numerical error of `value` as the excess risk at `p`
    p : the distribution
    scores : scores with a top-k error of epsilon or more beyond the Bayes error at `p`, ties
        broken in the worst way; entries may be infinite
    best_scores : the minimiser at `p`
    n_distributions : how many distributions were tried
    """

    epsilon: float
    k: int
    n_classes: int
    value: float
    proved: float
    accuracy: float
    p: Vector
    scores: Vector
    best_scores: Vector
    n_distributions: int


@dataclass(frozen=True)
class _Exchange:
    """Which labels a wrong shortlist shares (C), lists (B), misses (A) and leaves out (D)."""

    missed: Mask
    listed: Mask
    shared: Mask
    rest: Mask

    @property
    def shortlist(self) -> Mask:
        return self.shared | self.listed

    def excess(self, p: Vector) -> float:
        return float(p[self.missed].sum() - p[self.listed].sum())


def regret_bound(
    loss: Loss | str,
    epsilon: float,
    *,
    n_classes: int = 4,
    k: int | None = None,
    n_random: int = 20,
    n_descents: int = 3,
    random_state: int | np.random.RandomState | None = 0,
) -> RegretBound:
    """The smallest excess expected loss of scores whose top-k error is epsilon above the least.

    The minimum is over all distributions of `n_classes` labels and all such scores. It turns
    a small excess of the loss into a small excess of the top-k error: with an expected loss
    within psi(epsilon) of the infimum, the top-k error is within epsilon of the Bayes error.

    The inner minimisations are exact to about 1e-14 (1e-8 for the hinges without smoothing). The
    outer one over distributions is a search: `value` is attained and so bounds psi from above.
    For three classes it agrees with an exhaustive grid. `proved` bounds psi from below.

    Parameters
    ----------
    loss : a loss of `shortlist.losses`, or its name
    epsilon : the excess of the top-k error, above 0 and at most 1
    n_classes : the number of classes m
    k : the length of the shortlist, below n_classes; the loss's own k by default
    n_random : how many random distributions to try beside the structured ones
    n_descents : from how many of the best to descend, for each number of exchanged labels
    random_state : seed of the random distributions
    """
    loss = as_loss(loss)
    loss.check_classes(n_classes)
    if not loss.labels_alike:
        raise ValueError("the search renames labels, so the loss must treat them alike: no margins")
    k = check_shortlist_size(loss.k if k is None else k, n_classes)
    if k == n_classes:
        raise ValueError(f"a shortlist of all {n_classes} classes cannot be wrong; got k={k}")
    if not 0 < epsilon <= 1:
        raise ValueError(f"epsilon must lie above 0 and at most at 1, got {epsilon}")
    random = check_random_state(random_state)
    best: _Excess | None = None
    n_distributions = 0
    for exchange in _exchanges(k, n_classes):
        search = _Search(loss, exchange, epsilon)
        for p in [*_structured(exchange, epsilon), *_random(exchange, epsilon, n_random, random)]:
            search.evaluate(p)
        for start in search.best(n_descents):
            search.descend(start.p)
        n_distributions += len(search.tried)
        found = search.best(1)[0]
        best = found if best is None or found.value < best.value else best
    assert best is not None  # k < n_classes, so there is at least one exchange
    return RegretBound(
        epsilon=float(epsilon),
        k=k,
        n_classes=n_classes,
        value=best.value,
        proved=proved_excess_risk(loss, epsilon, k, n_classes),
        accuracy=best.accuracy,
        p=best.p,
        scores=best.scores,
        best_scores=best.best_scores,
        n_distributions=n_distributions,
    )


@dataclass(frozen=True)
class _Excess:
    p: Vector
    value: float
    accuracy: float
    scores: Vector
    best_scores: Vector


class _Search:
    """All distributions tried for one exchange."""

    def __init__(self, loss: Loss, exchange: _Exchange, epsilon: float) -> None:
        self.loss = loss
        self.exchange = exchange
        self.epsilon = epsilon
        self.tried: list[_Excess] = []

    def best(self, count: int) -> list[_Excess]:
        return sorted(self.tried, key=lambda excess: excess.value)[:count]

    def evaluate(self, p: Vector) -> _Excess:
        wrong = infimum(self.loss, p, self.exchange.shortlist)
        right = infimum(self.loss, p)
        value = max(wrong.risk - right.risk, 0.0)
        accuracy = wrong.accuracy + right.accuracy
        excess = _Excess(p, value, accuracy, wrong.scores, right.scores)
        self.tried.append(excess)
        return excess

    def descend(self, start: Vector) -> None:
        """Lower the excess risk from here, and try the end with small entries set to zero."""
        signs = self.exchange.missed * 1.0 - self.exchange.listed * 1.0
        found = minimize(
            self._value_and_slope,
            np.maximum(start, _MIN_PROBABILITY),
            jac=True,
            method="SLSQP",
            bounds=[(_MIN_PROBABILITY, 1.0)] * len(start),
            constraints=[
                {"type": "eq", "fun": lambda p: p.sum() - 1.0, "jac": np.ones_like},
                {"type": "ineq", "fun": lambda p: signs @ p - self.epsilon, "jac": lambda p: signs},
            ],
            options=_DESCENT,
        )
        end = self._feasible(found.x)
        self.evaluate(end)
        if (end < _NEARLY_ZERO).any():
            self.evaluate(self._feasible(np.where(end < _NEARLY_ZERO, 0.0, end)))

    def _value_and_slope(self, p: Vector) -> tuple[float, Vector]:
        excess = self.evaluate(self._feasible(p))
        labels = np.arange(len(p))
        wrong, right = (
            self.loss.value(np.tile(_finite(scores), (len(p), 1)), labels)
            for scores in (excess.scores, excess.best_scores)
        )
        return excess.value, wrong - right

    def _feasible(self, p: Vector) -> Vector:
        """The nearest distribution with exactly as much excess error as asked, or more."""
        p = np.maximum(p, 0.0)
        p = p / p.sum()
        missing = self.epsilon - self.exchange.excess(p)
        if missing <= 0:
            return p
        # Mix with the uniform distribution on the missed labels, whose excess is 1.
        target = self.exchange.missed / self.exchange.missed.sum()
        share = missing / (1.0 - self.exchange.excess(p))
        return (1.0 - share) * p + share * target


def _finite(scores: Vector) -> Vector:
    return np.clip(scores, -60.0, 60.0)


def _exchanges(k: int, n_classes: int) -> Iterator[_Exchange]:
    labels = np.arange(n_classes)
    for t in range(1, min(k, n_classes - k) + 1):
        yield _Exchange(
            shared=labels < k - t,
            missed=(k - t <= labels) & (labels < k),
            listed=(k <= labels) & (labels < k + t),
            rest=labels >= k + t,
        )


def _structured(exchange: _Exchange, epsilon: float) -> Iterator[Vector]:
    """Distributions that are uniform within each group, with an excess error of epsilon."""
    others = exchange.shared.any() or exchange.rest.any()
    both = exchange.shared.any() and exchange.rest.any()
    for of_listed, of_shared in product(_GRID if others else [1.0], _GRID if both else [0.5]):
        listed = of_listed * (1.0 - epsilon) / 2.0
        left = 1.0 - epsilon - 2.0 * listed
        shared = left * (of_shared if both else float(exchange.shared.any()))
        yield (
            _spread(exchange.missed, listed + epsilon)
            + _spread(exchange.listed, listed)
            + _spread(exchange.shared, shared)
            + _spread(exchange.rest, left - shared)
        )
    # Shared labels are as likely as a missed one, or as a listed one. The rest likewise.
    lead = epsilon / exchange.missed.sum()
    for of_shared, of_rest in product([0.0, 1.0], [0.0, 1.0]):
        leads = lead * (exchange.missed + of_shared * exchange.shared + of_rest * exchange.rest)
        if leads.sum() <= 1.0:
            yield leads + (1.0 - leads.sum()) / len(leads)


def _spread(group: Mask, mass: float) -> Vector:
    return np.where(group, mass / max(int(group.sum()), 1), 0.0)


def _random(
    exchange: _Exchange, epsilon: float, count: int, random: np.random.RandomState
) -> Iterator[Vector]:
    """Mixtures of the corners of the set of distributions with an excess error of epsilon."""
    one = np.eye(len(exchange.missed))
    missed, listed = one[exchange.missed], one[exchange.listed]
    others = one[exchange.shared | exchange.rest]
    corners = [
        (1.0 + epsilon) / 2.0 * a + (1.0 - epsilon) / 2.0 * b for a, b in product(missed, listed)
    ] + [epsilon * a + (1.0 - epsilon) * c for a, c in product(missed, others)]
    for concentration in np.resize([0.2, 1.0, 5.0], count):
        yield random.dirichlet(np.full(len(corners), concentration)) @ np.array(corners)
