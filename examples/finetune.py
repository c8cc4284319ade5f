"""Fine-tune a network with top-k losses and compare its shortlists with softmax's.

    python examples/finetune.py [seeds]

Letter comes with the package; each network takes some seconds.
"""

import sys

from shortlist.experiments.finetune import KS, METHODS, FineTuningTask, paper_rows, summarise
from shortlist.experiments.parts import letter_parts


def show(title, rows):
    print(f"\n{title:32}" + "".join(f"{f'top-{k}':>7}{'gain':>8}" for k in KS))
    for row in rows:
        name = row.name + (" (fine-tuned)" if row.fine_tuned else "")
        cells = "".join(f"{row.mean[k]:7.2f} ({row.gain[k]:+.2f})" for k in KS)
        print(f"{name:32}{cells}")


def main():
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    parts = letter_parts()
    networks = []
    for seed in range(seeds):
        print(f"network {seed + 1} of {seeds}")
        networks.append(FineTuningTask(parts.fingerprint, METHODS, KS, seed).run(parts))
    show("Letter, mean of networks", summarise(networks, KS))
    show("The paper, ILSVRC 2012", paper_rows("ilsvrc2012"))


if __name__ == "__main__":
    main()
