"""The paper's tables and figures as runnable definitions.

``run("letter", output="results/letter")`` computes one of them (or all) and writes tables, figures
and a report into a folder; ``registry.EXPERIMENTS`` lists what there is.

Table 1 is in ``calibrated``, Table 2 in ``table2``, Table 3 in ``table3`` and ``table3_section``,
Table 5 in ``finetune``; the figures are in ``training_curves``, ``lambert`` and ``loss_slices``. An
experiment computes and stores its parts by ``units`` and hands over what ``report`` shows. The
numbers of the ``paper`` and ``comparison`` with them, the examples (``parts``), the choice of C
(``protocol``) and other ways of training (``descents``) are shared.

Names load on first use, so that a command's help need not import the machinery.
"""

from shortlist._lazy import names_of

__getattr__, __dir__, __all__ = names_of(
    __name__,
    {
        "EXPERIMENTS": "registry",
        "Experiment": "registry",
        "MissingData": "parts",
        "UnknownOption": "registry",
        "paper": "paper",
        "registry": "registry",
        "run": "registry",
    },
)
