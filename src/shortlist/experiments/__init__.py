"""The paper's tables and figures as runnable definitions.

``run("letter", output="results/letter")`` computes one of them (or all) and writes tables, figures
and a report into a folder; ``registry.EXPERIMENTS`` lists what there is.

What runs experiments::

    registry           the experiments by name, and run()
    units              what is computed and stored as a whole, under a key of all it depends on
    workers            units computed in parallel processes
    report             what experiments hand over, as page, terminal output and files

The experiments::

    table2             Table 2 and Figure 3: the circle
    table3             Table 3 on a data set, a stand-in, or any frozen features;
                       table3_section: what its section shows
    training_curves    Figures 1 and 2
    finetune           Table 5
    calibrated         Table 1, the column "top-k calibrated"
    lambert            the Lambert W figure
    loss_slices        the losses along a line

What they share::

    paper              the paper's numbers
    comparison         data sets of Table 3's kind, rows beside the paper's, paired tests, ranks
    parts              training, validation and test examples
    protocol           the paper's methods, a path over C, and the choice of a model for each k
    descents           the primal as a whole: FISTA, L-BFGS, and the paper's gradient descent

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
