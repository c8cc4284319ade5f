"""What experiments hand over (sections of tables and figures), and how it is shown and stored."""

from shortlist.experiments.report.model import (
    Chart,
    Column,
    Figure,
    Report,
    Section,
    Series,
    Table,
    Value,
)

__all__ = ["Chart", "Column", "Figure", "Report", "Section", "Series", "Table", "Value"]
