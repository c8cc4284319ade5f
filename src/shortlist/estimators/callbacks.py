"""scikit-learn's callbacks, set with ``set_callbacks`` from its version 1.9 on.

Training is the task "fit" with a task "epoch" for each epoch. How many there will be is not known
in advance: the gap decides. With an older scikit-learn there is nothing to support.
"""

from collections.abc import Callable
from typing import Any

from numpy.typing import NDArray

from shortlist.solvers.records.run import Callback, Progress
from shortlist.solvers.strategy.train import Solution

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Adds nothing: this scikit-learn knows no callbacks."""

    def with_callbacks(method: Callable) -> Callable:
        return method


def train_with_callbacks(
    estimator: Any,
    train: Callable[[Callback | None], Solution],
    callback: Callback | None,
    attributes: Callable[[NDArray], dict[str, Any]],
    **data: Any,
) -> Solution:
    """``train(callback)``, with the estimator's scikit-learn callbacks told of every epoch too.

    ``attributes(weights)`` are the fitted attributes of a model with these weights, made only for
    callbacks that ask for it; ``data`` are X, y and metadata as the user gave them.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        return train(callback)
    return _train_in_context(estimator, train, callback, attributes, data)


@with_callbacks
def _train_in_context(
    estimator: Any,
    train: Callable[[Callback | None], Solution],
    callback: Callback | None,
    attributes: Callable[[NDArray], dict[str, Any]],
    data: dict[str, Any],
) -> Solution:
    whole = estimator._init_callback_context(max_subtasks=None)
    whole.call_on_fit_task_begin(estimator=estimator, **data)
    epochs = _EpochTasks(whole, estimator, attributes, data)

    def told(progress: Progress) -> object:
        stop = epochs.end(progress)
        answer = callback(progress) if callback is not None else None
        return True if stop else answer

    epochs.begin()
    solution = train(told)
    epochs.close(solution.weights)
    whole.call_on_fit_task_end(
        estimator=estimator,
        reconstruction_attributes=lambda: attributes(solution.weights),
        **data,
    )
    return solution


class _EpochTasks:
    """The tasks below "fit". The solver tells of an epoch when it is over; the next begins then."""

    def __init__(
        self,
        whole: Any,
        estimator: Any,
        attributes: Callable[[NDArray], dict[str, Any]],
        data: dict[str, Any],
    ) -> None:
        self.whole, self.estimator = whole, estimator
        self.attributes, self.data = attributes, data
        self.task: Any = None

    def begin(self) -> None:
        self.task = self.whole.subcontext(task_name="epoch")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end(self, progress: Progress) -> bool:
        if self.task is None:
            self.begin()
        stop = self._end(progress.weights)
        if not stop and not _is_last(progress):
            self.begin()
        return stop

    def close(self, weights: NDArray) -> None:
        """End the epoch that training broke off in, or that it turned out not to need."""
        if self.task is not None:
            self._end(weights)

    def _end(self, weights: NDArray) -> bool:
        task, self.task = self.task, None
        stop: bool = task.call_on_fit_task_end(
            estimator=self.estimator,
            reconstruction_attributes=lambda: self.attributes(weights),
            **self.data,
        )
        return stop


def _is_last(progress: Progress) -> bool:
    last = progress.last
    converged = last is not None and last.within(progress.tol)
    return converged or progress.epoch >= progress.max_epochs
