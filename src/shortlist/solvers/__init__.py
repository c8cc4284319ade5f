"""Solvers with duality-gap certificates, over any loss of ``shortlist.losses``.

Rooms, each building on those before it:

``kernels``   compiled loops over examples: visits, support visits, gradients
``storage``   how examples are stored: dense, CSR, by inner products; one interface
``records``   what a run measured: evaluations, certificates, results
``strategy``  SDCA, L-BFGS, the method of multipliers, which of them when, the path over C

Beside them: ``problem`` puts examples, costs and a loss together, ``duals`` stores dual variables,
``memory`` asks whether it all fits, ``placing`` chooses what stays in memory under a limit, and
``threads`` shares the work.
"""

from shortlist.solvers.records.result import Evaluation, Result
from shortlist.solvers.records.run import Progress, StopTraining

__all__ = ["Evaluation", "Progress", "Result", "StopTraining"]
