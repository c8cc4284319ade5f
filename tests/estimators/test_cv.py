"""TopKClassifierCV against explicit loops of cold fits, and what it does with bad input."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupKFold, KFold, PredefinedSplit, StratifiedKFold

import shortlist
from shortlist import TopKClassifier, TopKClassifierCV
from shortlist.estimators import cv_paths

CS = [1e-4, 1e-3, 1e-2, 0.1]
KS = (1, 2, 3)
CLOSE = {"tol": 1e-10, "max_epochs": 5000, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    X, y = make_classification(
        240, 12, n_informative=8, n_classes=6, n_clusters_per_class=1, flip_y=0.2, random_state=1
    )
    return X, np.array(["ant", "bee", "cat", "dog", "elk", "fox"])[y]


def naive_accuracy(model, X, y, k):
    """The share of rows in which fewer than k labels score above the true one."""
    scores = model.decision_function(X)
    own = scores[np.arange(len(y)), np.searchsorted(model.classes_, y)]
    return np.mean((scores > own[:, None]).sum(axis=1) < k)


def cold_table(X, y, splits, Cs, ks, **params):
    """Mean and standard deviation of accuracy by C and k from separate fits."""
    scores = np.array(
        [
            [
                [naive_accuracy(model, X[test], y[test], k) for k in ks]
                for train, test in splits
                for model in [TopKClassifier(C=C, **params).fit(X[train], y[train])]
            ]
            for C in Cs
        ]
    )
    return scores.mean(axis=1), scores.std(axis=1)


@pytest.mark.parametrize(
    "params",
    [{"loss": "entropy"}, {"loss": "smooth_hinge", "k": 2}, {"loss": "ova_logistic"}],
    ids=lambda params: params["loss"],
)
def test_chooses_what_a_loop_of_cold_fits_chooses(data, params):
    X, y = data
    splitter = StratifiedKFold(3)
    search = TopKClassifierCV(
        **params, Cs=CS[::-1], ks=KS, cv=splitter, max_extensions=0, **CLOSE
    ).fit(X, y)
    splits = list(splitter.split(X, y))
    mean, std = cold_table(X, y, splits, CS, KS, **params, **CLOSE)
    np.testing.assert_allclose(search.mean_scores_, mean, rtol=1e-12)
    np.testing.assert_allclose(search.std_scores_, std, atol=1e-12)
    np.testing.assert_array_equal(search.cv_results_["C"], CS)
    for column, k in enumerate(KS):
        best = min(
            C for C, a in zip(CS, mean[:, column], strict=True) if a == mean[:, column].max()
        )
        assert search.C_[k] == best
        np.testing.assert_array_equal(search.cv_results_[f"mean_top{k}"], mean[:, column])
        alone = TopKClassifier(C=best, **params, **CLOSE).fit(X, y)
        np.testing.assert_allclose(search.estimators_[k].coef_, alone.coef_, atol=2e-4)
        np.testing.assert_array_equal(search.predict_topk(X, k), alone.predict_topk(X, k))
    own = search.estimators_[params.get("k", 1)]
    np.testing.assert_array_equal(search.predict(X), own.predict(X))
    np.testing.assert_array_equal(search.decision_function(X), own.decision_function(X))
    assert search.score(X, y) == own.score(X, y)


def test_one_table_over_loss_families_and_the_best_of_it_for_each_k(data):
    X, y = data
    families = ["entropy", {"loss": "smooth_hinge", "k": 3, "smoothing": 0.5}, "ova_hinge"]
    search = TopKClassifierCV(
        losses=families, Cs=CS[1:3], ks=KS, cv=3, max_extensions=0, **CLOSE
    ).fit(X, y)
    table = search.cv_results_
    assert table["loss"].tolist() == ["entropy"] * 2 + ["smooth_hinge"] * 2 + ["ova_hinge"] * 2
    assert table["k"].tolist() == [1, 1, 3, 3, 1, 1]
    assert table["smoothing"][2] == 0.5
    assert table["C"].tolist() == CS[1:3] * 3
    assert all(len(column) == 6 for column in table.values())
    # The middle rows are what that family gives alone.
    alone = TopKClassifierCV(
        "smooth_hinge", k=3, smoothing=0.5, Cs=CS[1:3], ks=KS, cv=3, max_extensions=0, **CLOSE
    ).fit(X, y)
    np.testing.assert_array_equal(search.mean_scores_[2:4], alone.mean_scores_)
    for column, k in enumerate(KS):
        row = int(np.argmax(search.mean_scores_[:, column]))
        assert search.losses_[k]["loss"] == table["loss"][row]
        assert search.C_[k] == table["C"][row]
        assert search.estimators_[k].loss == table["loss"][row]


def test_equal_accuracies_go_to_the_stronger_regularisation_and_the_first_family():
    X = np.repeat(np.eye(4) * 10, 6, axis=0)
    y = np.repeat(np.arange(4), 6)
    search = TopKClassifierCV(
        losses=["smooth_hinge", "entropy"], Cs=[10.0, 0.1, 1.0], ks=(1, 2), cv=3, max_extensions=2
    ).fit(X, y)
    assert (search.mean_scores_ == 1).all()
    # One extension below gained nothing, so there is no second and none above.
    assert sorted(set(search.cv_results_["C"])) == pytest.approx([0.01, 0.1, 1.0, 10.0])
    assert {1: pytest.approx(0.01), 2: pytest.approx(0.01)} == search.C_
    assert search.losses_[1]["loss"] == "smooth_hinge"
    assert search.estimators_[1] is search.estimators_[2]


@pytest.mark.filterwarnings("ignore:the best C:UserWarning")
def test_the_grid_grows_where_the_best_is_at_its_end(data):
    X, y = data
    short = TopKClassifierCV(Cs=[1e-4, 1e-3], ks=(1,), cv=3, max_extensions=3, **CLOSE).fit(X, y)
    assert short.cv_results_["C"].max() > 5e-3
    assert short.mean_scores_.max() > short.mean_scores_[:2].max()
    # Every value, on the path or added later, has the accuracy of a cold fit.
    Cs = short.cv_results_["C"]
    splits = list(StratifiedKFold(3).split(X, y))
    mean, _ = cold_table(X, y, splits, Cs, (1,), **CLOSE)
    np.testing.assert_allclose(short.mean_scores_, mean, rtol=1e-12)
    fixed = TopKClassifierCV(Cs=[1e-4, 1e-3], ks=(1,), cv=3, max_extensions=0, **CLOSE).fit(X, y)
    assert fixed.cv_results_["C"].tolist() == [1e-4, 1e-3]


def test_warns_when_the_bound_ends_the_growth(data):
    X, y = data
    search = TopKClassifierCV(Cs=[1e-4, 1e-3], ks=(1,), cv=3, max_extensions=1, **CLOSE)
    with pytest.warns(UserWarning, match="best C for k=1 is 0.01, the end of the grid"):
        search.fit(X, y)


def test_a_validation_set_is_the_same_as_a_predefined_split(data):
    X, y = data
    part = np.where(np.arange(len(y)) < 160, -1, 0)
    train, held_out = part < 0, part == 0
    params = {"Cs": CS, "ks": KS, "max_extensions": 0, **CLOSE}
    given = TopKClassifierCV(**params).fit(X[train], y[train], X_val=X[held_out], y_val=y[held_out])
    split = TopKClassifierCV(cv=PredefinedSplit(part), refit="train", **params).fit(X, y)
    np.testing.assert_array_equal(given.mean_scores_, split.mean_scores_)
    assert given.C_ == split.C_
    for k in KS:
        # The paper's protocol: the validation set chooses, and is not trained on.
        alone = TopKClassifier(C=given.C_[k], **CLOSE).fit(X[train], y[train])
        np.testing.assert_allclose(given.estimators_[k].coef_, alone.coef_, atol=1e-4)
        np.testing.assert_array_equal(given.estimators_[k].coef_, split.estimators_[k].coef_)
        assert given.C_[k] == given.estimators_[k].C
    everything = TopKClassifierCV(refit="all", **params).fit(
        X[train], y[train], X_val=X[held_out], y_val=y[held_out]
    )
    alone = TopKClassifier(C=everything.C_[1], **CLOSE).fit(X, y)
    np.testing.assert_allclose(everything.estimators_[1].coef_, alone.coef_, atol=1e-4)
    again = TopKClassifierCV(cv=PredefinedSplit(part), **params).fit(X, y)
    np.testing.assert_allclose(again.estimators_[1].coef_, alone.coef_, atol=1e-4)


def test_threads_masks_and_sparse_input_change_nothing(data):
    X, y = data
    params = {"Cs": CS, "ks": KS, "max_extensions": 0, **CLOSE}
    splits = list(KFold(3, shuffle=True, random_state=0).split(X))
    one = TopKClassifierCV(cv=splits, **params).fit(X, y)
    two = TopKClassifierCV(cv=splits, n_jobs=2, **params).fit(X, y)
    np.testing.assert_array_equal(one.mean_scores_, two.mean_scores_)
    np.testing.assert_array_equal(one.estimators_[1].coef_, two.estimators_[1].coef_)
    masks = [tuple(np.isin(np.arange(len(y)), part) for part in split) for split in splits]
    masked = TopKClassifierCV(cv=masks, **params).fit(X, y)
    np.testing.assert_array_equal(one.mean_scores_, masked.mean_scores_)
    rows = TopKClassifierCV(cv=splits, **params).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(rows.mean_scores_, one.mean_scores_)
    np.testing.assert_allclose(rows.estimators_[2].coef_, one.estimators_[2].coef_, atol=1e-4)


def test_short_memory_means_fewer_fits_at_a_time_and_the_same_result(data, monkeypatch):
    X, y = data
    search = TopKClassifierCV(Cs=[1e-5], ks=(1,), cv=3, n_jobs=3, max_extensions=1, **CLOSE)
    plenty = search.fit(X, y).mean_scores_
    asked = []
    monkeypatch.setattr(cv_paths, "available_bytes", lambda: 1)
    monkeypatch.setattr(
        cv_paths, "Parallel", lambda n_jobs, require: asked.append(n_jobs) or _in_turn
    )
    np.testing.assert_array_equal(search.fit(X, y).mean_scores_, plenty)
    assert set(asked) == {1}


def _in_turn(tasks):
    return [function(*args, **kwargs) for function, args, kwargs in tasks]


def test_a_single_feature_gives_models_that_do_not_share_memory():
    X = np.repeat(np.arange(3.0), 10)[:, None] - 1
    y = np.repeat(np.arange(3), 10)
    path = TopKClassifier(**CLOSE).fit_path(X, y, [0.1, 10.0])
    alone = TopKClassifier(C=0.1, **CLOSE).fit(X, y)
    np.testing.assert_allclose(path[0].coef_, alone.coef_, atol=1e-4)


def test_groups_reach_the_splitter(data):
    X, y = data
    groups = np.arange(len(y)) % 4
    search = TopKClassifierCV(Cs=[0.1], ks=(1,), cv=GroupKFold(4), max_extensions=0, **CLOSE)
    search.fit(X, y, groups=groups)
    splits = [(groups != g, groups == g) for g in range(4)]
    mean, _ = cold_table(X, y, splits, [0.1], (1,), **CLOSE)
    np.testing.assert_allclose(search.mean_scores_, mean)


def test_weights_count_in_training_and_in_accuracies(data):
    X, y = data
    rng = np.random.default_rng(0)
    weight = rng.integers(1, 4, len(y))
    again = np.repeat(np.arange(len(y)), weight)
    fold = rng.integers(0, 3, len(y))
    params = {"Cs": CS, "ks": KS, "max_extensions": 0, **CLOSE}
    weighted = TopKClassifierCV(cv=PredefinedSplit(fold), **params).fit(X, y, weight)
    repeated = TopKClassifierCV(cv=PredefinedSplit(fold[again]), **params).fit(X[again], y[again])
    np.testing.assert_allclose(weighted.mean_scores_, repeated.mean_scores_)


def test_a_k_that_was_not_searched_uses_the_nearest_model(data):
    X, y = data
    search = TopKClassifierCV(Cs=CS, ks=(1, 3), cv=3, max_extensions=0, **CLOSE).fit(X, y)
    for k, nearest in [(2, 1), (4, 3), (6, 3)]:
        expected = search.estimators_[nearest].predict_topk(X, k)
        np.testing.assert_array_equal(search.predict_topk(X, k), expected)
    with pytest.raises(ValueError, match="k must"):
        search.predict_topk(X, 7)


def test_probabilities_are_offered_where_the_chosen_loss_has_them(data):
    X, y = data
    search = TopKClassifierCV(Cs=[0.1], ks=(1,), cv=2, max_extensions=0).fit(X, y)
    np.testing.assert_array_equal(search.predict_proba(X), search.estimators_[1].predict_proba(X))
    np.testing.assert_allclose(np.exp(search.predict_log_proba(X)), search.predict_proba(X))
    hinge = TopKClassifierCV("hinge", Cs=[0.1], ks=(1,), cv=2, max_extensions=0)
    assert not hasattr(hinge, "predict_proba")
    assert not hasattr(hinge.fit(X, y), "predict_proba")
    either = TopKClassifierCV(losses=["entropy", "hinge"])
    assert not hasattr(either, "predict_proba")


def test_ks_beyond_the_number_of_classes_are_left_out_with_a_warning(data):
    X, y = data
    search = TopKClassifierCV(Cs=[0.1], cv=2, max_extensions=0)
    with pytest.warns(UserWarning, match="6 classes no model is chosen for k=10") as told:
        search.fit(X, y)
    assert told[0].filename == __file__
    assert search.ks_ == (1, 3, 5)


def test_a_class_missing_from_a_training_fold_counts_as_an_error(data):
    X, y = data
    fold = np.where(y == "ant", 0, np.arange(len(y)) % 3)
    search = TopKClassifierCV(
        Cs=[0.1], ks=(1, 5), cv=PredefinedSplit(fold), max_extensions=0, **CLOSE
    )
    with pytest.warns(UserWarning, match="split 1 of cv 'ant'"):
        search.fit(X, y)
    model = TopKClassifier(C=0.1, **CLOSE).fit(X[fold != 0], y[fold != 0])
    known = (fold == 0) & (y != "ant")
    right = naive_accuracy(model, X[known], y[known], 1) * known.sum() / (fold == 0).sum()
    others = [
        naive_accuracy(TopKClassifier(C=0.1, **CLOSE).fit(X[a], y[a]), X[~a], y[~a], 1)
        for a in (fold != 1, fold != 2)
    ]
    assert search.mean_scores_[0, 0] == pytest.approx(np.mean([right, *others]))
    # Fold 1 knows five classes: a shortlist of five is right for all but the missing one.
    assert search.mean_scores_[0, 1] < 1
    assert len(search.classes_) == 6


def test_one_warning_for_all_fits_that_did_not_converge(data):
    X, y = data
    search = TopKClassifierCV(Cs=[1.0, 100.0], ks=(1,), cv=3, max_extensions=0, max_epochs=1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    told = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    assert {w.filename for w in told} == {__file__}
    searched = [str(w.message) for w in told if "fits of the search" in str(w.message)]
    assert len(searched) == 1
    assert searched[0].startswith("6 of 6 fits")
    gaps = search.cv_results_["relative_gap"]
    worst = search.cv_results_["C"][gaps.argmax()]
    assert f"duality gap is {gaps.max():.2g}, at C={worst:g}." in searched[0]
    # The other is about the final model itself.
    assert len(told) == 2


def test_a_search_of_a_loss_without_a_dual_speaks_of_no_gap(data):
    X, y = data
    search = TopKClassifierCV(
        "truncated_entropy", k=2, Cs=[1.0, 100.0], ks=(1,), cv=3, max_extensions=0, max_epochs=1
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, y)
    (searched,) = [str(w.message) for w in caught if "fits of the search" in str(w.message)]
    assert searched.startswith("6 of 6 fits")
    assert "gap" not in searched


def test_progress_is_written_for_every_fit(data, capsys):
    X, y = data
    TopKClassifierCV(Cs=[0.1, 1], ks=(1, 3), cv=2, max_extensions=0, verbose=1).fit(X, y)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("entropy k=1, fold 1, C=0.1: top-1 0.")
    given = TopKClassifierCV(Cs=[0.1], ks=(1,), max_extensions=0, verbose=1)
    given.fit(X[:160], y[:160], X_val=X[160:], y_val=y[160:])
    assert capsys.readouterr().err.startswith("entropy k=1, C=0.1: top-1 0.")


@pytest.mark.parametrize(
    ("params", "error", "match"),
    [
        ({"Cs": []}, ValueError, "Cs must hold at least one"),
        ({"Cs": [1.0, -1.0]}, ValueError, "every C in Cs must be a positive finite number; got -1"),
        ({"Cs": [np.nan]}, ValueError, "every C in Cs"),
        ({"Cs": ["1"]}, ValueError, "every C in Cs"),
        ({"Cs": 0}, ValueError, "Cs must be at least 1"),
        ({"Cs": 1.5}, TypeError, "Cs must be a list"),
        ({"ks": []}, ValueError, "ks must hold at least one"),
        ({"ks": (0, 1)}, ValueError, "every k in ks"),
        ({"ks": (1.5,)}, ValueError, "every k in ks"),
        ({"ks": "13"}, TypeError, "ks must be a list"),
        ({"ks": (6, 7)}, ValueError, "below the number of classes, 6"),
        ({"k": 6}, ValueError, "number of classes less one, here 5"),
        ({"losses": []}, ValueError, "losses must hold at least one"),
        (
            {"losses": [{"loss": "hinge", "k": 1}], "k": 99},
            ValueError,
            r"less one\); got 99",
        ),
        ({"losses": "entropy"}, TypeError, "losses must be a list"),
        ({"losses": [3]}, TypeError, "every entry of losses"),
        ({"losses": [{"C": 1}]}, ValueError, "a family in losses may set .*; got 'C'"),
        ({"losses": [{"loss": "smooth_hinge", "kk": 1}]}, ValueError, "got 'kk'"),
        ({"losses": ["nosuch"]}, ValueError, "unknown loss 'nosuch'"),
        ({"refit": "some"}, ValueError, "refit must be"),
        ({"refit": "train"}, ValueError, "needs a single split"),
        ({"max_extensions": -1}, ValueError, "max_extensions"),
        ({"tol": 0}, ValueError, "tol must be"),
        ({"cv": 1}, ValueError, "n_splits=2 or more"),
    ],
)
def test_bad_parameters_are_named(data, params, error, match):
    with pytest.raises(error, match=match):
        TopKClassifierCV(**{"Cs": [0.1], "ks": (1,), **params}).fit(*data)


def test_bad_folds_and_validation_sets_are_named(data):
    X, y = data
    small = TopKClassifierCV("smooth_hinge", k=4, Cs=[0.1], ks=(1,))
    few = np.where(np.isin(y, ["ant", "bee"]), 0, 1)
    with pytest.raises(ValueError, match=r"split 1 of cv holds 4 of the 6 classes; .* at least 5"):
        small.set_params(cv=PredefinedSplit(few)).fit(X, y)
    alone = np.where(y == "ant", 0, 1)
    with pytest.raises(ValueError, match=r"split 2 of cv holds 1 class\(es\)"):
        small.set_params(k=1).set_params(cv=PredefinedSplit(alone)).fit(X, y)
    weight = (np.arange(len(y)) >= 80).astype(float)
    with pytest.raises(ValueError, match="split 1 of cv holds out no example with a positive"):
        TopKClassifierCV(Cs=[0.1], ks=(1,), cv=KFold(3)).fit(X, y, weight)
    plain = TopKClassifierCV(Cs=[0.1], ks=(1,))
    with pytest.raises(ValueError, match="cv makes no split"):
        plain.set_params(cv=PredefinedSplit(np.full(len(y), -1))).fit(X, y)
    plain.set_params(cv=None)
    with pytest.raises(ValueError, match="y_val is missing"):
        plain.fit(X, y, X_val=X)
    with pytest.raises(ValueError, match="X_val is missing"):
        plain.fit(X, y, y_val=y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        plain.fit(X, y, X_val=X, y_val=y[:-1])
    with pytest.raises(ValueError, match="X has 11 features"):
        plain.fit(X, y, X_val=X[:, 1:], y_val=y)
    with pytest.warns(UserWarning, match="the validation set 'yak'"):
        plain.fit(X, y, X_val=X, y_val=np.where(y == "ant", "yak", y))


def test_saving_leaves_out_a_splitter_and_keeps_the_table(data, tmp_path):
    X, y = data
    search = TopKClassifierCV(
        Cs=CS[:2], ks=KS, cv=KFold(3), losses=["entropy", "hinge"], max_extensions=0
    ).fit(X, y)
    with pytest.warns(UserWarning, match="cv is a splitter"):
        shortlist.save(search, tmp_path / "m")
    back = shortlist.load(tmp_path / "m")
    assert back.cv is None
    assert back.C_ == search.C_
    assert back.losses_ == search.losses_
    assert list(back.cv_results_) == list(search.cv_results_)
    for name, column in search.cv_results_.items():
        np.testing.assert_array_equal(back.cv_results_[name], column)
    np.testing.assert_array_equal(back.std_scores_, search.std_scores_)
    for k in KS:
        np.testing.assert_array_equal(back.predict_topk(X, k), search.predict_topk(X, k))
