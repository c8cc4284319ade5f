"""Training on a Ray cluster, with the certificate of one machine (extra ``ray``).

Workers load modules of this package, and start faster without scikit-learn: what needs it loads
on first use.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shortlist.distributed.training import fit, fit_path

__all__ = ["fit", "fit_path"]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from shortlist.distributed import training

        return getattr(training, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
