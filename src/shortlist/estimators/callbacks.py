"""scikit-learn's callbacks, set with ``set_callbacks`` from its version 1.9 on.

Training is the task "fit" with a task "epoch" for each epoch. How many there will be is not known
in advance: the gap decides. With an older scikit-learn there is nothing to support.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from numpy.typing import NDArray

from shortlist.solvers.records.run import Callback, Progress

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Adds nothing: this scikit-learn knows no callbacks."""

    def with_callbacks(method: Callable) -> Callable:
        return method


@contextmanager
def told_to_scikit_learn(
    estimator: Any,
    callback: Callback | None,
    attributes: Callable[[NDArray], dict[str, Any]],
    **data: Any,
) -> Iterator[Callback | None]:
    """A callback that tells the estimator's scikit-learn callbacks of an epoch, then ``callback``.

    The estimator must be fitted when the block ends. ``attributes(weights)`` are the fitted
    attributes of a model with these weights, made only for callbacks that ask for it; ``data`` are
    X, y and metadata as the user gave them. The estimator's ``fit`` has to be decorated with
    ``with_callbacks``, which releases what the callbacks hold.
    """
    if not getattr(estimator, "_skl_callbacks", None):
        yield callback
        return
    whole = estimator._init_callback_context(max_subtasks=None)
    whole.call_on_fit_task_begin(estimator=estimator, **data)
    epochs = _EpochTasks(whole, estimator, data)

    def told(progress: Progress) -> object:
        stop = epochs.end(progress, lambda: attributes(progress.weights))
        answer = callback(progress) if callback is not None else None
        return True if stop else answer

    epochs.begin()
    yield told
    epochs.close(lambda: fitted_attributes(estimator))
    whole.call_on_fit_task_end(
        estimator=estimator,
        reconstruction_attributes=lambda: fitted_attributes(estimator),
        **data,
    )


def fitted_attributes(estimator: Any) -> dict[str, Any]:
    """What fitting sets: attributes whose names end with an underscore, private ones left out."""
    return {
        name: value
        for name, value in vars(estimator).items()
        if name.endswith("_") and not name.startswith("_")
    }


class _EpochTasks:
    """The tasks below "fit". The solver tells of an epoch when it is over; the next begins then."""

    def __init__(self, whole: Any, estimator: Any, data: dict[str, Any]) -> None:
        self.whole, self.estimator, self.data = whole, estimator, data
        self.task: Any = None

    def begin(self) -> None:
        self.task = self.whole.subcontext(task_name="epoch")
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def end(self, progress: Progress, attributes: Callable[[], dict[str, Any]]) -> bool:
        if self.task is None:
            self.begin()
        stop = self._end(attributes)
        if not stop and not _is_last(progress):
            self.begin()
        return stop

    def close(self, attributes: Callable[[], dict[str, Any]]) -> None:
        """End the open epoch: training broke off in it, or did not need it."""
        if self.task is not None:
            self._end(attributes)

    def _end(self, attributes: Callable[[], dict[str, Any]]) -> bool:
        task, self.task = self.task, None
        stop: bool = task.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes=attributes, **self.data
        )
        return stop


def _is_last(progress: Progress) -> bool:
    last = progress.last
    converged = last is not None and last.within(progress.tol)
    return converged or progress.epoch >= progress.max_epochs
