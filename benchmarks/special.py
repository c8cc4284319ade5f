"""Nanoseconds an element of V(t) = W(exp t), against scipy.special.wrightomega.

One process, one thread, the best of many repeats, alternating between the two so that both see
the same machine. Three ranges of t: where the solvers are (-20 to 20), where the result is an
exponential, and where it is nearly t.
"""

import time
from collections.abc import Callable

import numpy as np
from benchmarks.machine import output
from numpy.typing import NDArray
from rich.table import Table
from scipy.special import wrightomega

from shortlist.special import lambertw_exp

SIZE = 4096
REPEATS = 300
RANGES = {"-20 .. 20": (-20.0, 20.0), "-80 .. -20": (-80.0, -20.0), "20 .. 1e6": (20.0, 1e6)}


def nanoseconds(functions: list[Callable[[NDArray], NDArray]], t: NDArray) -> list[float]:
    """The best time of each function on t, an element."""
    best = [np.inf] * len(functions)
    for function in functions:
        function(t)
    for _ in range(REPEATS):
        for i, function in enumerate(functions):
            began = time.perf_counter()
            function(t)
            best[i] = min(best[i], time.perf_counter() - began)
    return [seconds / t.size * 1e9 for seconds in best]


def main() -> None:
    table = Table(title=f"V(t), {SIZE} elements, best of {REPEATS}, ns an element")
    for column in ("precision", "t", "shortlist", "scipy", "ratio"):
        table.add_column(column, justify="right")
    random = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        for label, (low, high) in RANGES.items():
            t = random.uniform(low, high, SIZE).astype(dtype)
            ours, theirs = nanoseconds([lambertw_exp, wrightomega], t)
            table.add_row(
                np.dtype(dtype).name, label, f"{ours:.2f}", f"{theirs:.1f}", f"{theirs / ours:.0f}x"
            )
    output().print(table)


if __name__ == "__main__":
    main()
