"""Shortlists of the right length: sets of labels with a coverage guarantee."""

from shortlist.conformal._report import CoverageReport
from shortlist.conformal._shortlist import ConformalShortlist

__all__ = ["ConformalShortlist", "CoverageReport"]
