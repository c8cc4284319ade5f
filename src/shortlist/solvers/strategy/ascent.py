"""Stochastic dual coordinate ascent: epochs of visits, exact gaps when they are due."""

import math

import numpy as np

from shortlist.solvers.problem import Problem
from shortlist.solvers.records.checkpoint import ASCENT
from shortlist.solvers.records.result import Evaluation, Status
from shortlist.solvers.records.run import Run
from shortlist.solvers.storage.base import active_examples
from shortlist.solvers.storage.support import polish_support
from shortlist.solvers.strategy.changed_data import holders_of_gap
from shortlist.solvers.strategy.double import is_too_coarse
from shortlist.solvers.strategy.multiples import try_multiple

# Of the gap estimated during an epoch, the share that is expected to be left at its end.
FIRST_SHARE_LEFT = 0.3
# Bounds on that share when it is measured: the gap found over the estimate.
MIN_SHARE_LEFT, MAX_SHARE_LEFT = 0.01, 10.0
# Look at the gap early if the gap expected is at most this share of the gap asked for.
MAX_ESTIMATE_SHARE_TO_LOOK = 0.8
# Such a look comes after at least this share of the epochs that were spent up to the last one.
MIN_SPENT_SHARE_BETWEEN_LOOKS = 0.1
# An epoch measures the share of the gap of one example in ``every``. That is MAX_MEASURED_EVERY at
# most, and so small that MIN_MEASURED_EXAMPLES are measured, or all if there are fewer. A few hard
# examples can hold most of the gap, so the sample must not be small.
MIN_MEASURED_EXAMPLES, MAX_MEASURED_EVERY = 1000, 8
# Skip the first looks at the gap while the gap expected is more than this many times the gap asked
# for (tol P(0) until one is known). A look takes a third of an epoch on CLINC150. At most so many
# are skipped, with dense and with sparse duals. Epochs of fewer multiplications take milliseconds:
# look at once.
MIN_GAP_RATIO_TO_SKIP, MAX_SKIPPED, MAX_SKIPPED_SPARSE = 2.0, 2, 1
MIN_MULTIPLICATIONS_TO_SKIP = 1e8
# More epochs than so many times the patience are too many, whatever the rate promises.
MAX_EPOCHS_OVER_PATIENCE = 3.0
# Hand hinges over to a descent if SDCA would need more than this share of the epochs left. The
# descent needs the rest. Of 117 fits on tables of 60 and 120 noisy examples, 12
# end at max_epochs with a share of 1, 3 with 0.5 and one with 0.35.
SHARE_OF_EPOCHS_LEFT = 0.35
# The rate of hinges is also measured without this share of the epochs spent, the first ones.
SPENT_SHARE_BEFORE_RATE = 0.25
# No descent below this gap, as a share of the primal: W = 0 is nearly optimal, and a line search
# cannot see such differences.
MIN_GAP_FOR_DESCENT = 1e-8
# Below so many units in the last place of the primal, the gap is rounding.
RESOLUTION_ULPS = 8
# Visits on the support end when its gap is this share of the gap that is asked for.
SUPPORT_GAP_SHARE = 0.3
# The later in a fit, the fewer duals enter or leave the support, and the more it pays to visit it
# between two epochs: for the time of as many epochs as were spent so far, but at most so many. The
# hinge on digits at C = 1 and 10 takes 18 and 33 epochs instead of 30 and 80, with a joint step
# after every round.
MAX_EPOCHS_ON_SUPPORT = 15.0
# If the gap is nearly small enough, visit only part of the examples next: enough to reach this
# share of the gap asked for, and at most this part. Softmax on 60,000 x 768 embeddings of 200
# classes takes 2.4 epochs instead of 3 at C = 0.1 and 4.4 instead of 5 at C = 10.
# Do this once a fit. A second short epoch would look like a stall.
GAP_SHARE_OF_PART, MAX_PART = 0.9, 0.5
# Passes over new examples before all are visited. More gain little: the others have to follow.
FRESH_PASSES = 1
# Examples that hold the gap are visited again and again while an epoch of such visits leaves at
# most this share of it. A look counts as so many epochs, by its time on CLINC150. Epochs over all
# examples leave 0.4 to 0.7 there (C = 10).
MAX_GAP_RATIO_PER_EPOCH, EPOCHS_OF_A_LOOK = 0.6, 0.33
# Training stops after so many looks in a row without progress. The bound on rounding is part of the
# gap and hides the last digits that are still gained.
MAX_IDLE_LOOKS = 4
# They are without progress if no gap is below this share of the one before them.
MIN_GAP_RATIO_IDLE = 0.99
# A stall is at most this relative gap, in units in the last place: rounding explains no more.
MAX_GAP_ULPS_TO_STALL = 1e4


def ascend(run: Run, random: np.random.Generator, patience: float = np.inf) -> Status:
    """Visit all examples, epoch by epoch, until the gap is small enough.

    Returns a status; SLOW if the epochs predicted from the rate so far exceed ``patience`` or
    those that are left, or if too many have been spent; or COARSE.
    """
    problem = run.problem
    active = active_examples(problem.costs)
    every = min(max(active.size // MIN_MEASURED_EXAMPLES, 1), MAX_MEASURED_EVERY)
    on_support = _visits_support(problem)
    looks = _Looks(run, patience)
    while run.epochs < run.max_epochs:
        order = random.permutation(active)[: math.ceil(looks.part * active.size)]
        run.state.enough = SUPPORT_GAP_SHARE * run.wanted
        estimate = _epoch(run, order, every, looks.part)
        if on_support:
            # A warm start was looked at before and has most of its support: no limit by epochs.
            late = np.inf if looks.first else run.epochs - looks.first_epoch
            _polish(run, random, min(late, MAX_EPOCHS_ON_SUPPORT), looks.leeway)
        status = looks.judge(looks.look(), estimate) if looks.due(estimate) else None
        if status not in (Status.SLOW, Status.STALLED, Status.COARSE):
            run.notify()
        if status:
            return status
    if not run.history or run.history[-1].epoch < run.epochs:
        run.certify()
    try_multiple(run, at_end=True)
    return Status.CONVERGED if run.solved(run.history[-1]) else Status.MAX_EPOCHS


class _Looks:
    """When to compute the gap, and what it says about the epochs to come."""

    def __init__(self, run: Run, patience: float) -> None:
        problem = run.problem
        self.run, self.patience = run, patience
        self.first_epoch, self.first = run.stage.epochs, run.stage.looks
        self.slows_down = not problem.loss.sparse_duals
        self.eps = float(np.finfo(problem.storage.dtype).eps)
        # A tolerance below rounding asks for all the digits there are: then only a stall ends it.
        self.resolved = run.tol >= RESOLUTION_ULPS * self.eps
        # The part of the examples that the next epoch visits.
        self.part, self.part_tried = 1.0, False
        self.next, self.earliest = run.epochs + 1, run.epochs
        self.share_left, self.last_estimate = FIRST_SHARE_LEFT, 0.0
        work = problem.storage.n * problem.storage.width * problem.n_classes
        # The user asked for an accuracy at every look: skip none.
        few = run.accuracy is None and work >= MIN_MULTIPLICATIONS_TO_SKIP
        most = MAX_SKIPPED if self.slows_down else MAX_SKIPPED_SPARSE
        self.may_skip = most if few else 0
        # How many times the gap asked for the weights may leave: a multiple of them leaves less.
        self.leeway = 1.0
        self.skipped: list[Evaluation] = []

    @property
    def wanted(self) -> float:
        """The largest gap of the state that is small enough, as far as is known."""
        return self.leeway * self.run.wanted

    def look(self) -> Evaluation:
        """Compute the gap, also that of a multiple of the weights if it may be small enough."""
        self.run.certify()
        self.leeway = try_multiple(self.run)
        return self.run.history[-1]

    def due(self, estimate: float) -> bool:
        """Whether to look after an epoch with this estimate of the gap."""
        run = self.run
        small = self.share_left * estimate <= MAX_ESTIMATE_SHARE_TO_LOOK * self.wanted
        promising = small and run.epochs >= self.earliest
        due = run.epochs >= min(self.next, run.max_epochs)
        if due and not run.history and len(self.skipped) < self.may_skip:
            expected = _expected_look(run, estimate, self.last_estimate)
            if expected.gap > MIN_GAP_RATIO_TO_SKIP * run.wanted and run.epochs < run.max_epochs:
                self.skipped.append(expected)
                self.next, due = run.epochs + 1.0, False
        self.last_estimate = estimate
        return bool(promising or due)

    def judge(self, found: Evaluation, estimate: float) -> Status | None:
        """A status if training ends here, None to go on, SLOW or COARSE for another way."""
        run = self.run
        if self.resolved and run.solved(found):
            return Status.CONVERGED
        if is_too_coarse(run):
            return Status.COARSE
        looks = run.history[self.first :]
        if _stalled(looks, self.eps):
            return Status.CONVERGED if run.solved(found) else Status.STALLED
        spent = run.epochs - self.first_epoch
        self.next = run.epochs + max(1.0, spent)
        self.earliest = run.epochs + MIN_SPENT_SHARE_BETWEEN_LOOKS * spent
        if self.part < 1.0:  # It says little about the rate. Visit all examples next.
            self.part, self.next = 1.0, run.epochs + 1.0
            return None
        if self._too_slow(looks, spent) and found.gap > MIN_GAP_FOR_DESCENT * found.primal:
            return Status.SLOW
        if estimate > 0:
            self.share_left = min(max(found.gap / estimate, MIN_SHARE_LEFT), MAX_SHARE_LEFT)
        if self.resolved and not self.part_tried:
            self.part = _part_to_visit(found.gap, self.wanted)
        if self.part < 1.0:
            self.part_tried, self.next = True, run.epochs + self.part
        return None

    def _too_slow(self, looks: list[Evaluation], spent: float) -> bool:
        run = self.run
        if run.epochs >= run.max_epochs:  # there is no descent to hand over to
            return False
        share = 1.0 if self.slows_down else SHARE_OF_EPOCHS_LEFT
        rest = share * (run.max_epochs - run.epochs)
        left = min(self.patience, rest) if self.patience < np.inf else np.inf
        so_far = [*self.skipped, *looks]
        to_go = _epochs_to_go(so_far, self.wanted, self.first_epoch, self.slows_down)
        return spent > MAX_EPOCHS_OVER_PATIENCE * self.patience or to_go > left


def _expected_look(run: Run, estimate: float, before: float) -> Evaluation:
    """What a look would find, by the estimates of this epoch and of the one before, if any.

    An estimate is about the gap in the middle of its epoch.
    """
    share = FIRST_SHARE_LEFT if before == 0.0 else math.sqrt(min(estimate / before, 1.0))
    return Evaluation(run.epochs, run.seconds, share * estimate, 0.0, run.at_zero)


def _part_to_visit(gap: float, wanted: float) -> float:
    """The part of the examples whose visits bring the gap to the one asked for; 1 if most of them.

    A visit takes its example's gap away, and the others' shrink too.
    """
    part = 1.0 - GAP_SHARE_OF_PART * wanted / gap
    return float(part) if 0.0 < part <= MAX_PART else 1.0


def visit_fresh(run: Run, random: np.random.Generator) -> bool:
    """Visit the examples that are new to the duals, and the support, before all others.

    After a small change this is most of what there is to do, or all of it. Returns whether the gap
    is small enough.
    """
    problem, new = run.problem, run.state.fresh
    assert new is not None
    run.state.fresh = None
    active = active_examples(problem.costs)
    fresh = np.intersect1d(active, new)
    for _ in range(FRESH_PASSES if fresh.size else 0):
        _epoch(run, random.permutation(fresh), 1, fresh.size / active.size)
    if _visits_support(problem):
        _polish(run, random, MAX_EPOCHS_ON_SUPPORT)
    solved = _visit_holders(run, random)
    run.begin(ASCENT)  # what this has gained says nothing of the epochs that follow
    return solved


def _visit_holders(run: Run, random: np.random.Generator) -> bool:
    """Visit the examples that hold the gap, and the support, as long as that pays.

    A look tells each example's share of the gap. After a small change few examples hold nearly all
    of it: those that changed, and others near them. Returns whether the gap is small enough.
    """
    problem, storage = run.problem, run.problem.storage
    active = active_examples(problem.costs).size
    shares = np.zeros(storage.n if storage.rows_at_hand else 0)
    most = np.array([np.inf, np.inf])
    while True:
        run.certify(shares)
        leeway = try_multiple(run)
        found = run.history[-1]
        if run.solved(found):
            return True
        rows = holders_of_gap(shares, run.wanted)
        # The second is that of the best weights and the best bound met so far.
        gaps = np.array([shares.sum(), found.gap])
        pays = rows.size and (gaps <= most).any()
        if not pays or run.epochs >= run.max_epochs:
            return False
        run.notify()
        part = rows.size / active
        most = MAX_GAP_RATIO_PER_EPOCH ** (part + EPOCHS_OF_A_LOOK) * gaps
        _epoch(run, random.permutation(rows), 1, part)
        if _visits_support(problem):
            _polish(run, random, MAX_EPOCHS_ON_SUPPORT, leeway)


def _visits_support(problem: Problem) -> bool:
    """Whether there are visits on the support between epochs."""
    return problem.loss.sparse_duals and bool(np.isfinite(problem.storage.support_price))


def _polish(run: Run, random: np.random.Generator, epochs: float, leeway: float = 1.0) -> None:
    """Visit the support for the time of ``epochs`` epochs, or AFTER_EPOCH.epochs if longer."""
    problem, state = run.problem, run.state
    state.enough = SUPPORT_GAP_SHARE * leeway * run.wanted
    given = (problem.storage, problem.loss, state, problem.costs, random, problem.crew)
    run.epochs += polish_support(*given, state.enough, epochs)


def _epoch(run: Run, order: np.ndarray, every: int, part: float) -> float:
    """Visit the examples in this order, part of all; returns the estimate of their gap."""
    problem = run.problem
    gaps = problem.storage.epoch(problem.loss, order, run.state, problem.costs, every, problem.crew)
    estimate = 0.0
    for gap in gaps:
        estimate += gap
        run.offer()
    run.epochs += part
    return estimate


def _epochs_to_go(
    looks: list[Evaluation], wanted: float, first_epoch: float, slows_down: bool
) -> float:
    """Epochs to the gap wanted if it goes on as it did. The first looks tell too little.

    Dense duals: the gap as a power of the epochs spent, by the last two looks. Where SDCA is slow,
    it also ``slows_down``.

    Sparse duals: exponentially, as between the last two looks or since a quarter of the epochs
    spent, whichever is faster. The primal of hinges rises and falls, and from a warm start it may
    take long to fall below the first one: so the gap may stand still between two looks.
    """
    if len(looks) < 3:
        return 0.0
    before, now = looks[-2:]
    if now.gap <= 0 or now.epoch <= before.epoch:
        return 0.0
    missing = np.log(max(now.gap / max(wanted, np.finfo(float).tiny), 1.0))
    spent = now.epoch - first_epoch
    if slows_down:
        if before.gap <= now.gap:
            return np.inf
        power = np.log(before.gap / now.gap) / np.log(spent / (before.epoch - first_epoch))
        return float(spent * (np.exp(min(missing / power, 50.0)) - 1.0))
    early = [
        look for look in looks[:-2] if look.epoch - first_epoch <= SPENT_SHARE_BEFORE_RATE * spent
    ]
    rates = [
        np.log(look.gap / now.gap) / (now.epoch - look.epoch) / max(missing, np.finfo(float).tiny)
        for look in (before, early[-1] if early else looks[0])
    ]
    return 1.0 / max(rates) if max(rates) > 0.0 else np.inf


def _stalled(looks: list[Evaluation], eps: float) -> bool:
    """No progress any more, at a gap that rounding explains."""
    if len(looks) <= MAX_IDLE_LOOKS or looks[-1].relative_gap > MAX_GAP_ULPS_TO_STALL * eps:
        return False
    smallest = min(look.gap for look in looks[-MAX_IDLE_LOOKS:])
    return smallest >= MIN_GAP_RATIO_IDLE * looks[-MAX_IDLE_LOOKS - 1].gap
