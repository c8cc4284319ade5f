"""Training on a Ray cluster, with the certificate of one machine (extra ``ray``)."""

from shortlist.distributed.training import fit, fit_path

__all__ = ["fit", "fit_path"]
