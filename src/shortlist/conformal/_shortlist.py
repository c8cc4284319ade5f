"""The estimator: sets of labels around a fitted classifier."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_random_state

from shortlist._responses import Responses
from shortlist.conformal._calibration import (
    Calibration,
    Fallback,
    check_level,
    rank_of_level,
    samples_needed,
    threshold_for_size,
)
from shortlist.conformal._clusters import cluster_classes, plan_clusters
from shortlist.conformal._options import DEFAULT_LEVEL, check_options, make_score
from shortlist.conformal._passes import Chunk, Examples, chunks_of, label_scores, sizes_and_hits
from shortlist.conformal._regularisation import TUNING_SHARE, check_enough_to_tune, tuned
from shortlist.conformal._report import CoverageReport, expected_interval, make_report
from shortlist.conformal._scores import AdaptiveScore, LastLabel, Score, TopKScore

#: The levels of a coverage curve, unless others are given.
_CURVE_LEVELS = (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.925, 0.95, 0.975, 0.99, 0.995)


class ConformalShortlist(BaseEstimator):
    """Sets of labels that hold the right one with a chosen probability.

    Split conformal prediction around a fitted classifier. Examples that the model was not trained
    on calibrate a threshold: if new examples come from the same distribution, their sets hold the
    right label with a probability of at least ``confidence_level``, whatever the model.

    Parameters
    ----------
    model : fitted classifier
        A classifier of this package, or any with ``classes_`` and ``decision_function`` or
        ``predict_proba``, such as scikit-learn's; a Pipeline too. It is never fitted here.
    confidence_level : float, default=0.9
        The probability that a set holds the right label. Ignored with ``average_size``.
    score : {"margin", "lac", "aps", "raps", "topk"}, default="margin"
        How strange a label is. A set holds the labels whose score is at most the threshold.

        - "margin": the best raw score of the other labels less the label's own. Needs no
          probabilities.
        - "lac": one less the probability. The shortest sets if probabilities are right.
        - "aps": the probability of all likelier labels and a part of the label's own.
        - "raps": the same with a penalty for each place after the first few.
        - "topk": the label's place. All sets have the same length, but for ties.

        Probabilities are the model's own; of a model without ``predict_proba`` they are the
        softmax of its scores. Coverage holds for any of them; better probabilities make shorter
        sets. See :class:`shortlist.probabilities.TemperatureScaling`.
    average_size : float, optional
        Instead of a coverage: the mean length of the sets on the calibration examples, at most
        this. Nothing is promised about coverage then; ``coverage_report`` measures it.
    method : {"marginal", "class_conditional", "clustered"}, default="marginal"
        For which examples the coverage is guaranteed.

        - "marginal": all examples together. Some classes may have less.
        - "class_conditional": the examples of every class (Mondrian). Each class needs
          calibration examples of its own, 9 at a level of 0.9, 99 at 0.99.
        - "clustered": the examples of every cluster of classes with alike scores (Ding et al.
          2023). Approximately the coverage of every class, with fewer examples. Part of the
          calibration examples find the clusters. Classes that are too rare to be in a cluster,
          and clusters with too few examples, take the marginal threshold.
    rare_classes : {"include", "pool"}, default="include"
        For "class_conditional": what happens to classes with too few calibration examples.
        "include" puts them into every set, which keeps the promise. "pool" gives them one
        threshold together: the promise then holds for them as a whole.
    include_last_label : bool or "randomized", default=True
        For "aps" and "raps". "randomized" counts a random part of the label's own probability;
        coverage is exact and sets may be empty. True keeps that threshold but always includes the
        label that crosses it: longer sets, never empty. Both are MAPIE's. False uses no
        randomness: all of the label's own probability counts, in calibration too.
    raps_penalty, raps_places : float and int, optional
        RAPS' penalty per place, and how many places are free of it. None: chosen on a fifth of
        the calibration examples.
    n_clusters : int, optional
        For "clustered". None: the paper's choice.
    random_state : int, RandomState or None, default=None
        Seeds the random parts of "aps" and "raps" and the splits of "raps" and "clustered".

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels; the columns of the sets.
    threshold_ : float, or ndarray of shape (n_classes,)
        The largest score in a set; one for each class if ``method`` is not "marginal".
    n_calibration_ : int
        The number of examples behind the threshold.
    calibration_scores_ : ndarray of shape (n_calibration_,)
    raps_penalty_, raps_places_ : float and int
        For "raps": the penalty in use, and how many places are free of it.
    clusters_ : ndarray of shape (n_classes,)
        For "clustered": the cluster of each class, -1 for none.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from shortlist import TopKClassifier
    >>> from shortlist.conformal import ConformalShortlist
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKClassifier("smooth_hinge", k=3, C=0.01, random_state=0).fit(X[:600], y[:600])
    >>> sets = ConformalShortlist(model, 0.95).conformalize(X[600:1200], y[600:1200])
    >>> sets.predict_set(X[1200:]).shape
    (597, 10)
    """

    def __init__(
        self,
        model: Any,
        confidence_level: float | None = DEFAULT_LEVEL,
        score: str = "margin",
        average_size: float | None = None,
        *,
        method: str = "marginal",
        rare_classes: str = "include",
        include_last_label: LastLabel = True,
        raps_penalty: float | None = None,
        raps_places: int | None = None,
        n_clusters: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.confidence_level = confidence_level
        self.score = score
        self.average_size = average_size
        self.method = method
        self.rare_classes = rare_classes
        self.include_last_label = include_last_label
        self.raps_penalty = raps_penalty
        self.raps_places = raps_places
        self.n_clusters = n_clusters
        self.random_state = random_state

    def __sklearn_clone__(self) -> ConformalShortlist:
        # The model is fitted elsewhere. A clone with an unfitted model would be of no use.
        return type(self)(**self.get_params(deep=False))

    def conformalize(self, X: Any, y: ArrayLike) -> Self:
        """Find the threshold on examples that the model was not trained on."""
        score = make_score(self.score, self.include_last_label)
        responses = Responses.of(self.model, score.kind)
        check_options(self, len(responses.classes))
        columns = responses.columns(X, y)
        random_state = check_random_state(self.random_state)
        examples = Examples.drawn(X, random_state)
        if isinstance(score, AdaptiveScore) and self.score == "raps":
            score, examples, columns = self._regularise(
                score, responses, examples, columns, random_state
            )
        scores = label_scores(responses, score, examples, columns)
        calibration = self._group(scores, columns, len(responses.classes), random_state)
        if self.average_size is None:
            level = check_level(self.confidence_level)
            thresholds = calibration.thresholds(level)
            self._warn_of_rare_classes(calibration, level)
            threshold = float(thresholds[0]) if self.method == "marginal" else thresholds
        else:
            threshold = self._threshold_for_size(responses, score, examples, self.average_size)
        self._adopt(responses, score, calibration, threshold, random_state.randint(2**31 - 1))
        return self

    def predict_set(self, X: Any, confidence_level: float | None = None) -> sparse.csr_array:
        """The sets: a CSR array of bool (n_samples, n_classes), True for the labels in the set.

        ``confidence_level`` asks for another level than the one of the constructor, without
        calibrating again.
        """
        thresholds = self._thresholds(confidence_level)
        columns, sizes = [np.empty(0, np.int32)], [np.zeros(1, np.intp)]
        for chunk in self._chunks(X):
            inside = chunk.candidates <= thresholds
            columns.append(np.nonzero(inside)[1].astype(np.int32))
            sizes.append(np.count_nonzero(inside, axis=1))
        indices, starts = np.concatenate(columns), np.cumsum(np.concatenate(sizes))
        # 32-bit indices where they suffice: parts of scikit-learn refuse 64-bit ones.
        kind = np.int32 if len(indices) <= np.iinfo(np.int32).max else np.int64
        places = indices.astype(kind, copy=False), starts.astype(kind)
        shape = (len(starts) - 1, len(self.classes_))
        return sparse.csr_array((np.ones(len(indices), dtype=bool), *places), shape=shape)

    def predict_lists(self, X: Any, confidence_level: float | None = None) -> list[NDArray]:
        """The sets as arrays of labels, best first; ``confidence_level`` as in `predict_set`."""
        thresholds = self._thresholds(confidence_level)
        lists = []
        for chunk in self._chunks(X):
            for responses, inside in zip(
                chunk.responses, chunk.candidates <= thresholds, strict=True
            ):
                columns = np.flatnonzero(inside)
                order = np.argsort(-responses[columns], kind="stable")
                lists.append(self.classes_[columns[order]])
        return lists

    def coverage_report(
        self, X: Any, y: ArrayLike, confidence_level: float | None = None
    ) -> CoverageReport:
        """How the sets do on labelled examples that were not used for calibration.

        A dictionary that prints as a table. Among its entries:

        - "coverage", with "coverage_standard_error" and "coverage_interval", an exact 95%
          interval for the coverage of this threshold;
        - "expected_interval": where a coverage measured on as many examples lies with a
          probability of 95% if nothing is wrong (marginal sets with a level; None otherwise);
        - "mean_length", "median_length", "share_empty", "share_singletons", "size_counts";
        - "per_class": a table of label, n_samples, coverage and mean_length, with
          "mean_class_coverage" and the ten "worst_classes";
        - "by_size": a table of coverage by the size of the set, in strata 0, 1, 2-3, 4-7, ...,
          and its smallest coverage, "size_stratified_coverage".
        """
        thresholds = self._thresholds(confidence_level)
        columns = self._responses().columns(X, y)
        sizes, hits = sizes_and_hits(self._chunks(X), columns, thresholds[None])
        level = self._level if confidence_level is None else check_level(confidence_level)
        expected = None
        if level is not None and self.method == "marginal":
            rank = rank_of_level(self.n_calibration_, level)
            expected = expected_interval(len(columns), self.n_calibration_, rank)
        return make_report(
            sizes[0],
            hits[0],
            columns,
            self.classes_,
            score=self.score,
            method=self.method,
            confidence_level=level,
            average_size=self.average_size if level is None else None,
            n_calibration=self.n_calibration_,
            expected_interval=expected,
        )

    def coverage_curve(
        self, X: Any, y: ArrayLike, confidence_levels: Iterable[float] | None = None
    ) -> dict[str, NDArray]:
        """Coverage and mean length at several levels, and of lists with a fixed length.

        Returns arrays "confidence_level", "coverage" and "mean_length", and "topk_accuracy", whose
        entry k - 1 is the share of labels in the first k places. Without ``confidence_levels``
        they are levels from 0.5 to 0.995, as far as there are calibration examples for them.
        """
        self._check_conformalized()
        if confidence_levels is None:
            wanted = [c for c in _CURVE_LEVELS if samples_needed(c) <= self.n_calibration_]
        else:
            wanted = [check_level(level, "confidence_levels") for level in confidence_levels]
        if not wanted:
            raise ValueError("there is no confidence level to draw a curve with")
        responses = self._responses()
        columns = responses.columns(X, y)
        thresholds = np.array([self._thresholds(level) for level in wanted])
        sizes, hits = sizes_and_hits(self._chunks(X), columns, thresholds)
        places = label_scores(responses, TopKScore(), self._examples(X), columns).astype(np.intp)
        found_at = np.bincount(places - 1, minlength=len(self.classes_))
        return {
            "confidence_level": np.array(wanted),
            "coverage": hits.mean(axis=1),
            "mean_length": sizes.mean(axis=1),
            "topk_accuracy": np.cumsum(found_at) / len(columns),
        }

    def _regularise(
        self,
        score: AdaptiveScore,
        responses: Responses,
        examples: Examples,
        columns: NDArray[np.intp],
        random_state: np.random.RandomState,
    ) -> tuple[AdaptiveScore, Examples, NDArray[np.intp]]:
        """RAPS with its penalty, and the examples that choosing it left for calibration."""
        if self.raps_penalty is not None and self.raps_places is not None:
            fixed = replace(score, penalty=self.raps_penalty, free_places=self.raps_places)
            return fixed, examples, columns
        level = check_level(self.confidence_level)
        check_enough_to_tune(len(examples), level)
        order = random_state.permutation(len(examples))
        n_tuning = int(np.ceil(TUNING_SHARE * len(examples)))
        tuning, rest = order[:n_tuning], order[n_tuning:]
        regularised = tuned(
            score,
            responses,
            examples.take(tuning),
            columns[tuning],
            level,
            self.raps_penalty,
            self.raps_places,
        )
        return regularised, examples.take(rest), columns[rest]

    def _group(
        self,
        scores: NDArray[np.float64],
        columns: NDArray[np.intp],
        n_classes: int,
        random_state: np.random.RandomState,
    ) -> Calibration:
        """Which classes share a threshold, and the scores to find it with."""
        if self.method == "marginal":
            return Calibration(scores, columns, np.zeros(n_classes, np.intp), "include")
        if self.method == "class_conditional":
            fallback: Fallback = "pool" if self.rare_classes == "pool" else "include"
            return Calibration(scores, columns, np.arange(n_classes), fallback)
        level = check_level(self.confidence_level)
        share, n_clusters = plan_clusters(columns, n_classes, level)
        order = random_state.permutation(len(scores))
        finding, rest = np.split(order, [int(share * len(scores))])
        clusters = cluster_classes(
            scores[finding],
            columns[finding],
            n_classes,
            level,
            self.n_clusters or n_clusters,
            random_state,
        )
        return Calibration(scores[rest], columns[rest], clusters, "marginal")

    def _threshold_for_size(
        self, responses: Responses, score: Score, examples: Examples, size: float
    ) -> float:
        chunks = (chunk.candidates for chunk in chunks_of(responses, score, examples))
        threshold = threshold_for_size(chunks, len(examples), size)
        if np.isneginf(threshold):
            raise ValueError(
                f"no sets by score={self.score!r} have a mean size of at most {size:g} on these "
                "calibration examples, unless all are empty: ask for a larger average_size"
            )
        return threshold

    def _warn_of_rare_classes(self, calibration: Calibration, level: float) -> None:
        if self.method != "class_conditional" or self.rare_classes == "pool":
            return
        rare = np.count_nonzero(~calibration.large_enough(level))
        if rare:
            warnings.warn(
                f"{rare} of {len(calibration.group_of_class)} classes have fewer than "
                f"{samples_needed(level)} calibration examples, which confidence_level={level:g} "
                "needs: they are in every set. rare_classes='pool' or method='clustered' make "
                "shorter sets",
                UserWarning,
                stacklevel=3,
            )

    def _adopt(
        self,
        responses: Responses,
        score: Score,
        calibration: Calibration,
        threshold: float | NDArray[np.float64],
        seed: int,
    ) -> None:
        self._score, self._calibration, self._seed = score, calibration, seed
        self._level = self.confidence_level if self.average_size is None else None
        self.classes_ = responses.classes
        self.threshold_ = threshold
        self.n_calibration_ = len(calibration.scores)
        self.calibration_scores_ = calibration.scores
        if self.score == "raps" and isinstance(score, AdaptiveScore):
            self.raps_penalty_, self.raps_places_ = score.penalty, score.free_places
        if self.method == "clustered":
            self.clusters_ = calibration.group_of_class

    def _check_conformalized(self) -> None:
        if not hasattr(self, "threshold_"):
            raise NotFittedError(
                f"this {type(self).__name__} has no threshold yet: call conformalize(X, y) with "
                "examples that the model was not trained on"
            )

    def _responses(self) -> Responses:
        self._check_conformalized()
        responses = Responses.of(self.model, self._score.kind)
        if not np.array_equal(responses.classes, self.classes_):
            raise ValueError(
                "the model was fitted again with other classes: call conformalize again"
            )
        return responses

    def _chunks(self, X: Any) -> Iterator[Chunk]:
        return chunks_of(self._responses(), self._score, self._examples(X))

    def _examples(self, X: Any) -> Examples:
        # The same random numbers in each call, and different ones from those of calibration.
        return Examples.drawn(X, np.random.RandomState(self._seed))

    def _thresholds(self, level: float | None) -> NDArray[np.float64]:
        """The threshold of each class, at the constructor's level or another."""
        self._check_conformalized()
        if level is not None:
            return self._calibration.thresholds(check_level(level))
        return np.broadcast_to(np.float64(self.threshold_), (len(self.classes_),))

    def _to_state(self) -> tuple[dict[str, NDArray], dict[str, Any]]:
        self._check_conformalized()
        arrays = {
            "scores": self._calibration.scores,
            "columns": self._calibration.columns,
            "group_of_class": self._calibration.group_of_class,
        }
        meta = {
            "params": self.get_params(deep=False),
            "fallback": self._calibration.fallback,
            "threshold": self.threshold_,
            "seed": self._seed,
            "penalty": getattr(self._score, "penalty", 0.0),
            "free_places": getattr(self._score, "free_places", 0),
        }
        return arrays, meta

    @classmethod
    def _from_state(cls, arrays: dict[str, NDArray], meta: dict[str, Any]) -> ConformalShortlist:
        sets = cls(**meta["params"])
        score = make_score(sets.score, sets.include_last_label)
        if isinstance(score, AdaptiveScore):
            score = replace(score, penalty=meta["penalty"], free_places=meta["free_places"])
        calibration = Calibration(fallback=meta["fallback"], **arrays)
        responses = Responses.of(sets.model, score.kind)
        sets._adopt(responses, score, calibration, meta["threshold"], meta["seed"])
        return sets
