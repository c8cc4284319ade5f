"""Fine-tune a network with top-k losses and compare its shortlists with softmax's.

    python examples/finetune.py [seeds]

Letter comes with the package; each network takes some seconds.
"""

import sys

from shortlist.experiments.finetune import paper_rows
from shortlist.experiments.finetuning import (
    METHODS,
    Recipe,
    fine_tune,
    parameters_for,
    summarise,
)
from shortlist.experiments.splits import letter_parts

KS = (1, 3, 5, 10)


def show(title, rows):
    print(f"\n{title:32}" + "".join(f"{f'top-{k}':>7}{'gain':>8}" for k in KS))
    for row in rows:
        name = row["name"] + (" (fine-tuned)" if row["fine_tuned"] else "")
        cells = "".join(f"{row['mean'][k]:7.2f} ({row['gain'][k]:+.2f})" for k in KS)
        print(f"{name:32}{cells}")


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    parts = letter_parts()
    records = []
    for seed in range(seeds):
        parameters = parameters_for(Recipe(), METHODS, KS, seed)
        records.append(
            fine_tune(
                parameters,
                parts,
                lambda share, seed=seed: print(
                    f"\rnetwork {seed + 1} of {seeds}: {share:4.0%}", end="", flush=True
                ),
            )
        )
    print()
    show("Letter, mean of networks", summarise(records, KS))
    show("The paper, ILSVRC 2012", paper_rows("ilsvrc2012"))


if __name__ == "__main__":
    main()
