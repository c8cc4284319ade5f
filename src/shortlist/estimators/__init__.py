"""The scikit-learn estimators, each loaded when it is asked for."""

from typing import TYPE_CHECKING

from shortlist._lazy import names_of

if TYPE_CHECKING:
    from shortlist.estimators.cv import TopKClassifierCV
    from shortlist.estimators.kernel import KernelTopKClassifier
    from shortlist.estimators.linear import TopKClassifier
    from shortlist.estimators.shortlists import ShortlistClassifier

__all__ = ["KernelTopKClassifier", "ShortlistClassifier", "TopKClassifier", "TopKClassifierCV"]
__getattr__, __dir__, _ = names_of(
    __name__,
    {
        "KernelTopKClassifier": "kernel",
        "ShortlistClassifier": "shortlists",
        "TopKClassifier": "linear",
        "TopKClassifierCV": "cv",
    },
)
