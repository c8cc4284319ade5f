"""What a loss is to the rest of the library: kernels on one example.

A family of losses is a NamedTuple type that holds its parameters, registered with its kernels:

    value_gradient(loss, f, y, v, work) -> L(f)   writes a (sub)gradient to v; f is kept
    conjugate(loss, v, y) -> L*(v)                for v in the domain
    violation(loss, v, y) -> >= 0                 by how much v misses the domain
    dual_step(loss, q, y, eta, start, v, work)    writes argmin_v L*(v) - <q,v> + eta/2 |v|^2

In kernels ``loss`` is that NamedTuple. Elsewhere a ``loss`` is a ``Loss``, whose ``spec`` it is.

f, q, v have m entries; ``work`` is scratch of shape (2, m) in their precision; ``start`` holds two
floats, kept per example between visits and filled with zeros before the first.

Six more kernels are optional. The first five only save time:

    ascend(loss, s, y, cost, kappa, start, stands_for, v, delta, work) -> share of the gap
        one visit of SDCA; :func:`ascend` below says what it does and how it is done without
    lanes(loss, scores, y, cost, scratch) -> sum of cost L
        values and gradients of many examples at once, scores (m, B) with an example a column;
        scores are replaced by cost times the gradients. ``scratch`` has shape (8, B)
    curvature(loss, f, y, step, hessian, work)
        writes the second derivatives in the scores; without it, :func:`finite_differences`
    curvature_among(loss, f, y, v, classes, place, fewest, step, hessian, few, work) -> bool
        writes those between some classes; without it, :func:`curvature_on_few`
    slope(loss, q, y, eta, v, step, slopes, work)
        writes the derivative in q of the dual step v, shape (m, m); without it,
        :func:`differences_of_steps`
    on_classes(loss, s, y, classes) -> loss       for a loss that tells its classes apart
        the loss on some classes, whose scores are s: moves s to what that loss takes

One more is an ordinary function, and makes certificates in single precision sharper:

    domain(loss) -> Domain                        where its duals may lie (see ``losses.domains``)

The functions of these names below pick the family's kernel by the type of ``loss`` while the
caller compiles, so that a solver is written once and compiled only for the losses in use.
``value_gradient`` and ``dual_step`` are compiled apart from their callers: half a dozen kernels
call them, and much of the time to compile those would go into copies of them. ``ascend`` is part
of its callers: a call passes some forty words, 3 to 5 % of a visit to Letter's 26 classes.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from shortlist._jit import njit, overloaded


class Kernels(NamedTuple):
    """The kernels of a family, as listed above."""

    value_gradient: Callable
    conjugate: Callable | None = None
    violation: Callable | None = None
    dual_step: Callable | None = None
    ascend: Callable | None = None
    lanes: Callable | None = None
    curvature: Callable | None = None
    curvature_among: Callable | None = None
    slope: Callable | None = None
    on_classes: Callable | None = None
    domain: Callable | None = None


_FAMILIES: dict[type, Kernels] = {}


def register(family: type, kernels: Kernels) -> None:
    """Give a NamedTuple type its kernels."""
    _FAMILIES[family] = kernels


def kernels_of(family: type) -> Kernels:
    """The kernels a NamedTuple type was registered with."""
    return _FAMILIES[family]


def same_parameters(one: Any, other: Any) -> bool:
    """Equality of NamedTuples some of whose parameters are arrays."""
    return type(one) is type(other) and all(
        np.array_equal(mine, its) if isinstance(mine, np.ndarray) else mine == its
        for mine, its in zip(one, other, strict=True)
    )


def hash_of_parameters(one: Any) -> int:
    """The hash that goes with :func:`same_parameters`."""
    return hash(tuple(p.tobytes() if isinstance(p, np.ndarray) else p for p in one))


def _kernels(loss: Any) -> Kernels:
    return _FAMILIES[loss.instance_class]


@overloaded(apart=True)
def value_gradient(loss, f, y, v, work):
    return _kernels(loss).value_gradient


@overloaded
def conjugate(loss, v, y):
    return _kernels(loss).conjugate


@overloaded
def violation(loss, v, y):
    return _kernels(loss).violation


@overloaded(apart=True)
def dual_step(loss, q, y, eta, start, v, work):
    return _kernels(loss).dual_step


@overloaded
def lanes(loss, scores, y, cost, scratch):
    return _kernels(loss).lanes


@njit
def finite_differences(loss, f, y, step, hessian, work):
    """Second derivatives of L from its gradients at f and at f + step e_a.

    Where the gradient is piecewise linear, a small step stays within a piece with probability
    one; a class whose derivative is zero there stays so. ``work`` has shape (3, m): two rows are
    the kernels' scratch.
    """
    m = f.shape[0]
    g = work[2]
    value_gradient(loss, f, y, g, work[:2])
    for a in range(m):
        if g[a] == 0.0:
            hessian[a] = 0
            continue
        before = f[a]
        f[a] = before + step
        value_gradient(loss, f, y, hessian[a], work[:2])
        for b in range(m):
            hessian[a, b] = (hessian[a, b] - g[b]) / step
        f[a] = before
    for a in range(m):
        for b in range(a):
            mean = f.dtype.type(0.5) * (hessian[a, b] + hessian[b, a])
            hessian[a, b] = mean
            hessian[b, a] = mean


@overloaded
def curvature(loss, f, y, step, hessian, work):
    """The Hessian of L at f; symmetric."""
    return _kernels(loss).curvature or finite_differences


@njit
def curvature_on_few(loss, f, y, v, classes, place, fewest, step, hessian, few, work):
    """Second derivatives of the loss on some classes alone, as if there were no others.

    Returns False where there are fewer than ``fewest``: the loss is not defined on these, or has
    no curvature. ``few`` has an entry a class; ``work`` has shape (3, number of classes).
    """
    if classes.shape[0] < fewest:
        return False
    for a in range(classes.shape[0]):
        few[a] = f[classes[a]]
    on_few = on_classes(loss, few, y, classes)
    curvature(on_few, few, place, step, hessian, work)
    return True


@overloaded
def curvature_among(loss, f, y, v, classes, place, fewest, step, hessian, few, work):
    """Second derivatives between ``classes``, about those of L at all scores f, gradient v.

    ``place`` is where the label is among the classes. Returns whether they are written.
    """
    return _kernels(loss).curvature_among or curvature_on_few


@njit
def differences_of_steps(loss, q, y, eta, v, step, slopes, work):
    """The derivative of the dual step from those at q + step e_a.

    As with :func:`finite_differences`, a small step stays within a linear piece.
    """
    m = q.shape[0]
    start = np.zeros(2)
    for a in range(m):
        before = q[a]
        q[a] = before + step
        dual_step(loss, q, y, eta, start, slopes[a], work)
        q[a] = before
        for b in range(m):
            slopes[a, b] = (slopes[a, b] - v[b]) / step


@overloaded
def slope(loss, q, y, eta, v, step, slopes, work):
    """The derivative of the dual step v at q."""
    return _kernels(loss).slope or differences_of_steps


@njit
def gap_share(loss, s, y, cost, v, g, work):
    """C_i [L(s) + L*(v) - <s, v>], the example's share of the duality gap; g is scratch."""
    return share_of_value(loss, value_gradient(loss, s, y, g, work), s, y, cost, v)


@njit
def share_of_value(loss, value, s, y, cost, v):
    """The share where L(s) is known."""
    return max(cost * (value + conjugate(loss, v, y) - _inner_product(s, v)), 0.0)


@njit(sums=True)
def _inner_product(s, v):
    total = 0.0
    for j in range(s.shape[0]):
        total += np.float64(s[j]) * np.float64(v[j])
    return total


@njit
def ascend_exactly(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """Visit one example by its dual step.

    With eta = C_i kappa_i, set v to the minimiser of  L*(v) - <s + eta v_old, v> + eta/2 |v|^2
    and delta to C_i (v_old - v). Destroys s. Returns the example's share of the duality gap
    before the visit times ``stands_for``: of a sample of visits, each stands for so many. 0: it
    is not measured.
    """
    share = 0.0
    if stands_for > 0:
        share = gap_share(loss, s, y, cost, v, delta, work) * stands_for
    eta = s.dtype.type(cost * kappa)
    for j in range(s.shape[0]):
        s[j] += eta * v[j]
        delta[j] = v[j]
    dual_step(loss, s, y, cost * kappa, start, v, work)
    c = s.dtype.type(cost)
    for j in range(s.shape[0]):
        delta[j] = c * (delta[j] - v[j])
    return share


@overloaded(apart=True)
def ascend_exactly_apart(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """:func:`ascend_exactly` for a family whose visits seldom come to it."""
    return ascend_exactly


@overloaded
def ascend(loss, s, y, cost, kappa, start, stands_for, v, delta, work):
    """Visit one example: change v so that the dual objective does not fall.

    As :func:`ascend_exactly`, but a family may take a cheaper step than the exact one, as long
    as v stays in the domain and the objective of the exact step does not rise.
    """
    return _kernels(loss).ascend or ascend_exactly


@njit
def _all_alike(loss, s, y, classes):
    return loss


@overloaded
def on_classes(loss, s, y, classes):
    """The loss on some of the classes, whose scores are s; y is the label among all.

    A loss that treats classes alike is the same on any of them. One that does not moves s to the
    scores that the loss it returns takes.
    """
    return _kernels(loss).on_classes or _all_alike
