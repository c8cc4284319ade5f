"""What a loss is to the rest of the library: four kernels on one example.

A family of losses is a NamedTuple type that holds its parameters, registered with its kernels:

    value_gradient(loss, f, y, v, work) -> L(f)   writes a (sub)gradient to v; f is kept
    conjugate(loss, v, y) -> L*(v)                for v in the domain
    violation(loss, v, y) -> >= 0                 by how much v misses the domain
    dual_step(loss, q, y, eta, start, v, work)    writes argmin_v L*(v) - <q,v> + eta/2 |v|^2

f, q, v have m entries; ``work`` is scratch of shape (2, m) in their precision; ``start`` holds two
floats, kept per example between visits and filled with zeros before the first.

The functions of these names below pick the family's kernel by the type of ``loss`` while the
caller compiles, so that a solver is written once and compiled only for the losses in use.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from shortlist._jit import overloaded


class Kernels(NamedTuple):
    value_gradient: Callable
    conjugate: Callable | None = None
    violation: Callable | None = None
    dual_step: Callable | None = None


_FAMILIES: dict[type, Kernels] = {}


def register(family: type, kernels: Kernels) -> None:
    """Give a NamedTuple type its kernels."""
    _FAMILIES[family] = kernels


def _kernels(loss: Any) -> Kernels:
    return _FAMILIES[loss.instance_class]


@overloaded
def value_gradient(loss, f, y, v, work):
    return _kernels(loss).value_gradient


@overloaded
def conjugate(loss, v, y):
    return _kernels(loss).conjugate


@overloaded
def violation(loss, v, y):
    return _kernels(loss).violation


@overloaded
def dual_step(loss, q, y, eta, start, v, work):
    return _kernels(loss).dual_step
