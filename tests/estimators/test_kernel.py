"""KernelTopKClassifier against the linear estimator, explicit kernels and cvxpy."""

import warnings

import cvxpy as cp
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import normalize
from sklearn.svm import SVC

import shortlist
from shortlist import KernelTopKClassifier, TopKClassifier
from shortlist.datasets import load_letter
from shortlist.estimators import kernel as kernel_module
from shortlist.estimators.kernel_matrix import KernelFunction, KernelMatrix, resolve_gamma

CLOSE = {"tol": 1e-9, "max_epochs": 20_000, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(5), 16)
    X = rng.normal(size=(80, 6)) + 1.5 * np.eye(5, 6)[y]
    return X, np.array(["ant", "bee", "cat", "dog", "elk"])[y]


@pytest.mark.parametrize(
    "params",
    [
        {"loss": "entropy"},
        {"loss": "entropy", "k": 2},
        {"loss": "hinge", "k": 3},
        {"loss": "smooth_hinge", "k": 2, "variant": "beta"},
        {"loss": "ova_logistic", "fit_intercept": False},
        {"loss": "smooth_hinge", "intercept_scaling": 3.0, "class_weight": "balanced"},
    ],
    ids=str,
)
def test_linear_kernel_equals_the_linear_estimator(data, params):
    X, y = data
    weight = np.random.default_rng(1).uniform(0, 2, len(y))
    linear = TopKClassifier(**params, C=0.3, **CLOSE).fit(X, y, weight)
    kernel = KernelTopKClassifier(**params, C=0.3, kernel="linear", **CLOSE).fit(X, y, weight)
    assert kernel.result_.primal == pytest.approx(linear.result_.primal, rel=1e-8)
    assert kernel.result_.relative_gap <= 1e-9
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=2e-3)
    np.testing.assert_allclose(kernel.intercept_, linear.intercept_, atol=1e-3)
    weights = kernel.dual_coef_.T @ kernel.support_vectors_
    np.testing.assert_allclose(weights, linear.coef_, atol=1e-3)


def test_precomputed_and_callable_kernels_equal_the_named_one(data):
    X, y = data
    gamma = 0.2
    params = {"loss": "smooth_hinge", "k": 2, "C": 2.0, **CLOSE}
    named = KernelTopKClassifier(kernel="rbf", gamma=gamma, **params).fit(X, y)
    own = KernelTopKClassifier(kernel=lambda A, B: rbf_kernel(A, B, gamma), **params).fit(X, y)
    K = rbf_kernel(X, X, gamma)
    given = KernelTopKClassifier(kernel="precomputed", **params).fit(K, y)
    new = X[:7] + 0.1
    expected = named.decision_function(new)
    np.testing.assert_allclose(own.decision_function(new), expected, atol=1e-12)
    np.testing.assert_allclose(
        given.decision_function(rbf_kernel(new, X, gamma)), expected, atol=1e-12
    )
    np.testing.assert_array_equal(given.support_, named.support_)
    assert given.support_vectors_.shape == (0, 80)


def test_the_cosine_is_the_linear_kernel_of_rows_of_length_one(data):
    X, y = data
    X = np.r_[X, np.zeros((1, X.shape[1]))]  # a row without a direction
    y = np.r_[y, y[:1]]
    params = {"loss": "smooth_hinge", "k": 2, "C": 2.0, **CLOSE}
    cosine = KernelTopKClassifier(kernel="cosine", **params).fit(X, y)
    units = normalize(X)
    linear = KernelTopKClassifier(kernel="linear", **params).fit(units, y)
    expected = linear.decision_function(units)
    # Both are within sqrt(2 gap) of the optimum, and rows have length one.
    close = sum(np.sqrt(2.0 * model.result_.gap) for model in (cosine, linear))
    assert close < 1e-2
    np.testing.assert_allclose(cosine.decision_function(X), expected, rtol=0, atol=close)
    own = cosine.decision_function(X)
    np.testing.assert_allclose(cosine.decision_function(7 * X), own, atol=1e-12)


def test_the_objective_is_that_of_cvxpy(data):
    X, y = data
    X, y = X[::2], y[::2]
    codes = np.unique(y, return_inverse=True)[1]
    C, k, gamma = 1.5, 2, 0.3
    model = KernelTopKClassifier("hinge", k=k, C=C, gamma=gamma, **CLOSE).fit(X, y)
    assert model.result_.status == "converged"
    K = rbf_kernel(X, X, gamma) + 1.0  # the intercept's constant
    root = np.linalg.cholesky(K + 1e-10 * np.eye(len(y)))
    W = cp.Variable((len(y), 5))
    F = root @ W
    losses = []
    for i, c in enumerate(codes):
        others = [j for j in range(5) if j != c]
        losses.append(cp.pos(cp.sum_largest(1 + F[i, others] - F[i, c], k) / k))
    problem = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(W) + C * sum(losses)))
    problem.solve(solver=cp.CLARABEL)
    assert model.result_.primal == pytest.approx(problem.value, rel=1e-6)
    assert model.result_.dual <= problem.value * (1 + 1e-6)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_rounding_does_not_keep_the_gap_of_a_hinge(data, k):
    """Joint steps that gain nothing but rounding would undo the last digits of the visits."""
    X, y = data[0][::2], data[1][::2]
    model = KernelTopKClassifier("hinge", k=k, C=1.5, gamma=0.3, **{**CLOSE, "max_epochs": 1000})
    assert model.fit(X, y).result_.status == "converged"


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
def test_small_caches_change_nothing(data, kernel, dtype):
    X, y = data
    X = X.astype(dtype)
    params = {"kernel": kernel, "C": 0.5, "coef0": 1.0, "tol": 1e-5, "random_state": 0}
    whole = KernelTopKClassifier("smooth_hinge", **params).fit(X, y)
    function = KernelFunction(kernel, resolve_gamma("scale", X), coef0=1.0)
    length = np.sqrt(function.diagonal(X) + 1.0).max()  # with the constant feature
    for cache_size in (0, 0.01):
        part = KernelTopKClassifier("smooth_hinge", cache_size=cache_size, **params).fit(X, y)
        # Both are within sqrt(2 gap) of the optimum; they take different ways there.
        close = length * sum(np.sqrt(2.0 * model.result_.gap) for model in (part, whole))
        np.testing.assert_allclose(
            part.decision_function(X), whole.decision_function(X), rtol=0, atol=close
        )
        assert close < 0.5 * np.abs(whole.decision_function(X)).max()
    assert whole.decision_function(X).dtype == dtype


def test_as_many_rows_are_kept_as_the_cache_holds():
    X = np.random.default_rng(0).normal(size=(40, 3))
    function = KernelFunction("rbf", 0.5)
    K = rbf_kernel(X, X, 0.5)
    for rows in (0, 13, 40):
        matrix = KernelMatrix(function, X, np.dtype(float), rows * 40 * 8 + 100)
        assert matrix.kept == rows
        for indices in (np.arange(40), np.array([39, 0, 20, 12, 13]), np.arange(5, 9)):
            np.testing.assert_allclose(matrix(indices), K[indices], rtol=1e-12)
        np.testing.assert_allclose(matrix.diagonal, 1.0)


@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_kernel_values_and_diagonals(name):
    X = np.random.default_rng(0).normal(size=(300, 4))
    expected = {
        "linear": X @ X.T,
        "rbf": rbf_kernel(X, X, 0.7),
        "poly": polynomial_kernel(X, X, 2, 0.7, 1.5),
    }[name]
    function = KernelFunction(name, 0.7, 2, 1.5)
    np.testing.assert_allclose(function(X, X), expected, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(function.diagonal(X), np.diagonal(expected))
    own = KernelFunction(lambda A, B: function(A, B))
    np.testing.assert_allclose(own.diagonal(X), np.diagonal(expected))
    np.testing.assert_allclose(function(sparse.csr_array(X), sparse.csr_array(X)), expected)


def test_gamma_is_that_of_svc(data):
    X, y = data
    for gamma in ("scale", "auto", 0.3):
        assert resolve_gamma(gamma, X) == pytest.approx(SVC(gamma=gamma).fit(X, y)._gamma)
    assert resolve_gamma("scale", sparse.csr_array(X)) == pytest.approx(resolve_gamma("scale", X))
    assert resolve_gamma("scale", np.ones((3, 2))) == 1.0
    weight = np.arange(len(y)) % 3
    again = np.repeat(X, weight, axis=0)
    for rows in (X, sparse.csr_array(X)):
        assert resolve_gamma("scale", rows, weight) == pytest.approx(resolve_gamma("scale", again))


def test_sparse_rows_give_the_same_model(data):
    X, y = data
    X = np.where(np.abs(X) < 0.7, 0, X)
    dense = KernelTopKClassifier("smooth_hinge", **CLOSE).fit(X, y)
    rows = KernelTopKClassifier("smooth_hinge", **CLOSE).fit(sparse.csr_array(X), y)
    np.testing.assert_allclose(
        rows.decision_function(sparse.csr_array(X)), dense.decision_function(X), atol=1e-6
    )
    assert sparse.issparse(rows.support_vectors_)


def test_support_vectors_are_pruned_for_hinges_and_prediction_is_unchanged():
    X, y = load_digits(return_X_y=True)
    X, y = X[:600] / 16, y[:600]
    hinge = KernelTopKClassifier("hinge", C=10, gamma=0.05, random_state=0).fit(X, y)
    assert 0 < len(hinge.support_) < 0.7 * len(y)
    assert hinge.dual_coef_.shape == (len(hinge.support_), 10)
    np.testing.assert_array_equal(hinge.support_vectors_, X[hinge.support_])
    assert (np.abs(hinge.dual_coef_).sum(axis=1) > 0).all()
    # f_j(x) = sum over the support of a_ij K(x, x_i) + intercept, and no other example matters.
    K = rbf_kernel(X, X[hinge.support_], 0.05)
    np.testing.assert_allclose(
        hinge.decision_function(X), K @ hinge.dual_coef_ + hinge.intercept_, atol=1e-10
    )
    np.testing.assert_allclose(hinge.intercept_, hinge.dual_coef_.sum(axis=0), atol=1e-12)
    entropy = KernelTopKClassifier(C=1, gamma=0.05, random_state=0).fit(X, y)
    assert len(entropy.support_) == len(y)


def test_prediction_in_chunks(data, monkeypatch):
    X, y = data
    model = KernelTopKClassifier("smooth_hinge", **CLOSE).fit(X, y)
    whole = model.decision_function(X)
    sizes = []

    def small(n, row_bytes):
        for begin in range(0, n, 7):
            sizes.append(min(7, n - begin))
            yield slice(begin, begin + sizes[-1])

    monkeypatch.setattr(kernel_module, "chunks", small)
    np.testing.assert_allclose(model.decision_function(X), whole, atol=1e-12)
    assert sizes == [7] * 11 + [3]


def test_a_path_over_C_gives_the_fits(data):
    X, y = data
    Cs = [3.0, 0.1, 1.0]
    seen = []
    path = KernelTopKClassifier("smooth_hinge", k=2, **CLOSE).fit_path(
        X, y, Cs, callback=lambda model: seen.append(model.C)
    )
    assert [model.C for model in path] == Cs
    assert seen == sorted(Cs)
    for model in path:
        alone = KernelTopKClassifier("smooth_hinge", k=2, C=model.C, **CLOSE).fit(X, y)
        assert model.result_.relative_gap <= 1e-9
        np.testing.assert_allclose(
            model.decision_function(X), alone.decision_function(X), atol=1e-3
        )
    with pytest.raises(ValueError, match="Cs must hold at least one"):
        KernelTopKClassifier().fit_path(X, y, [])
    with pytest.raises(ValueError, match="every C in Cs"):
        KernelTopKClassifier().fit_path(X, y, [1.0, -1.0])


def test_a_path_leaves_its_template_alone_and_models_share_nothing(data):
    X, y = data
    template = KernelTopKClassifier(random_state=0)
    models = template.fit_path(X, y, [1.0, 0.1, 1.0])
    assert vars(template) == vars(KernelTopKClassifier(random_state=0))
    names = ("dual_coef_", "support_vectors_", "intercept_", "classes_")
    for i, one in enumerate(models):
        for other in models[i + 1 :]:
            assert not any(np.shares_memory(getattr(one, n), getattr(other, n)) for n in names)
    np.testing.assert_array_equal(models[0].predict(X), models[2].predict(X))


def test_letter_is_learned_far_better_than_by_a_linear_model():
    letter = load_letter(dtype=np.float32)
    X, y = letter.X_train[:2000], letter.y_train[:2000]
    model = KernelTopKClassifier("smooth_hinge", C=10, gamma=2.0, tol=1e-2, random_state=0)
    accuracy = np.mean(model.fit(X, y).predict(letter.X_val) == letter.y_val)
    reference = SVC(C=10, gamma=2.0).fit(X, y).score(letter.X_val, letter.y_val)
    assert accuracy > 0.85
    assert accuracy > reference - 0.02


def test_a_precomputed_kernel_is_sliced_on_both_sides_in_cross_validation(data):
    X, y = data
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    params = {"loss": "smooth_hinge", "gamma": 0.2, "tol": 1e-6, "random_state": 0}
    named = cross_val_score(KernelTopKClassifier(**params), X, y, cv=3)
    given = cross_val_score(
        KernelTopKClassifier(kernel="precomputed", **params), rbf_kernel(X, X, 0.2), y, cv=3
    )
    np.testing.assert_allclose(given, named)


@pytest.mark.parametrize(
    ("params", "match"),
    [
        ({"kernel": "sigmoid"}, "kernel must be one of"),
        ({"gamma": -1.0}, "gamma must be"),
        ({"gamma": "wide"}, "gamma must be"),
        ({"kernel": "poly", "degree": -1}, "degree must be"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0 must be"),
        ({"cache_size": -1}, "cache_size must be"),
        ({"C": -1.0}, "C must be a positive"),
        ({"k": 5}, "number of classes less one, here 4"),
        ({"loss": "truncated_entropy", "k": 2}, "no kernel version"),
        ({"kernel": "precomputed"}, "must be the square matrix"),
        ({"kernel": lambda A, B: np.zeros(3)}, "must return one number for each pair"),
        ({"kernel": lambda A, B: np.full((len(A), len(B)), np.nan)}, "finite real numbers"),
        ({"kernel": lambda A, B: -laplacian_kernel(A, B)}, "not positive semidefinite"),
    ],
    ids=lambda value: str(value)[:30],
)
def test_bad_parameters_are_named(data, params, match):
    with pytest.raises(ValueError, match=match):
        KernelTopKClassifier(**params).fit(*data)


def test_a_matrix_that_is_not_symmetric_is_refused(data):
    _, y = data
    K = np.random.default_rng(0).normal(size=(80, 80))
    with pytest.raises(ValueError, match="must be symmetric"):
        KernelTopKClassifier(kernel="precomputed").fit(K, y)


def test_too_little_memory_is_said_before_training(data, monkeypatch):
    X, y = data
    monkeypatch.setattr(kernel_module, "available_bytes", lambda: 1 << 20)
    with pytest.raises(MemoryError, match=r"80 examples and 5 classes .* smaller cache_size"):
        KernelTopKClassifier().fit(X, y)


@pytest.mark.parametrize("kind", ["dense", "sparse", "precomputed"])
def test_saving_and_loading(data, tmp_path, kind):
    X, y = data
    params = {"kernel": "rbf"}
    if kind == "sparse":
        X = sparse.csr_matrix(X)
    elif kind == "precomputed":
        X, params = rbf_kernel(X, X), {"kernel": "precomputed"}
    model = KernelTopKClassifier("smooth_hinge", k=2, **params).fit(X, y)
    shortlist.save(model, tmp_path / "m")
    back = shortlist.load(tmp_path / "m")
    np.testing.assert_array_equal(back.decision_function(X), model.decision_function(X))
    assert back.result_ == model.result_
    assert back.gamma_ == model.gamma_
    np.testing.assert_array_equal(back.support_, model.support_)
    own = KernelTopKClassifier(kernel=rbf_kernel).fit(data[0], y)
    with pytest.raises(TypeError, match="kernel cannot be saved"):
        shortlist.save(own, tmp_path / "other")


def test_probabilities_come_with_the_entropy(data):
    X, y = data
    model = KernelTopKClassifier(C=10, **CLOSE).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    assert not hasattr(KernelTopKClassifier("hinge"), "predict_proba")


def test_an_unfinished_fit_is_told_and_a_callback_may_stop(data):
    from sklearn.exceptions import ConvergenceWarning

    X, y = data
    with pytest.warns(ConvergenceWarning, match="relative duality gap"):
        KernelTopKClassifier(C=100, tol=1e-9, max_epochs=2).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stopped = KernelTopKClassifier(C=100, tol=1e-9).fit(
            X, y, callback=lambda progress: progress.epoch >= 3
        )
    assert stopped.result_.status == "stopped"
    assert stopped.result_.epochs == 3


def test_a_warm_start_goes_on_from_the_duals_at_another_C(data):
    X, y = data
    params = {"loss": "smooth_hinge", "k": 2, "tol": 1e-6, "random_state": 0}
    model = KernelTopKClassifier(C=2.0, warm_start=True, **params).fit(X, y)
    assert model.fit(X, y).result_.epochs == 0
    warm = model.set_params(C=2.2).fit(X, y)
    cold = KernelTopKClassifier(C=2.2, **params).fit(X, y)
    assert warm.result_.epochs < cold.result_.epochs
    assert warm.result_.primal == pytest.approx(cold.result_.primal, rel=2e-6)
    # Other labels, another loss: a cold start.
    other = model.set_params(loss="entropy").fit(X, y[::-1])
    expected = KernelTopKClassifier(C=2.2, **params | {"loss": "entropy"}).fit(X, y[::-1])
    assert other.result_.primal == expected.result_.primal


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_the_history_has_the_accuracy_on_held_out_data(data, kernel):
    X, y = data
    train, held = (X[::2], X[1::2])
    if kernel == "precomputed":
        train, held = rbf_kernel(X[::2], X[::2], 0.2), rbf_kernel(X[1::2], X[::2], 0.2)
    model = KernelTopKClassifier("smooth_hinge", k=2, kernel=kernel, gamma=0.2, random_state=0)
    model.fit(train, y[::2], X_val=held, y_val=y[1::2])
    assert model.result_.history[-1].accuracy == model.score(held, y[1::2])
    with pytest.raises(ValueError, match="go together"):
        model.fit(train, y[::2], X_val=held)
