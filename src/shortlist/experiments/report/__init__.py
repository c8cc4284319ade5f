"""What experiments hand over (sections of tables and figures), and how it is shown and stored.

model     the parts of a report as plain data
text      the little Markdown of their texts
prose     the texts that do not change, from templates
terminal  a section on a terminal
folder    a report as files in a folder: one HTML page, CSV, JSON, pictures
"""

from shortlist.experiments.report.model import Figure, Remark, Report, Section, Table, Value

__all__ = ["Figure", "Remark", "Report", "Section", "Table", "Value"]
