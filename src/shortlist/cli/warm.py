"""``shortlist warm``: compile kernels ahead of their first use."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import product
from typing import Any, NoReturn

import typer

from shortlist.cli.options import LossName, OutputOptions, Precision
from shortlist.cli.output import FAILED, readable_size, report

# Numbers of examples, features and classes. A small problem, and one trained in blocks that threads
# share, use different kernels.
_SHAPES = ((60, 6, 5), (600, 400, 100))
# Settings of C and tol: the last digits are left to SDCA, large C to descents.
_SETTINGS = ((1.0, 1e-3), (1.0, 1e-5), (1e4, 1e-2))
# A loss has one set of kernels at k = 1 and another for larger k.
_KS = (1, 3)


def warm(
    *,
    losses: list[LossName] | None = None,
    precisions: list[Precision] | None = None,
    output: OutputOptions,
) -> None:
    """Compile the usual kernels now, so that first fits do not wait for it.

    Kernels are compiled for the processor at hand and kept for all later processes: useful when
    an image is built, or before tests run. All of them take some minutes.
    """
    from shortlist._compiling import compilation
    from shortlist._jit import DISABLED
    from shortlist._jit_cache import SUFFIX, cache_place

    place = cache_place()
    if DISABLED:
        _fail("nothing is compiled where NUMBA_DISABLE_JIT is set")
    if place.folder is None or place.obstacle:
        _fail(f"compiled kernels cannot be kept: {place.obstacle}")
    before = compilation.seconds
    _fit_all(list(_fits(losses or list(LossName), precisions or list(Precision))), output.quiet)
    seconds = compilation.seconds - before
    sizes = [path.stat().st_size for path in place.folder.glob(f"*{SUFFIX}")]
    if not sizes:
        _fail(f"no kernel was compiled and kept in {place.folder}")
    facts = {"folder": str(place.folder), "kernels": len(sizes), "bytes": sum(sizes)}
    kept = f"{len(sizes)} kernels ({readable_size(sum(sizes))}) are kept in {place.folder}"
    line = f"compiled for {seconds:.0f} s; {kept}"
    report(output, "warm", {**facts, "compile_seconds": seconds}, [line])


def _fail(message: str) -> NoReturn:
    sys.stderr.write(f"shortlist: {message}\n")
    raise typer.Exit(FAILED)


@dataclass(frozen=True)
class _Fit:
    """One small fit, for the kernels it compiles."""

    loss: str
    k: int
    dtype: str
    sparse: bool

    def run(self) -> None:
        import numpy as np
        from scipy import sparse

        from shortlist import TopKClassifier

        for n_samples, n_features, n_classes in _SHAPES:
            random = np.random.default_rng(0)
            y = np.arange(n_samples) % n_classes
            X = random.normal(size=(n_samples, n_features)).astype(self.dtype)
            X[np.arange(n_samples), y] += 2
            data: Any = sparse.csr_array(X) if self.sparse else X
            for C, tol in _SETTINGS:
                model = TopKClassifier(
                    self.loss, k=self.k, C=C, tol=tol, max_epochs=50, random_state=0
                )
                model.fit(data, y)


def _fits(losses: Iterable[LossName], precisions: Iterable[Precision]) -> Iterator[_Fit]:
    from shortlist.losses import get

    settings: dict[Any, tuple[str, int]] = {}
    for name, k in product(losses, _KS):
        # Several names and ks can mean the same loss. Some names refuse a k above 1.
        with suppress(ValueError):
            settings.setdefault(get(name, k=k), (name, k))
    for dtype, (loss, k), sparse in product(precisions, settings.values(), (False, True)):
        yield _Fit(loss, k, dtype, sparse)


def _fit_all(fits: list[_Fit], quiet: bool) -> None:
    import warnings

    from rich.console import Console

    from shortlist._compiling import compilation_told
    from shortlist._progress import progress_on

    console = Console(stderr=True)
    with (
        progress_on(None if quiet else console, "compiling", count=len(fits)) as progress,
        compilation_told(lambda text: None),  # the progress says it
        warnings.catch_warnings(),
    ):
        # Whether such a fit converges does not matter.
        warnings.simplefilter("ignore")
        for fit in fits:
            name = f"{fit.loss}, k={fit.k}, {fit.dtype}, {'CSR' if fit.sparse else 'dense'}"
            progress.begin(name)
            fit.run()
            progress.finish(name)
