"""Examples with explicit features, dense or CSR: all that is the same for both."""

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from shortlist._blas import blas_for
from shortlist._memory import available_bytes
from shortlist.losses.base import Loss
from shortlist.losses.domains import feasible
from shortlist.solvers.duals import (
    Duals,
    as_array,
    readable,
    rows_at_once,
    store,
    writable,
)
from shortlist.solvers.kernels.curvature import list_curvatures
from shortlist.solvers.kernels.gradient import certify_scores
from shortlist.solvers.kernels.rows import add_rows, add_to_classes, score_rows
from shortlist.solvers.kernels.visit import visit_in_turn
from shortlist.solvers.memory import training_bytes
from shortlist.solvers.storage.base import (
    NO_SHARES,
    Costs,
    State,
    Sums,
    Support,
    chunks,
    error_of_scores,
    shares_of,
)
from shortlist.solvers.storage.curvature import Curvature, CurvatureRequest, Listed
from shortlist.solvers.storage.explicit import ExplicitWeights
from shortlist.solvers.storage.feature_support import FeatureSupport
from shortlist.solvers.storage.local import LocalDuals
from shortlist.solvers.storage.support import ONE_ROUND, rows_on_support, support_pass
from shortlist.solvers.threads import Crew

# Multiplications of one call of a kernel, some tenths of a second. Kernels cannot be interrupted:
# Ctrl-C waits for the end of a call.
MULTIPLICATIONS_PER_CALL = 1e10
# Scores computed at a time (4 MB in double). The loss kernels take scores only, so they compile
# once for all storages.
SCORES_AT_ONCE = 1 << 19
# Bytes of an entry in double and of its column's number, which only sparse rows have.
BYTES_OF_ENTRY_IN_DOUBLE = 12
# Bytes of the examples, or of their scores, that are widened to double at a time.
BYTES_IN_CACHE = 1 << 21
# Classes of an example whose second derivatives are listed: at most the first number. Memory is
# reserved for the second number a mean example, and doubled when it is full.
MAX_LISTED_CLASSES, LISTED_CLASSES_AT_FIRST = 32, 4


class FeatureStorage(ExplicitWeights, LocalDuals):
    """Scores come from W, shape (d + 1, m)."""

    rows_at_hand = True
    support_price: float
    # Whether the examples may be copied in double: not under a limit on memory.
    may_be_copied = True

    def __init__(self, x: Any, bias: float = 0.0, kappa: NDArray | None = None) -> None:
        self.x = x
        self.n, self.d = x.shape
        self.dtype = x.dtype
        self.bias = float(bias)
        self.kappa = self._squared_norms() + self.bias**2 if kappa is None else kappa

    def _squared_norms(self) -> NDArray:
        """|x_i|^2 without the constant feature, in double."""
        raise NotImplementedError

    def view(self) -> Any:
        """The examples as kernels see them."""
        raise NotImplementedError

    def part_in_double(self, part: slice) -> "FeatureStorage":
        """Some of the examples, in double."""
        return type(self)(self.x[part].astype(np.float64), self.bias, kappa=self.kappa[part])

    def in_double(self, m: int, sparse_duals: bool) -> "FeatureStorage | None":
        copy = self.x.size * BYTES_OF_ENTRY_IN_DOUBLE
        need = copy + training_bytes(self.n, self.d, m, 8, sparse_duals)
        free = available_bytes()
        if not self.may_be_copied or (free is not None and need > free):
            return None
        return self.part_in_double(slice(0, self.n))

    def epoch(
        self, loss: Loss, order: NDArray, state: State, costs: Costs, every: int, crew: Crew
    ) -> Iterator[float]:
        """One SDCA visit to every example of ``order``; yields estimates of parts of the gap."""
        per_row = 2.0 * self.width * state.weights.shape[1]
        most = max(1, int(MULTIPLICATIONS_PER_CALL / per_row / 8))
        size = rows_at_once(state.duals, most)
        view = self.view()
        for begin in range(0, order.size, size):
            part = order[begin : begin + size]
            gap, rounding, _ = visit_in_turn(
                loss.spec,
                view,
                part,
                state.weights,
                costs.y,
                costs.cost,
                self.kappa,
                writable(state.duals, part.size),
                state.starts,
                every,
            )
            state.rounding += rounding
            yield gap

    def open_support(self, rows: NDArray, state: State, costs: Costs) -> Support:
        by_class = np.ascontiguousarray(state.weights.T)
        given = (costs.y, costs.cost, self.kappa, state.duals)
        return FeatureSupport(self.view(), rows, by_class, *given, width=self.width)

    def close_support(self, support: Support, state: State, costs: Costs) -> None:
        support.settle()
        kept, together = support.by_class.T, not state.weights.flags.c_contiguous
        state.weights = kept if together else np.ascontiguousarray(kept)
        state.rounding += support.rounding

    def support_rows(self, state: State, costs: Costs) -> NDArray:
        """The examples that count and have duals that are not zero."""
        return rows_on_support(state.duals, costs.cost)

    def support_pass(
        self, loss: Loss, rows: NDArray, state: State, costs: Costs
    ) -> tuple[float, NDArray]:
        """Visit these rows once on their support; returns their gap and those that changed."""
        return support_pass(self, loss, rows, state, costs, ONE_ROUND)

    def certify(
        self,
        loss: Loss,
        weights: NDArray,
        duals: Duals,
        costs: Costs,
        crew: Crew,
        double: bool,
        shares: NDArray = NO_SHARES,
    ) -> Sums:
        """What a certificate needs to know of the examples; ``double`` asks for float64."""
        if double and self.dtype != np.float64:
            return self._certify_in_double(loss, weights, duals, costs, crew, shares)
        w = np.ascontiguousarray(weights, self.dtype)
        blur = error_of_scores(self.width, self.largest_column(w), self.dtype)

        def part(begin: int, end: int) -> NDArray:
            sums = np.zeros(5)
            for rows, scores in self._scores(begin, end, w):
                certify_scores(
                    loss.spec,
                    scores,
                    rows.start,
                    costs.y,
                    costs.cost,
                    self.kappa,
                    readable(duals),
                    loss.smooth,
                    blur,
                    sums,
                    shares,
                )
            return sums

        return Sums(*np.sum(self._in_parts(part, w.shape[1], crew), axis=0))

    def _certify_in_double(
        self,
        loss: Loss,
        weights: NDArray,
        duals: Duals,
        costs: Costs,
        crew: Crew,
        shares: NDArray,
    ) -> Sums:
        """Of duals that lie in their domain in double too."""
        w = np.ascontiguousarray(weights, np.float64)

        def part(begin: int, end: int) -> NDArray:
            sums = np.zeros(len(Sums._fields))
            for rows, double, own in self._parts_in_double(begin, end, costs, w.shape[1]):
                v = as_array(duals[rows]).astype(np.float64)
                inside = feasible(loss.spec, v, own.y)
                found = double.certify(loss, w, inside, own, Crew(), False, shares[rows])
                moves = np.einsum("ij,ij->i", inside - v, inside - v)
                sums += found._replace(moves=float(own.cost**2 * double.kappa @ moves))
            return sums

        return Sums(*np.sum(self._in_parts(part, w.shape[1], crew), axis=0))

    def rebuild(self, duals: Duals, cost: NDArray) -> NDArray:
        """W(v), summed in double: where C is large, large terms cancel."""
        total = np.zeros((self.d + 1, duals.shape[1]))
        for part in chunks(self.n, int(max(self.width, duals.shape[1])) * 8):
            shares = as_array(duals[part]) * -cost[part, None]
            total[:-1] += self.x[part].T.astype(np.float64) @ shares
            total[-1] += self.bias * shares.sum(axis=0)
        return total

    def loss_gradient(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, double: bool
    ) -> tuple[float, NDArray]:
        """sum_i C_i L(W'x_i) and its gradient in W; ``double`` asks for float64."""
        if double and self.dtype != np.float64:
            return self._loss_gradient_in_double(loss, weights, costs, crew)
        w = np.ascontiguousarray(weights, self.dtype)

        def part(begin: int, end: int) -> tuple[float, NDArray]:
            return self._sum_losses_and_gradient(loss, w, costs, begin, end)

        return added(self._in_parts(part, 2 * w.shape[1], crew))

    def _sum_losses_and_gradient(
        self, loss: Loss, w: NDArray, costs: Costs, begin: int, end: int
    ) -> tuple[float, NDArray]:
        """The sum of C_i L over a range of examples, and its gradient in W."""
        value, gradient = 0.0, np.zeros_like(w)
        for rows, scores in self._scores(begin, end, w):
            g = np.empty_like(scores)
            cost = costs.cost[rows]
            value += float(cost @ loss.write_gradients(scores, costs.y[rows], g))
            g *= cost[:, None].astype(self.dtype)
            add_rows(self.view(), blas_for(self.dtype), rows.start, rows.stop, g, gradient)
        return value, gradient

    def all_scores(self, weights: NDArray, crew: Crew) -> NDArray:
        """W'x_i of all examples, shape (n, m)."""
        w = np.ascontiguousarray(weights, self.dtype)
        found = np.empty((self.n, w.shape[1]), self.dtype)

        def part(begin: int, end: int) -> None:
            for rows, scores in self._scores(begin, end, w):
                found[rows] = scores

        self._in_parts(part, w.shape[1], crew)
        return found

    def sampled_scores(self, weights: NDArray, step: int) -> NDArray:
        """W'x_i of every ``step``-th example, in double."""
        w = weights.astype(np.float64)
        return np.asarray(self.x[::step].astype(np.float64) @ w[:-1]) + self.bias * w[-1]

    def loss_gradient_of_classes(
        self, loss: Loss, scores: NDArray, w: NDArray, classes: NDArray, costs: Costs, crew: Crew
    ) -> tuple[float, NDArray]:
        """sum_i C_i L and its gradient in the weights ``w`` of some classes, one column for each.

        Scores of the other classes are given; those of ``classes`` are written over.
        """

        def part(begin: int, end: int) -> tuple[float, NDArray]:
            value, gradient = 0.0, np.zeros_like(w)
            size = max(1, SCORES_AT_ONCE // scores.shape[1])
            for rows, own in self._scores(begin, end, w, size):
                scores[rows, classes] = own
                g = np.empty_like(scores[rows])
                cost = costs.cost[rows]
                value += float(cost @ loss.write_gradients(scores[rows], costs.y[rows], g))
                few = np.ascontiguousarray(g[:, classes])
                few *= cost[:, None].astype(self.dtype)
                add_rows(self.view(), blas_for(self.dtype), rows.start, rows.stop, few, gradient)
            return value, gradient

        return added(self._in_parts(part, 2 * w.shape[1], crew))

    def _scores(
        self, begin: int, end: int, w: NDArray, size: int | None = None
    ) -> Iterator[tuple[slice, NDArray]]:
        """The scores of a range of examples, some of them at a time."""
        view, blas, m = self.view(), blas_for(self.dtype), w.shape[1]
        size = size or max(1, SCORES_AT_ONCE // m)
        for first in range(begin, end, size):
            rows = slice(first, min(first + size, end))
            scores = np.empty((rows.stop - rows.start, m), self.dtype)
            score_rows(view, blas, rows.start, rows.stop, w, scores)
            yield rows, scores

    def _loss_gradient_in_double(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew
    ) -> tuple[float, NDArray]:
        w = np.ascontiguousarray(weights, np.float64)

        def part(begin: int, end: int) -> tuple[float, NDArray]:
            parts = self._parts_in_double(begin, end, costs, w.shape[1])
            return added(
                double._sum_losses_and_gradient(loss, w, own, 0, double.n)
                for _, double, own in parts
            )

        return added(self._in_parts(part, 2 * w.shape[1], crew))

    def _parts_in_double(
        self, begin: int, end: int, costs: Costs, m: int
    ) -> Iterator[tuple[slice, "FeatureStorage", Costs]]:
        """A range of examples, a part that stays in the cache at a time."""
        size = max(1, int(BYTES_IN_CACHE / (8 * max(self.width, m))))
        for first in range(begin, end, size):
            rows = slice(first, min(first + size, end))
            own = Costs(np.ascontiguousarray(costs.y[rows]), np.ascontiguousarray(costs.cost[rows]))
            yield rows, self.part_in_double(rows), own

    def fill_duals(
        self, loss: Loss, weights: NDArray, costs: Costs, duals: Duals, crew: Crew
    ) -> None:
        """Set v_i = grad L at the scores of ``weights``."""
        w = np.ascontiguousarray(weights, self.dtype)
        for part in chunks(self.n, w.shape[1] * self.dtype.itemsize):
            g = np.empty((part.stop - part.start, w.shape[1]), self.dtype)

            def share(begin: int, end: int, start: int = part.start, g: NDArray = g) -> None:
                for rows, scores in self._scores(begin, end, w):
                    out = g[rows.start - start : rows.stop - start]
                    loss.write_gradients(scores, costs.y[rows], out)

            crew.run(share, shares_of(part.start, part.stop, crew.size))
            store(duals, part, costs.y[part], g)

    def curvature(
        self, loss: Loss, weights: NDArray, costs: Costs, crew: Crew, asked: CurvatureRequest
    ) -> Curvature:
        """Second derivatives at ``weights`` that matter, and a mean of the others."""
        w = np.ascontiguousarray(weights, self.dtype)

        def part(begin: int, end: int) -> Listed:
            return self._list_curvatures(loss, w, costs, begin, end, asked)

        listed = crew.run(part, shares_of(0, self.n, crew.size))
        return Curvature(self.view(), listed, crew, asked.moments)

    def _list_curvatures(
        self, loss: Loss, w: NDArray, costs: Costs, begin: int, end: int, asked: CurvatureRequest
    ) -> Listed:
        most = min(MAX_LISTED_CLASSES, w.shape[1])
        room = LISTED_CLASSES_AT_FIRST * (end - begin) + most
        classes, blocks = np.empty(room, np.int32), np.empty(most * room, self.dtype)
        counts, used = np.empty(end - begin, np.int32), np.zeros(2, np.int64)
        rest = np.zeros(w.shape[1])
        known = [] if asked.scores is None else [(slice(begin, end), asked.scores[begin:end])]
        for rows, scores in known or self._scores(begin, end, w):
            own = slice(rows.start - begin, rows.stop - begin)
            done = 0
            while True:
                done = list_curvatures(
                    loss.spec,
                    scores,
                    costs.y[rows],
                    costs.cost[rows],
                    self.kappa[rows],
                    asked.least,
                    max(loss.fewest_classes, loss.k + 1),
                    most,
                    asked.step,
                    done,
                    used,
                    counts[own],
                    classes,
                    blocks,
                    rest,
                )
                if done == len(scores):
                    break
                classes.resize(2 * classes.size, refcheck=False)
                blocks.resize(2 * blocks.size, refcheck=False)
        return Listed(begin, counts, classes[: used[0]], blocks[: used[1]], rest)

    def class_sums(self, costs: Costs, m: int) -> NDArray:
        """sum_i C_i x_i e_y', shape (d + 1, m), in double; one label an example."""
        total = np.zeros((m, self.d + 1))
        add_to_classes(self.view(), costs.y, costs.cost, total)
        return np.ascontiguousarray(total.T)

    def sample(self, step: int, first: int = 0) -> NDArray:
        """Every ``step``-th example as a dense row in double, the constant feature last."""
        given = self._dense(self.x[first::step])
        return np.column_stack([given, np.full(len(given), self.bias)]).astype(np.float64)

    @staticmethod
    def _dense(x: Any) -> NDArray:
        return x

    def _in_parts(self, work: Any, m: int, crew: Crew) -> list[Any]:
        """``work(begin, end)`` over all examples: threads share pieces that Ctrl-C can part."""
        rows = max(crew.size, int(MULTIPLICATIONS_PER_CALL * crew.size / (self.width * m + 1)))
        return [
            found
            for begin in range(0, self.n, rows)
            for found in crew.run(work, shares_of(begin, min(begin + rows, self.n), crew.size))
        ]


def added(found: Iterable[tuple[float, NDArray]]) -> tuple[float, NDArray]:
    """The sums of values and of gradients; the first gradient is written to."""
    parts = iter(found)
    value, gradient = next(parts)
    for more, other in parts:
        value += more
        gradient += other
    return value, gradient
