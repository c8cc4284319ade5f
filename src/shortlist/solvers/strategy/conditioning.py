"""Which model of the Hessian a descent begins with, and for how many steps.

The models are those of ``strategy.hessian``. Prices are counted in operations and turned into
nanoseconds of one machine; only their ratios matter.
"""

import numpy as np
from numpy.typing import NDArray

from shortlist.solvers.problem import Problem
from shortlist.solvers.strategy.hessian import (
    COUPLED_SAMPLES,
    MAX_COUPLED_WEIGHTS,
    MAX_SPARSE_BLOCKS,
    MIN_CURVATURE,
    Kind,
    Plan,
    count_pairs,
    has_few_moments,
    has_sparse_curvature,
)

# Blocks are estimated from so many examples at least, or so many a class or a feature.
MIN_SAMPLES = 1000
SAMPLES_PER_CLASS = 20
SAMPLES_PER_FEATURE = 4
# Bounds the entries of all blocks together, and the sampled examples times the classes.
MAX_BLOCK_ENTRIES = 1 << 22
# What a model may cost before the first step, in evaluations of the objective.
MAX_MODEL_COST = 8.0
# Steps after which blocks are made anew: the curvature at the start says little of that at the
# solution.
STEPS_WITH_BLOCKS = 8
# Sparse duals leave most examples without curvature. At most so many examples are examined.
MAX_SAMPLES_EXAMINED = 1 << 15
# Blocks of an example in the mean: pairs of its label and another class, if it has curvature.
SPARSE_BLOCKS_PER_EXAMPLE = 3
# Keep a model for at least so many steps: L-BFGS scales its steps by earlier ones.
MIN_STEPS_PER_MODEL = 3
# If two coupled models in a row are not enough, make the next of so many times as many examples, up
# to all. Few examples may hold most of the curvature: softmax with C = 1e4 on 20000 x 60 nearly
# separable examples of 4 classes takes 30 evaluations, and 968 without growth.
SAMPLE_GROWTH = 2
# Near the solution the Hessian hardly changes. The model is kept for so many steps.
STEPS_NEAR = 6
# Cost of a product with listed derivatives, as a share of an evaluation's. A step takes about 15
# products and spares about five evaluations.
MAX_PRICE_OF_PRODUCT = 0.2
# Classes that an example lists, its label counted, if the weights are not known yet. Measured:
# three to five on CLINC150 at C = 100 to 1e4.
EXPECTED_LISTED = 6
# Examples that tell how long lists are.
LISTED_SAMPLES = 500
# C is small if the first step gives scores of at most this, estimated as if all examples were
# equal. At this bound CLINC150 (C = 0.056) takes two evaluations, and at half of it one.
MAX_SMALL_SCORE = 12.0
# Nanoseconds of a multiplication in a matrix product, and of an evaluation's loss, a score.
NS_MULTIPLICATION, NS_LOSS = 0.03, 2.0
# Nanoseconds of one in a product with listed second derivatives.
NS_LISTED_MULTIPLICATION = 0.1
# Nanoseconds of one in the products and factors of a coupled model, which are small.
NS_SMALL_MULTIPLICATION = 0.12
# Nanoseconds of a multiplication that adds one example to the Hessian.
NS_SPARSE_MULTIPLICATION = 0.2
# Nanoseconds of an evaluation besides: calls, threads, steps of L-BFGS.
NS_CALLS = 3e5


def plan(
    problem: Problem, weights: NDArray | None = None, late: bool = False, growth: int = 1
) -> Plan:
    """Choose the model that a descent begins with, or goes on with if ``late``.

    Whether lists of classes are short enough depends on the weights; without them it is assumed.
    A coupled model is made of ``growth`` times as many examples as at first.
    By operations, not by the clock, so that a seed decides all.
    """
    storage, m = problem.storage, problem.n_classes
    # Where a loss is not convex, the path decides which minimum is found: the plain one.
    if not (storage.explicit and problem.loss.convex):
        return Plan(Kind.NONE)
    d = storage.weights_per_class
    if m * d > MAX_COUPLED_WEIGHTS:
        if has_small_scores(problem):
            return Plan(Kind.UNIFORM, steps=STEPS_WITH_BLOCKS)
        may_be_listed = _may_be_listed(problem)
        if may_be_listed and (weights is None or _lists_are_short(problem, weights)):
            return Plan(Kind.LISTED, steps=1)
        chosen = _plan_blocks(problem, d)
        final = late or (chosen.kind is Kind.NONE and not may_be_listed)
        return chosen._replace(steps=None if final else STEPS_WITH_BLOCKS)
    if has_sparse_curvature(problem):
        sample = min(storage.n, MAX_SAMPLES_EXAMINED)
        blocks = min(SPARSE_BLOCKS_PER_EXAMPLE * storage.n, MAX_SPARSE_BLOCKS)
        cost = NS_SPARSE_MULTIPLICATION * blocks * d**2
    else:
        sample = min(storage.n, growth * COUPLED_SAMPLES)
        cost = NS_SMALL_MULTIPLICATION * sample * count_pairs(m) * count_pairs(d)
    cost += NS_SMALL_MULTIPLICATION * (m * d) ** 3 / 3.0
    evaluation = storage.n * _ns_of_evaluation(problem) + NS_CALLS
    price = cost / evaluation
    # Make the model when the evaluations without it have cost as much as it will.
    steps = max(MIN_STEPS_PER_MODEL, int(np.ceil(price)))
    if late or price <= MAX_MODEL_COST:
        return Plan(Kind.COUPLED, sample, steps)
    return _plan_blocks(problem, d)._replace(steps=steps)


def has_small_scores(problem: Problem) -> bool:
    """Whether C is so small that the uniform model suits, and the model is no large matrix."""
    loss, storage, m = problem.loss, problem.storage, problem.n_classes
    if not (storage.explicit and storage.rows_at_hand):
        return False
    if not (loss.convex and loss.smooth) or loss.sparse_duals:
        return False
    if loss.multilabel or m < 3 or storage.width * m <= MAX_COUPLED_WEIGHTS:
        return False
    if not has_few_moments(problem):
        return False
    at_zero = np.abs(loss.row_gradients(np.zeros((1, m)), np.zeros(1, np.int64))).sum()
    scores = float(problem.costs.cost @ storage.kappa) * float(at_zero) / m
    return scores <= MAX_SMALL_SCORE


def _ns_of_evaluation(problem: Problem) -> float:
    """Nanoseconds of an evaluation of the objective, an example."""
    return problem.n_classes * (2.0 * problem.storage.width * NS_MULTIPLICATION + NS_LOSS)


def _may_be_listed(problem: Problem) -> bool:
    """Whether second derivatives of a few classes an example could make a good model.

    Hinges are left out: their curvature is in other examples after every step. One-vs-all losses
    have some curvature in every class.
    """
    loss = problem.loss
    many = loss.sparse_duals or loss.separable or loss.multilabel
    if many or not problem.storage.rows_at_hand:
        return False
    return _price_of_product(problem, EXPECTED_LISTED) <= MAX_PRICE_OF_PRODUCT


def _price_of_product(problem: Problem, classes: float) -> float:
    """A product with the Hessian of so many classes an example, in evaluations."""
    ns = classes * 2.0 * problem.storage.width * NS_LISTED_MULTIPLICATION
    return ns / _ns_of_evaluation(problem)


def _lists_are_short(problem: Problem, weights: NDArray) -> bool:
    storage, costs = problem.storage, problem.costs
    step = max(1, storage.n // LISTED_SAMPLES)
    known = problem.kept_scores.known_at(weights)
    scores = storage.sample(step) @ weights if known is None else known[::step]
    v = np.abs(problem.loss.row_gradients(scores, costs.y[::step]))
    scale = (costs.cost * storage.kappa)[::step, None]
    classes = np.count_nonzero(v * scale >= MIN_CURVATURE, axis=1)
    return _price_of_product(problem, float(classes.mean())) <= MAX_PRICE_OF_PRODUCT


def _plan_blocks(problem: Problem, d: int) -> Plan:
    storage, m = problem.storage, problem.n_classes
    if d > storage.n // 2:
        return Plan(Kind.NONE)
    evaluation = 4.0 * storage.n * storage.width * m
    per_class = max(SAMPLES_PER_CLASS * m, SAMPLES_PER_FEATURE * d)
    for kind, n_blocks, sample in (
        (Kind.CLASSES, m, per_class),
        (Kind.MEAN, 1, SAMPLES_PER_FEATURE * d),
    ):
        if n_blocks > 1 and (problem.loss.sparse_duals or sample * m > MAX_BLOCK_ENTRIES):
            continue
        sample = min(max(sample, MIN_SAMPLES), storage.n)
        cost = sample * n_blocks * d**2
        if n_blocks * d**2 <= MAX_BLOCK_ENTRIES and cost <= MAX_MODEL_COST * evaluation:
            return Plan(kind, sample)
    return Plan(Kind.NONE)
