"""Training on a Ray cluster, with the certificate of one machine (extra ``ray``).

Workers load modules of this package, and start faster without scikit-learn: what needs it loads
on first use.
"""

from typing import TYPE_CHECKING

from shortlist._lazy import names_of

if TYPE_CHECKING:
    from shortlist.distributed.training import fit, fit_path

__all__ = ["fit", "fit_path"]
__getattr__, __dir__, _ = names_of(__name__, dict.fromkeys(["fit", "fit_path"], "training"))
