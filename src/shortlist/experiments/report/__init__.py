"""What experiments hand over (sections of tables and figures), and how it is shown and stored.

model     the parts of a report as plain data
prose     parts whose words come from templates, and the little Markdown of these words
terminal  a section on a terminal
folder    a report as files in a folder: one HTML page, CSV, JSON, pictures
"""

from shortlist.experiments.report.model import Cell, Figure, Remark, Report, Section, Table, Value
from shortlist.experiments.report.prose import Facts, Prose

__all__ = ["Cell", "Facts", "Figure", "Prose", "Remark", "Report", "Section", "Table", "Value"]
