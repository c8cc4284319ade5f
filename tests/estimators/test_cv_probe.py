"""A linear probe in one call: grids, early ends, scorers, few shots, certificates, reports."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.metrics import balanced_accuracy_score, log_loss, make_scorer
from sklearn.preprocessing import normalize

import shortlist
from shortlist import TopKClassifier, TopKClassifierCV
from shortlist.estimators.cv_grid import Grid, grid_of
from shortlist.metrics import topk_scorer
from shortlist.solvers.threads import Crew

FIXED = {"max_extensions": 0, "random_state": 0}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300] / 16, y[:300], X[300:600] / 16, y[300:600]


def test_the_probes_grid():
    np.testing.assert_allclose(grid_of(45), 10 ** np.linspace(-6, 5, 45))
    np.testing.assert_allclose(grid_of(12), 10.0 ** np.arange(-6, 6))


def run_grid(accuracy_of, grid):
    rounds = []
    while pending := grid.pending():
        rounds.append(pending)
        for C in pending:
            grid.scores[C] = np.array([accuracy_of(np.log10(C))])
    return rounds


def test_patience_ends_a_path_once_every_k_is_past_its_best():
    Cs = [10.0**e for e in range(-3, 7)]
    peaks = Grid(Cs, 4, patience=2)
    run_grid(lambda e: [-abs(e), -abs(e - 2)], peaks)
    np.testing.assert_allclose(peaks.Cs, Cs[: Cs.index(1e4) + 1])
    # A plateau at strong regularisation is no reason to stop.
    late = Grid(Cs, 0, patience=2)
    run_grid(lambda e: [max(e, 0)], late)
    assert late.Cs == Cs
    # The lower end still grows, and the values left out stay out.
    low = Grid(Cs, 2, patience=1)
    run_grid(lambda e: [-e], low)
    np.testing.assert_allclose(low.Cs, 10.0 ** np.arange(-5, -1))


def test_coarse_to_fine_closes_in_on_the_best_of_every_k():
    grid = Grid([10.0**e for e in range(-2, 5)], 0, refine=2)
    rounds = run_grid(lambda e: [-abs(e - 0.3), -abs(e - 3.1)], grid)
    np.testing.assert_allclose(np.log10(rounds[1]), [-0.5, 0.5, 2.5, 3.5])
    np.testing.assert_allclose(np.log10(rounds[2]), [0.25, 0.75, 2.75, 3.25])
    assert len(rounds) == 3
    alone = Grid([1.0], 0, refine=3)
    assert run_grid(lambda e: [e], alone) == [[1.0]]


def test_patience_and_refinement_find_what_the_whole_grid_finds(digits):
    X, y, X_val, y_val = digits
    Cs = 10.0 ** np.arange(-3, 4)
    params = {"ks": (1,), "tol": 1e-5, **FIXED}
    given = {"X_val": X_val, "y_val": y_val}
    whole = TopKClassifierCV(Cs=Cs, **params).fit(X, y, **given)
    short = TopKClassifierCV(Cs=Cs, patience=2, **params).fit(X, y, **given)
    visited = len(short.cv_results_["C"])
    assert visited < len(Cs)
    np.testing.assert_array_equal(short.mean_scores_, whole.mean_scores_[:visited])
    assert short.C_ == whole.C_
    fine = TopKClassifierCV(Cs=Cs, refine=1, **params).fit(X, y, **given)
    between = [C for C in fine.cv_results_["C"] if C not in Cs]
    expected = {C * 10.0**step for C in whole.C_.values() for step in (-0.5, 0.5)}
    np.testing.assert_allclose(between, sorted(expected))
    for C, accuracy in zip(fine.cv_results_["C"], fine.mean_scores_[:, 0], strict=True):
        cold = TopKClassifier(C=C, tol=1e-5, random_state=0).fit(X, y)
        assert accuracy == pytest.approx(cold.score(X_val, y_val), abs=0.01)


def test_with_validation_data_every_c_is_fitted_and_measured_once(digits, monkeypatch):
    from shortlist.estimators.cv_measure import Measure
    from shortlist.estimators.paths import ModelPath

    fitted, measured = [], []
    fit, measure = ModelPath.fit, Measure.__call__
    monkeypatch.setattr(
        ModelPath, "fit", lambda self, C, *rest: fitted.append(C) or fit(self, C, *rest)
    )
    monkeypatch.setattr(
        Measure,
        "__call__",
        lambda self, *given: measured.append(1) or measure(self, *given),
    )
    X, y, X_val, y_val = digits
    Cs = [0.001, 0.01, 0.1]
    search = TopKClassifierCV(Cs=Cs, ks=(1, 3), **FIXED).fit(X, y, X_val=X_val, y_val=y_val)
    assert fitted == Cs
    assert len(measured) == 3
    assert search.estimators_[1].result_.seconds == search.cv_results_["mean_seconds"][2]


def test_only_models_that_may_be_chosen_are_kept(digits, monkeypatch):
    from shortlist.estimators import cv_request

    kept = []

    class Watched(cv_request.SearchPath):
        def advance(self, Cs):
            super().advance(Cs)
            kept.append(sorted(self.models))

    monkeypatch.setattr(cv_request, "SearchPath", Watched)
    X, y, X_val, y_val = digits
    search = TopKClassifierCV(Cs=[1e-4, 1e-2, 1.0, 100.0], ks=(1, 3), **FIXED)
    search.fit(X, y, X_val=X_val, y_val=y_val)
    assert set(kept[-1]) >= set(search.C_.values())
    assert len(kept[-1]) < 4


def test_a_scorer_chooses_one_c_for_all_ks(digits):
    X, y, X_val, y_val = digits
    Cs = [0.01, 1.0, 100.0]
    given = {"X_val": X_val, "y_val": y_val}
    search = TopKClassifierCV(Cs=Cs, ks=(1, 3), scoring="neg_log_loss", tol=1e-6, **FIXED)
    search.fit(X, y, **given)
    models = [TopKClassifier(C=C, tol=1e-6, random_state=0).fit(X, y) for C in Cs]
    losses = [log_loss(y_val, model.predict_proba(X_val)) for model in models]
    np.testing.assert_allclose(search.cv_results_["mean_score"], np.negative(losses), rtol=1e-3)
    assert set(search.C_.values()) == {Cs[int(np.argmin(losses))]}
    accuracies = [model.score(X_val, y_val) for model in models]
    np.testing.assert_allclose(search.cv_results_["mean_top1"], accuracies)
    few = y_val < 7  # scikit-learn's own scorer refuses a part that lacks a class
    search.fit(X, y, X_val=X_val[few], y_val=y_val[few])
    loss = log_loss(y_val[few], models[0].predict_proba(X_val[few]), labels=range(10))
    assert search.cv_results_["mean_score"][0] == pytest.approx(-loss, rel=1e-3)
    per_class = TopKClassifierCV(Cs=Cs, ks=(1,), scoring="balanced_accuracy", tol=1e-6, **FIXED)
    per_class.fit(X, y, **given)
    expected = [balanced_accuracy_score(y_val, model.predict(X_val)) for model in models]
    np.testing.assert_allclose(per_class.cv_results_["mean_score"], expected)
    own = TopKClassifierCV(Cs=Cs, ks=(1,), scoring=topk_scorer(3), tol=1e-6, **FIXED)
    own.fit(X, y, **given)
    np.testing.assert_allclose(
        own.cv_results_["mean_score"], [topk_scorer(3)(model, X_val, y_val) for model in models]
    )


def test_scorers_get_the_sample_weights_of_the_held_out(digits):
    X, y = digits[:2]
    weight = np.where(y < 5, 3.0, 1.0)
    seen = []

    def scorer(model, X, y, sample_weight=None):
        seen.append(np.array_equal(sample_weight, np.where(y < 5, 3.0, 1.0)))
        return 0.5

    search = TopKClassifierCV(Cs=[0.1], ks=(1,), cv=3, **FIXED)
    search.set_params(scoring=scorer).fit(X, y, weight)
    assert seen == [True] * 3
    search.set_params(scoring=lambda model, X, y: 0.5).fit(X, y, weight)
    with pytest.raises(ValueError, match=r"scoring gives nan at C=0\.1"):
        search.set_params(scoring=lambda model, X, y: np.nan).fit(X, y)


def test_class_weights_count_in_held_out_accuracy(digits):
    X, y, X_val, y_val = digits
    weights = {label: 5.0 if label < 3 else 0.5 for label in range(10)}
    search = TopKClassifierCV(Cs=[0.1], ks=(1,), class_weight=weights, cv=3, tol=1e-8, **FIXED)
    given = TopKClassifierCV(**search.get_params()).set_params(cv=None)
    given.fit(X, y, X_val=X_val, y_val=y_val)
    model = TopKClassifier(C=0.1, class_weight=weights, tol=1e-8, random_state=0).fit(X, y)
    counts = np.array([weights[label] for label in y_val])
    hits = model.predict(X_val) == y_val
    assert given.mean_scores_[0, 0] == pytest.approx(np.average(hits, weights=counts))
    plain = TopKClassifierCV(**search.get_params()).set_params(class_weight=None).fit(X, y)
    assert search.fit(X, y).mean_scores_[0, 0] != plain.mean_scores_[0, 0]
    balanced = TopKClassifierCV(**search.get_params()).set_params(class_weight="balanced", cv=None)
    balanced.fit(X, y, X_val=X_val[:150], y_val=y_val[:150])
    model = TopKClassifier(C=0.1, class_weight="balanced", tol=1e-8, random_state=0).fit(X, y)
    counts = 1 / np.bincount(y)[y_val[:150]]
    hits = model.predict(X_val[:150]) == y_val[:150]
    assert balanced.mean_scores_[0, 0] == pytest.approx(np.average(hits, weights=counts))


def test_few_shot_subsets(digits):
    X, y, X_val, y_val = digits
    search = TopKClassifierCV(Cs=[1.0, 10.0], ks=(1, 3), shots=4, repeats=3, tol=1e-8, **FIXED)
    search.fit(X, y, X_val=X_val, y_val=y_val)
    assert (search.std_scores_ > 0).any()
    model = search.estimators_[1]
    # The models of the first subset: 40 examples explain them, and their accuracy is of the size
    # that the table gives.
    assert model.result_.primal <= 40 * model.C * np.log(10)
    assert abs(model.score(X_val, y_val) - search.mean_scores_.max(axis=0)[0]) < 0.1
    again = TopKClassifierCV(**search.get_params()).fit(X, y, X_val=X_val, y_val=y_val)
    np.testing.assert_array_equal(again.mean_scores_, search.mean_scores_)
    other = TopKClassifierCV(**search.get_params()).set_params(random_state=1)
    other.fit(X, y, X_val=X_val, y_val=y_val)
    assert (other.mean_scores_ != search.mean_scores_).any()
    more = TopKClassifierCV(**search.get_params()).set_params(shots=16)
    more.fit(X, y, X_val=X_val, y_val=y_val)
    assert more.mean_scores_.max() > search.mean_scores_.max()


def test_few_shot_subsets_have_so_many_of_each_class_and_measure_on_the_rest(digits):
    from shortlist.estimators.cv_folds import Part, few_shot_folds

    X, y = digits[:2]
    folds = few_shot_folds(Part(X, y, None, None), 3, 4, 0, None)
    drawn = [tuple(fold.train) for fold in folds]
    assert len(set(drawn)) == 4
    for fold in folds:
        np.testing.assert_array_equal(np.bincount(y[fold.train]), [3] * 10)
        both = np.concatenate([fold.train, fold.held_out])
        np.testing.assert_array_equal(np.sort(both), np.arange(len(y)))
    most = int(np.bincount(y).min())
    with pytest.raises(ValueError, match=f"shots={most + 1} asks for more examples than class"):
        TopKClassifierCV(shots=most + 1, ks=(1,)).fit(X, y)
    with pytest.raises(ValueError, match="shots=2 leaves no example to measure on"):
        TopKClassifierCV(shots=2, ks=(1,)).fit(X[:4], [0, 0, 1, 1])
    with pytest.raises(ValueError, match="shots and cv both say what to train on"):
        TopKClassifierCV(shots=2, cv=3).fit(X, y)


def test_refit_on_training_and_validation_data(digits):
    X, y, X_val, y_val = digits
    search = TopKClassifierCV(Cs=[0.1, 1.0], ks=(1,), refit="train+val", tol=1e-10, **FIXED)
    search.fit(X, y, X_val=X_val, y_val=y_val)
    both = np.vstack([X, X_val]), np.concatenate([y, y_val])
    alone = TopKClassifier(C=search.C_[1], tol=1e-10, random_state=0).fit(*both)
    np.testing.assert_allclose(search.coef_, alone.coef_, atol=1e-4)
    with pytest.raises(ValueError, match=r"refit='train\+val' needs X_val and y_val"):
        search.fit(X, y)


def test_the_chosen_models_normalise_what_they_are_given(digits):
    X, y, X_val, y_val = digits
    scaled = X * np.linspace(0.1, 50, len(X))[:, None]
    params = {"Cs": [0.1, 10.0], "ks": (1, 3), "cv": 3, **FIXED}
    search = TopKClassifierCV(normalize="l2", **params).fit(scaled, y)
    by_hand = TopKClassifierCV(**params).fit(normalize(X), y)
    np.testing.assert_allclose(search.mean_scores_, by_hand.mean_scores_)
    assert search.estimators_[1].normalize == "l2"
    np.testing.assert_allclose(
        search.decision_function(3 * X_val), by_hand.decision_function(normalize(X_val)), atol=1e-8
    )
    given = TopKClassifierCV(normalize="l2", **params).set_params(cv=None)
    given.fit(scaled, y, X_val=X_val * 7, y_val=y_val)
    column = given.cv_results_["mean_top1"]
    assert given.score(X_val, y_val) == column[given.cv_results_["C"] == given.C_[1]]
    with pytest.raises(ValueError, match=r"a family in losses may set .*; got 'normalize'"):
        search.set_params(losses=[{"normalize": None}]).fit(X, y)


@pytest.mark.parametrize("k", [1, 3])
def test_a_decided_choice_is_that_of_exact_optima(digits, k):
    X, y, X_val, y_val = digits
    Cs = [1e-4, 1e-2, 10.0]
    given = {"X_val": X_val, "y_val": y_val}
    rough = TopKClassifierCV(Cs=Cs, ks=(k,), tol=1e-3, **FIXED).fit(X, y, **given)
    close = TopKClassifierCV(Cs=Cs, ks=(k,), tol=1e-9, **FIXED).fit(X, y, **given)
    assert not rough.decided_[k]
    assert close.decided_[k]
    column = f"certified_top{k}"
    assert (close.cv_results_[column] >= rough.cv_results_[column]).all()
    for C, share in zip(Cs, close.cv_results_[column], strict=True):
        model = TopKClassifier(C=C, tol=1e-9, random_state=0).fit(X, y)
        assert share == pytest.approx(model.certified_topk(X_val, k).mean(), abs=0.02)
    assert f"k={k}: C={close.C_[k]:.4g}. The choice of C is decided: " in close.summary()
    assert "with a smaller tol another C might be chosen" in rough.summary()


def test_bounds_hold_the_accuracies_of_the_optimum(digits):
    from shortlist.estimators.cv_folds import Part
    from shortlist.estimators.cv_measure import Measure

    X, y, X_val, y_val = digits
    counts = np.where(y_val < 5, 2.0, 1.0)
    part = Part(X_val, np.where(y_val == 9, 77, y_val), None, counts)
    measure = Measure((1, 3, 10))
    exact = TopKClassifier(C=0.1, tol=1e-11, random_state=0).fit(X, y)
    optimal = measure(exact, part).accuracies
    for tol in (1e-3, 1e-5, 1e-7):
        model = TopKClassifier(C=0.1, tol=tol, random_state=0).fit(X, y)
        found = measure(model, part)
        assert (found.lowest <= optimal + 1e-12).all()
        assert (optimal <= found.highest + 1e-12).all()
    assert found.highest[0] - found.lowest[0] < 0.1
    assert found.certified[2] == 1.0
    with Crew(3) as crew:
        shared = measure(model, part, crew)
    for name in ("accuracies", "certified", "lowest", "highest"):
        np.testing.assert_allclose(getattr(shared, name), getattr(found, name))
    # The label that training has not seen is certainly missed, also in a shortlist of all labels.
    assert found.highest[2] == pytest.approx(1 - counts[y_val == 9].sum() / counts.sum())


def test_the_summary_is_the_table(digits):
    X, y, X_val, y_val = digits
    search = TopKClassifierCV(Cs=[0.01, 1.0], ks=(1, 3), **FIXED).fit(
        X, y, X_val=X_val, y_val=y_val
    )
    header, *rows, first, _ = search.summary().splitlines()
    assert header.split() == ["C", "top-1", "%", "top-3", "%", "seconds", "gap"]
    table = search.cv_results_
    for line, C, top1, gap in zip(
        rows, table["C"], table["mean_top1"], table["relative_gap"], strict=True
    ):
        cells = line.replace("*", "").split()
        assert float(cells[0]) == C
        assert float(cells[1]) == pytest.approx(100 * top1, abs=0.005)
        assert cells[4] == f"{gap:.1e}"
        assert line.count("*") == sum(chosen == C for chosen in search.C_.values())
    assert first.startswith(f"k=1: C={search.C_[1]:.4g}. ")
    families = TopKClassifierCV(
        losses=["entropy", "hinge"], Cs=[0.1], ks=(1,), cv=2, scoring="accuracy", **FIXED
    ).fit(X, y)
    text = families.summary()
    assert "loss=hinge, k=1, variant=alpha, smoothing=1.0" in text
    assert " ± " in text
    assert "score" in text


def test_the_summary_promises_nothing_of_tol_where_none_would_help(digits):
    X, y, X_val, y_val = digits
    for options, reason in (
        ({"fit_intercept": "free"}, "With a free intercept nothing bounds"),
        ({"loss": "truncated_entropy", "k": 2}, "A loss that is not convex has no bound"),
    ):
        search = TopKClassifierCV(Cs=[0.01, 1.0], ks=(2,), **options, **FIXED)
        text = search.fit(X, y, X_val=X_val, y_val=y_val).summary()
        assert f"k=2: C={search.C_[2]:.4g}. {reason}" in text
        assert "smaller tol" not in text


def test_a_search_is_a_linear_model_to_others(digits):
    X, y, X_val, y_val = digits
    search = TopKClassifierCV(Cs=[0.1, 1.0], ks=(1, 3), cv=2, **FIXED)
    assert not hasattr(search, "coef_")
    search.fit(X, y)
    model = search.estimators_[1]
    np.testing.assert_array_equal(search.coef_, model.coef_)
    np.testing.assert_array_equal(search.intercept_, model.intercept_)
    assert search.result_ is model.result_
    assert search.n_iter_ == model.n_iter_
    important = np.abs(search.coef_).sum(axis=0)
    selected = SelectFromModel(search, max_features=20, threshold=-np.inf).fit(X, y)
    assert set(np.flatnonzero(selected.get_support())) == set(np.argsort(-important)[:20])
    eliminated = RFE(search, n_features_to_select=20, step=22).fit(X, y)
    assert eliminated.support_.sum() == 20
    assert eliminated.score(X_val, y_val) > 0.7
    torch = pytest.importorskip("torch")
    from shortlist.torch import to_linear

    layer = to_linear(search)
    scores = layer(torch.tensor(X_val)).detach().numpy()
    np.testing.assert_allclose(scores, search.decision_function(X_val), rtol=1e-10)


def test_all_of_it_is_saved_but_functions(digits, tmp_path):
    X, y, X_val, y_val = digits
    search = TopKClassifierCV(
        Cs=[0.1, 1.0], ks=(1, 3), scoring=make_scorer(balanced_accuracy_score), shots=5,
        repeats=2, patience=3, refine=1, normalize="l2", refit="train+val", **FIXED,
    ).fit(X, y, X_val=X_val, y_val=y_val)  # fmt: skip
    with pytest.warns(UserWarning, match="scoring is a function"):
        shortlist.save(search, tmp_path / "m")
    back = shortlist.load(tmp_path / "m")
    assert back.get_params() == {**search.get_params(), "scoring": None}
    assert back.decided_ == search.decided_
    assert back.summary() == search.summary()
    np.testing.assert_array_equal(back.decision_function(X_val), search.decision_function(X_val))


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"patience": 0}, ValueError, "patience must be an integer, 1 or larger or None; got 0"),
        ({"refine": -1}, ValueError, "refine must be an integer, 0 or larger; got -1"),
        ({"refine": None}, ValueError, "refine must be an integer"),
        ({"shots": 1.5}, ValueError, "shots must be an integer, 1 or larger or None"),
        ({"repeats": 0}, ValueError, "repeats must be an integer, 1 or larger; got 0"),
        ({"scoring": "nosuch"}, ValueError, "nosuch"),
        ({"scoring": ["accuracy"]}, TypeError, "scoring must be the name of a scorer"),
        ({"normalize": "l1"}, ValueError, "normalize must be None or 'l2'"),
    ],
)
def test_bad_parameters_are_named(digits, params, error, match):
    with pytest.raises(error, match=match):
        TopKClassifierCV(**params).fit(*digits[:2])
