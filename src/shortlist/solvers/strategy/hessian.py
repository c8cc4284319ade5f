"""Models of the primal's Hessian, so that a descent needs fewer steps.

The Hessian of the primal is I + sum_i C_i H_i (x) x_i x_i', where H_i is the m x m Hessian of the
i-th example's loss in its scores. Five models of it:

coupled  The Hessian itself, from all examples that have curvature or from a sample of them. Where
         there are few classes and features it costs some evaluations of the objective, and a
         descent with it takes few steps. It is made anew as often as it has paid for itself.
classes  Ignores second derivatives between classes. The block of class c is
         I + SHARE_OF_CURVATURE sum_i C_i |v_ic| x_i x_i',  v_i = grad L: for softmax and the
         logistic loss the second derivatives are |v_ic| (1 - |v_ic|), for the other smooth losses
         the order is right. The share is small: curvature falls during training, and of data that
         can nearly be separated hardly any is left. Too much assumed curvature costs more steps
         than too little.
listed   The Hessian, of the second derivatives that matter (see ``storage.curvature``): steps are
         Newton's, by conjugate gradients. For many classes, where regularisation is weak.
mean     One block for all classes, the mean of theirs, where a block for each would be too large.
         Hinges use it too: few examples have curvature, and which ones changes at every step.
uniform  I + h sum_i C_i x_i x_i' for all classes, h the curvature at scores of zero. Where C is so
         small that scores are, this is the Hessian, and a step or two are all that it takes.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from shortlist.losses.base import Loss
from shortlist.solvers.kernels.curvature import (
    add_sparse_curvature,
    pack_curvatures,
    pack_products,
    unpack_hessian,
)
from shortlist.solvers.problem import MOMENT_SAMPLES_PER_FEATURE, Problem
from shortlist.solvers.storage.base import shares_of
from shortlist.solvers.storage.curvature import CurvatureRequest
from shortlist.solvers.strategy.newton import (
    CG_SHARE_LEFT,
    ListedHessian,
    conjugate_gradients,
)

# The share of the curvature that the model "classes" assumes: see above.
SHARE_OF_CURVATURE = 0.02
# Weights of a coupled model, and examples that it is made of.
MAX_COUPLED_WEIGHTS = 1100
COUPLED_SAMPLES = 1024
# Where duals are sparse, an example with curvature adds to a block of the Hessian for each pair of
# its classes. If all examples add to more blocks than this, only every second is taken, or third.
MAX_SPARSE_BLOCKS = 1 << 15
# Step of finite differences in the scores, in units of the smoothing if that is below 1.
FINITE_STEP = 1e-5
# What a class must add to the Hessian along an example to be listed; the regulariser adds one. The
# path on CLINC150 over 45 values of C takes 71, 72 and 74 evaluations at 0.03, 0.05 and 0.1, and
# 275, 284 and 322 products.
MIN_CURVATURE = 0.05
# How exactly the equations of the uniform model are solved.
UNIFORM_SHARE_LEFT = 0.003


class Model(Protocol):
    """A positive definite model B of the Hessian."""

    # Whether B is the Hessian at the start, so that a step of length one suits.
    exact: bool

    def solve(self, gradient: NDArray) -> NDArray: ...


class Identity:
    """No model."""

    exact = False

    def solve(self, gradient: NDArray) -> NDArray:
        return gradient


@dataclass(frozen=True)
class Blocks:
    """The inverses of a d x d block for each class, or of one for all: shape (m or 1, d, d)."""

    inverses: NDArray
    exact = False

    def solve(self, gradient: NDArray) -> NDArray:
        if len(self.inverses) == 1:
            return self.inverses[0] @ gradient
        return np.matmul(self.inverses, gradient.T[:, :, None])[:, :, 0].T


@dataclass(frozen=True)
class Coupled:
    """The Cholesky factor of the whole Hessian, weights in the order of W'."""

    factor: NDArray
    exact = True

    @classmethod
    def of(cls, hessian: NDArray) -> "Coupled":
        """Of the Hessian's upper triangle, which is written to."""
        # It is the lower triangle of the transpose, which lies as LAPACK wants it.
        factor, _ = cho_factor(hessian.T, lower=True, overwrite_a=True, check_finite=False)
        return cls(factor)

    def solve(self, gradient: NDArray) -> NDArray:
        flat = cho_solve((self.factor, True), gradient.T.reshape(-1), check_finite=False)
        return flat.reshape(gradient.T.shape).T


@dataclass(frozen=True)
class Uniform:
    """I + ``factor`` times second moments (d + 1, d + 1), for all classes."""

    moments: NDArray
    factor: float
    exact = True

    def solve(self, gradient: NDArray) -> NDArray:
        factor = gradient.dtype.type(self.factor)
        return conjugate_gradients(
            lambda v: v + factor * (self.moments @ v), gradient, UNIFORM_SHARE_LEFT
        )


class Kind(Enum):
    """The models above."""

    NONE = "none"
    UNIFORM = "uniform"
    MEAN = "mean"
    CLASSES = "classes"
    LISTED = "listed"
    COUPLED = "coupled"


class Plan(NamedTuple):
    """Which model to make, of how many examples, for how many steps; None: for all."""

    kind: Kind
    sample: int = 0
    steps: int | None = None


def count_pairs(count: int) -> int:
    """How many pairs a <= b there are among ``count`` numbers."""
    return count * (count + 1) // 2


def make_model(
    problem: Problem, weights: NDArray, chosen: Plan, share_left: float = CG_SHARE_LEFT
) -> Model:
    """The model at ``weights``; the identity where it cannot be had.

    With listed derivatives steps are approximate: they leave ``share_left`` of the gradient.
    """
    if chosen.kind is Kind.NONE:
        return Identity()
    with np.errstate(over="ignore", invalid="ignore"):
        try:
            if chosen.kind is Kind.UNIFORM:
                return uniform_model(problem)
            if chosen.kind is Kind.LISTED:
                return _listed(problem, weights, share_left)
            if chosen.kind is Kind.COUPLED:
                return _coupled(problem, weights, chosen.sample)
            return _blocks(problem, weights, chosen.sample, chosen.kind)
        except (np.linalg.LinAlgError, ValueError):
            # So large that the identity is lost in rounding, or not finite.
            return Identity()


def _blocks(problem: Problem, weights: NDArray, sample: int, kind: Kind) -> Model:
    step = problem.storage.n // sample
    x = problem.storage.sample(step)
    y, cost = problem.costs.y[::step], problem.costs.cost[::step]
    shares = np.abs(problem.loss.row_gradients(x @ weights, y))
    shares *= step * cost[:, None]
    if kind is Kind.MEAN:
        shares = shares.mean(axis=1, keepdims=True)
    moments = np.stack([x.T @ (x * share[:, None]) for share in shares.T])
    blocks = SHARE_OF_CURVATURE * moments + np.eye(x.shape[1])
    if not np.isfinite(blocks).all():
        return Identity()
    factors = np.linalg.inv(np.linalg.cholesky(blocks))
    return Blocks(factors.transpose(0, 2, 1) @ factors)


def uniform_model(problem: Problem) -> Uniform:
    """The Hessian at zero, by the curvature between two wrong labels."""
    between = np.zeros(problem.n_classes)
    between[1], between[2] = 1.0, -1.0
    small, y = _small_step(problem.loss), np.zeros(1, np.int64)
    ahead, behind = (
        float((problem.loss.row_gradients(t * between[None], y) @ between)[0])
        for t in (small, -small)
    )
    total = float(problem.costs.cost.sum())
    factor = max(0.25 * (ahead - behind) / small, 0.0) * total
    return Uniform(moments_of(problem), factor)


def _listed(problem: Problem, weights: NDArray, share_left: float) -> Model:
    moments = moments_of(problem) if has_few_moments(problem) else None
    scores = problem.kept_scores.known_at(weights)
    asked = CurvatureRequest(MIN_CURVATURE, _small_step(problem.loss), moments, scores)
    given = (problem.loss, weights, problem.costs, problem.crew)
    return ListedHessian(problem.storage.curvature(*given, asked), share_left)


def _small_step(loss: Loss) -> float:
    """A change of scores that is small against those over which gradients change."""
    return FINITE_STEP * min(loss.smoothing, 1.0) if loss.smoothing > 0 else FINITE_STEP


def _coupled(problem: Problem, weights: NDArray, sample: int) -> Model:
    storage, loss = problem.storage, problem.loss
    step = max(1, storage.n // sample)
    is_sparse = has_sparse_curvature(problem)
    if is_sparse:
        step = max(step, _step_for_blocks(problem, weights))
    x = storage.sample(step)
    y = np.ascontiguousarray(problem.costs.y[::step])
    cost = step * problem.costs.cost[::step]
    scores = x @ weights
    small = _small_step(loss)
    sums_of = _sparse_hessian if is_sparse else _packed_hessian

    def share(begin: int, end: int) -> NDArray:
        rows = slice(begin, end)
        return sums_of(loss, x[rows], scores[rows], y[rows], cost[rows], small)

    sums = sum(problem.crew.run(share, shares_of(0, len(x), problem.crew.size)))
    hessian = np.asarray_chkfinite(sums)
    if is_sparse:
        hessian[np.diag_indices_from(hessian)] += 1.0
    else:
        m, d = problem.n_classes, x.shape[1]
        hessian = np.empty((m * d, m * d))
        unpack_hessian(sums, m, d, hessian)
    return Coupled.of(hessian)


def has_sparse_curvature(problem: Problem) -> bool:
    """Whether an example's second derivatives involve few classes, one of them its label."""
    return problem.loss.sparse_duals and not problem.loss.multilabel


def _step_for_blocks(problem: Problem, weights: NDArray) -> int:
    """Every how many-th example to take so that they add to few enough blocks."""
    step = max(1, problem.storage.n // COUPLED_SAMPLES)
    x, y = problem.storage.sample(step), problem.costs.y[::step]
    v = np.abs(problem.loss.row_gradients(x @ weights, y))
    # An example whose duals are all zero or one has no curvature.
    curved = ((v > 0.0) & (v < 1.0)).any(axis=1)
    classes = np.count_nonzero(v[curved], axis=1)
    blocks = 0.5 * step * float((classes * (classes + 1.0)).sum())
    return int(np.ceil(blocks / MAX_SPARSE_BLOCKS))


def _sparse_hessian(
    loss: Loss, x: NDArray, scores: NDArray, y: NDArray, cost: NDArray, step: float
) -> NDArray:
    hessian = np.zeros((x.shape[1] * scores.shape[1],) * 2)
    add_sparse_curvature(loss.spec, x, scores, y, cost, step, loss.fewest_classes, hessian)
    return hessian


def _packed_hessian(
    loss: Loss, x: NDArray, scores: NDArray, y: NDArray, cost: NDArray, step: float
) -> NDArray:
    """Its entries once each: a row for each pair of classes, a column for each of features."""
    m, d = scores.shape[1], x.shape[1]
    curvatures = np.empty((len(x), count_pairs(m)))
    pack_curvatures(loss.spec, scores, y, cost, step, curvatures)
    products = np.empty((len(x), count_pairs(d)))
    pack_products(x, products)
    return curvatures.T @ products


def has_few_moments(problem: Problem) -> bool:
    """Whether second moments are no large matrix: features are dense, and few for the examples."""
    storage = problem.storage
    dense = storage.width == storage.weights_per_class
    return dense and MOMENT_SAMPLES_PER_FEATURE * storage.width <= storage.n


def moments_of(problem: Problem) -> NDArray:
    return problem.moments.of(problem.storage, problem.costs)
