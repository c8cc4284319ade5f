"""The table of losses: what each is called, what it takes and where it is made.

Nothing heavy is imported here, so that the command offers the names at once. Adding a loss: its
kernels and the function that makes it in a file of this folder, an entry here, a row in
tests/instances.py.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from shortlist._parameters import Parameters

if TYPE_CHECKING:
    from shortlist.losses.base import Loss


@dataclass(frozen=True)
class Entry:
    """One line of the table of losses, and the function that makes the loss.

    ``words`` is what the loss is called in the legend of a plot, and ``title`` in a table. ``home``
    is the function, "module:name": it takes :class:`Parameters`. ``uses`` are the parameters that
    change the loss; ``printed`` tells that the variant "printed" is one of its own. The loss itself
    tells the rest.
    """

    name: str
    words: str
    title: str
    formula: str
    calibrated: str
    torch: str
    home: str
    uses: tuple[str, ...]
    printed: bool = False

    @cached_property
    def make(self) -> Callable[[Parameters], "Loss"]:
        module, _, name = self.home.partition(":")
        made: Any = getattr(import_module(module), name)
        return made

    @property
    def convex(self) -> bool:
        return self._at_two.convex

    @property
    def smooth(self) -> bool:
        return self._at_two.smooth

    @property
    def has_dual_step(self) -> bool:
        return self._at_two.has_dual_step

    @property
    def separable(self) -> bool:
        return self._at_two.separable

    @cached_property
    def _at_two(self) -> "Loss":
        """The loss at k = 2. At k = 1 some are another loss."""
        return self.make(Parameters(2, "alpha", 1.0))

    @cached_property
    def several_up_to(self) -> int | None:
        """The largest k at which examples may have several right labels; None is no limit."""
        if not self._made_for_several(k=1):
            return 0
        return None if self._made_for_several(k=2) else 1

    def takes_several(
        self, k: int, variant: str = "alpha", margins: Any = None, rank_weights: Any = None
    ) -> bool:
        """Whether, with these parameters, examples may have several right labels."""
        if variant == "printed" or margins is not None or rank_weights is not None:
            return False
        limit = self.several_up_to
        return limit is None or k in range(1, limit + 1)  # k may be anything yet

    def _made_for_several(self, k: int) -> bool:
        try:
            return self.make(Parameters(k, "alpha", 1.0, multilabel=True)).multilabel
        except ValueError:
            return False


class Alias(NamedTuple):
    """Another name of a loss at one k."""

    of: str
    k: int


_HINGES = (
    "no for k <= m - 2 (counterexample; at k = 1 Prop. 3); "
    "at k = m - 1 alpha yes (theorem), beta and printed no for m >= 3 (counterexample)"
)
_MIXED = "yes (theorem), from the smallest j that has a share on"
_TABLE = [
    Entry(
        "hinge",
        "hinge",
        "top-k hinge (multiclass SVM at k = 1)",
        "alpha: max(0, mean of the k largest 1+u_j); "
        "beta: mean over the k largest of max(0, 1+u_j)",
        calibrated=_HINGES,
        torch="TopKHingeLoss",
        home="shortlist.losses.makers:plain_hinge",
        uses=("k", "variant", "margins", "rank_weights"),
        printed=True,
    ),
    Entry(
        "smooth_hinge",
        "smooth hinge",
        "smooth top-k hinge",
        "max of <1+u, x> - (smoothing/2)|x|^2 over the top-k simplex",
        calibrated="yes (theorem), if all margins are equal",
        torch="TopKHingeLoss",
        home="shortlist.losses.makers:hinge",
        uses=("k", "variant", "smoothing", "margins", "rank_weights"),
        printed=True,
    ),
    Entry(
        "entropy",
        "entropy",
        "top-k entropy (softmax at k = 1)",
        "max of <u, x> - <x, log x> - (1-s) log(1-s) over the top-k simplex; "
        "k = 1: log(1 + sum_j exp u_j)",
        calibrated="yes (theorem; at k = 1 Prop. 4)",
        torch="TopKEntropyLoss",
        home="shortlist.losses.makers:entropy",
        uses=("k", "variant"),
    ),
    Entry(
        "truncated_entropy",
        "truncated entropy",
        "truncated top-k entropy",
        "log(1 + sum of exp u_j over the m-k smallest)",
        calibrated="yes (Prop. 10)",
        torch="TruncatedTopKEntropyLoss",
        home="shortlist.losses.makers:truncated_entropy",
        uses=("k",),
    ),
    Entry(
        "mixed_smooth_hinge",
        "mixed smooth hinges",
        "mixture of smooth top-k hinges, from 1 to k",
        "sum_j mu_j L_j, L_j the smooth top-j hinge; mu_j = 1/k unless chosen",
        calibrated=_MIXED,
        torch="none",
        home="shortlist.losses.mixture:mixed_smooth_hinge",
        uses=("k", "variant", "smoothing", "rank_weights"),
    ),
    Entry(
        "mixed_entropy",
        "mixed entropies",
        "mixture of top-k entropies, from 1 to k",
        "sum_j mu_j L_j, L_j the top-j entropy; mu_j = 1/k unless chosen",
        calibrated=_MIXED,
        torch="none",
        home="shortlist.losses.mixture:mixed_entropy",
        uses=("k", "variant", "rank_weights"),
    ),
    Entry(
        "ova_hinge",
        "one-vs-all hinge",
        "one-vs-all hinge (SVM)",
        "sum over classes of max(0, 1 - t_j), t_j = +-f_j",
        calibrated="no (Prop. 1)",
        torch="OVAHingeLoss",
        home="shortlist.losses.makers:plain_ova_hinge",
        uses=(),
    ),
    Entry(
        "ova_smooth_hinge",
        "one-vs-all smooth hinge",
        "one-vs-all smoothed hinge",
        "sum over classes of max over p in [0,1] of p (1 - t_j) - (smoothing/2) p^2",
        calibrated="yes (Prop. 5)",
        torch="OVAHingeLoss",
        home="shortlist.losses.makers:ova_hinge",
        uses=("smoothing",),
    ),
    Entry(
        "ova_logistic",
        "one-vs-all logistic",
        "one-vs-all logistic regression",
        "sum over classes of log(1 + exp(-t_j))",
        calibrated="yes (Prop. 2)",
        torch="OVALogisticLoss",
        home="shortlist.losses.makers:ova_logistic",
        uses=(),
    ),
]
ENTRIES = {entry.name: entry for entry in _TABLE}
ALIASES = {"softmax": Alias("entropy", k=1)}


def entry_of(name: str) -> Entry:
    """The entry of a loss, by its name or an alias."""
    return ENTRIES[ALIASES[name].of if name in ALIASES else name]


def names() -> list[str]:
    """The names :func:`shortlist.losses.get` knows, aliases included."""
    return sorted([*ENTRIES, *ALIASES])
