"""Second derivatives of the objective, kept where they matter: a Hessian for many products.

The Hessian of the losses is sum_i C_i H_i (x) x_i x_i'. Where regularisation is weak most examples
are sure of their label, and the others waver between a few classes: H_i is kept on these alone. On
CLINC150 at C = 100, three classes an example hold nine tenths of all curvature. A product with the
Hessian then costs as much as a tenth of a gradient.

What is not listed is little for each example, but there are many. It is replaced by its mean: a
class has a share of the second moments of all examples.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.kernels.curvature import multiply_by_curvatures
from shortlist.solvers.threads import Crew


class CurvatureRequest(NamedTuple):
    """What is asked of listed second derivatives.

    A class is listed for an example if it adds at least ``least`` to the Hessian along it. ``step``
    is that of finite differences, where the loss has no kernel. ``moments`` are the mean of
    x_i x_i', the constant feature last, if they are few enough; ``scores`` those of all examples,
    if they are known.
    """

    least: float
    step: float
    moments: NDArray | None = None
    scores: NDArray | None = None


class Listed(NamedTuple):
    """The examples from ``begin`` on: see ``kernels.curvature.list_curvatures``."""

    begin: int
    counts: NDArray
    classes: NDArray
    blocks: NDArray
    rest: NDArray


@dataclass(frozen=True)
class Curvature:
    """sum_i C_i H_i (x) x_i x_i' as a linear map; ``view`` is how kernels see the examples."""

    view: Any
    parts: list[Listed]
    crew: Crew
    moments: NDArray | None

    @cached_property
    def rest(self) -> NDArray:
        """What each class has that is not listed, of all examples together."""
        return np.sum([part.rest for part in self.parts], axis=0)

    @property
    def entries(self) -> int:
        """Classes listed, of all examples together."""
        return sum(part.classes.size for part in self.parts)

    def times(self, by_class: NDArray) -> NDArray:
        """The product with weights by classes, shape (m, d + 1)."""

        rest = self.rest.astype(by_class.dtype)
        # Each thread takes its examples, and its classes of the rest.
        bounds = np.linspace(0, len(by_class), len(self.parts) + 1).astype(int)

        def product(number: int, part: Listed) -> NDArray:
            out = np.zeros_like(by_class)
            multiply_by_curvatures(self.view, *part[:4], by_class, out)
            if self.moments is not None:
                own = slice(bounds[number], bounds[number + 1])
                out[own] += rest[own, None] * (by_class[own] @ self.moments)
            return out

        found = self.crew.run(product, list(enumerate(self.parts)))
        for other in found[1:]:
            found[0] += other
        return found[0]
