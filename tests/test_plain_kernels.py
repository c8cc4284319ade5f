"""Kernels as plain Python, by NUMBA_DISABLE_JIT=1: all run, with the results of compiled ones."""

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import shortlist
from shortlist.solvers.storage import support
from tests.instances import INSTANCES
from tests.processes import run

# Kernels that cannot run as Python, and why.
EXCEPTIONS = {
    "_blas": "calls of BLAS from compiled code; NumPy's products take their place",
    "_native": "machine instructions; functions in plain Python take their place",
    "solvers.kernels.visit.assist_blocks": "for threads, and kernels as Python run in one",
}

# Tells which kernels are called. It must come before all imports of kernels.
RECORDING = """
import functools
from shortlist import _jit

kernels_called = set()

def njit(function=None, **options):
    if function is None:
        return lambda f: njit(f, **options)
    title = f"{function.__module__.removeprefix('shortlist.')}.{function.__qualname__}"

    def recorded(*arguments, **named):
        kernels_called.add(title)
        return function(*arguments, **named)

    return functools.update_wrapper(recorded, function)

_jit.njit = njit
"""

LOSSES_AND_FITS = """
import json, tempfile
import numpy as np
from scipy import sparse
from shortlist import KernelTopKClassifier, TopKClassifier, losses
from shortlist.estimators import limited
from shortlist.solvers.placing import Placing
from shortlist.solvers.storage import support
from shortlist.solvers.strategy import descents, train

found = {}
for name, parameters, scores, labels in json.loads(CASES):
    loss = losses.get(name, **parameters)
    for dtype in ("float32", "float64"):
        f = np.array(scores, dtype)
        results = [loss.value(f, labels), loss.gradient(f, labels)]
        if loss.has_dual_step:
            v = loss.dual_step(f, labels, 0.7)
            results += [v, loss.conjugate(v, labels)]
        found[f"{name} {parameters} {dtype}"] = [np.asarray(r).tolist() for r in results]

support.ROUNDS_PER_JOINT_STEP = 0.0  # a step after every round: these fits take few rounds
rng = np.random.default_rng(0)
y = np.arange(24) % 4
X = rng.normal(size=(24, 6)) * (rng.random((24, 6)) < 0.7)
X[np.arange(24), y] += 2
for name in ("entropy", "smooth_hinge", "hinge"):
    for data in (X, sparse.csr_array(X), X.astype(np.float32)):
        model = TopKClassifier(name, C=0.1, tol=1e-5, random_state=0).fit(data, y)
        assert model.result_.status == "converged"
        title = f"fit {name} {type(data).__name__} {data.dtype}"
        found[title] = [model.coef_.tolist(), model.result_.primal]

# The other storages and strategies: inner products, pieces on disk, several labels, multipliers.
place = limited.place
limited.place = lambda *_: Placing(7 * 6 * 8, "memory", None)  # pieces of seven rows
called = []
solve, patience = descents.solve_by_multipliers, train.EPOCHS_BEFORE_MULTIPLIERS
train.EPOCHS_BEFORE_MULTIPLIERS = 2.0
descents.solve_by_multipliers = lambda *a: (called.append(1), solve(*a))[1]
several = np.eye(4, dtype=int)[y] | np.eye(4, dtype=int)[(y + 1) % 4]
with tempfile.NamedTemporaryFile(suffix=".npy") as file:
    np.save(file, X)
    file.flush()
    on_disk = np.load(file.name, mmap_mode="r")
    for title, model, data, labels in [
        ("kernel", KernelTopKClassifier("smooth_hinge", k=2, kernel="rbf"), X, y),
        ("pieces", TopKClassifier("smooth_hinge", memory_limit="1GB"), on_disk, y),
        ("several", TopKClassifier("smooth_hinge", k=2), X, several),
        ("multipliers", TopKClassifier("hinge"), X, y),
    ]:
        cost = 10.0 if title == "multipliers" else 0.1
        model.set_params(C=cost, tol=1e-5, random_state=0).fit(data, labels)
        assert model.result_.status == "converged"
        assert ("pieces" in getattr(model, "memory_plan_", "")) == (title == "pieces")
        assert len(called) == (title == "multipliers")
        found[f"fit {title}"] = [model.decision_function(X).tolist(), model.result_.primal]
descents.solve_by_multipliers, train.EPOCHS_BEFORE_MULTIPLIERS = solve, patience
limited.place = place
"""

OTHER_KERNELS = """
from shortlist import projections, special
from shortlist.distributed import sums
from shortlist.distributed.rounds import Sigma
from shortlist.solvers import duals, memory
from shortlist.solvers.problem import Problem
from shortlist.solvers.storage import Costs, CsrStorage, DenseStorage, GramStorage, feature_support
from shortlist.solvers.strategy import changed_data, hessian, multipliers
from shortlist.solvers.strategy.path import Path

rng = np.random.default_rng(0)
X, y = X[:16], y[:16]


def problem_of(loss, C=1.0, kind="dense", dtype=float, x=X, y=y):
    x, m = x.astype(dtype), 4 if y.ndim > 1 else int(y.max()) + 1
    if kind == "csr":
        storage = CsrStorage(sparse.csr_array(x), 1.0)
    elif "gram" in kind:
        K = x @ x.T
        whole = K if kind == "whole gram" else None
        storage = GramStorage(lambda rows: K[rows], np.diag(K).copy(), K.dtype, 1.0, whole)
    else:
        storage = DenseStorage(np.ascontiguousarray(x), 1.0, 5 if kind == "blocks" else None)
    return Problem(storage, Costs(y, np.full(len(y), C)), m, loss)


def fit(title, problem):
    # Duals of inner products are not unique. Scores are, once they are converged.
    explicit = problem.storage.explicit
    tol, epochs = (1e-3, 30) if explicit else (1e-10, 300)
    solution = train.train(problem, tol=tol, max_epochs=epochs, seed=0)
    found_here = solution.weights if explicit else X @ (X.T @ solution.weights)
    found[f"fit {title}"] = [found_here.tolist(), solution.result.primal]


smooth, hinge, entropy = losses.get("smooth_hinge", k=2), losses.get("hinge"), losses.get("entropy")
ordered = losses.get("smooth_hinge", rank_weights=(0.6, 0.4))

# Blocks, whose changes are listed where classes are many.
many = np.arange(40) % 20
for loss in (hinge, entropy):
    fit(f"blocks {loss.name}", problem_of(loss, 0.1, "blocks"))
    fit(f"gram {loss.name}", problem_of(loss, 0.1, "gram"))
few = problem_of(hinge, 0.1, "blocks", x=rng.normal(size=(40, 5)), y=many)
train.train(few, tol=1e-9, max_epochs=3, seed=0)

# Models of the Hessian, gradients and bounds on their rounding.
W = 0.1 * rng.normal(size=(X.shape[1] + 1, 4))
beta, logistic = losses.get("smooth_hinge"), losses.get("ova_logistic")
for loss in (entropy, smooth, beta, losses.get("entropy", k=2), ordered, logistic):
    title = f"{loss.name} {loss.k} {type(loss.spec).__name__}"
    problem = problem_of(loss, 10.0)
    for kind in (hessian.Kind.COUPLED, hessian.Kind.LISTED):
        model = hessian.make_model(problem, W, hessian.Plan(kind, len(y)))
        found[f"fit model {title} {kind}"] = [model.solve(W).tolist()]
    for dtype in ("float32", "float64") if loss.log_lipschitz else ():
        own = problem_of(loss, 10.0, dtype=dtype)
        for scale in (1e-3, 1.0):
            value, gradient, _ = own.bounded_gradient((scale * W).astype(dtype), keep=True)
            found[f"gradient {title} {scale} {dtype}"] = [value, gradient.tolist()]

# Multipliers by differences of dual steps, a path over C, the weights of new classes.
problem = problem_of(losses.get("hinge", rank_weights=(0.6, 0.4)))
near = multipliers._NearDuals(problem, np.zeros((len(y), 4)), 0.1)
point = near.at(W)
found["fit slopes"] = [near.newton_step(point).tolist()]
path = Path(problem_of(smooth, kind="csr"), 1e-3, 30, seed=0)
found["fit path"] = [path.solve(C).weights.tolist() for C in (0.1, 0.3)]
for kind in ("csr", "dense"):
    weights = W.copy()
    changed_data.train_new_classes(problem_of(entropy, kind=kind), weights, np.array([1, 3]))
    found[f"fit new classes {kind}"] = [weights.tolist()]

# Lists of duals, listed entries of an array, joint steps with features and inner products.
bounds = ("MIN_CLASSES_TO_LIST", "MIN_EXAMPLES_PER_FEATURE_FOR_JOINT_STEPS", "PASSES_OVER_WEIGHTS")
usual = {name: getattr(feature_support, name) for name in bounds}
large = memory.MAX_DENSE_DUAL_BYTES
vars(feature_support).update(dict.fromkeys(bounds, 0))
pairs = np.column_stack([y, (y + 1) % 4])
several = losses.get("smooth_hinge", multilabel=True)
for memory.MAX_DENSE_DUAL_BYTES in (0, large):
    for kind in ("dense", "csr"):
        fit(f"lists {memory.MAX_DENSE_DUAL_BYTES} {kind}", problem_of(smooth, 1.0, kind))
    fit(f"lists of several {memory.MAX_DENSE_DUAL_BYTES}", problem_of(several, y=pairs))
feature_support.MIN_CLASSES_TO_LIST = usual["MIN_CLASSES_TO_LIST"]
for kind in ("dense", "csr"):
    fit(f"joint steps of an array, {kind}", problem_of(hinge, 1.0, kind))
vars(feature_support).update(usual)
lists = duals.SparseDuals(3, 4, float)
duals.store(lists, slice(0, 3), y[:3], W[:3])
duals._compact(duals.writable(lists, 1), np.arange(3))
found["lists"] = [lists.toarray().tolist()]
fit("inner products", problem_of(hinge, 1.0, "whole gram"))
fit("margins", problem_of(losses.get("smooth_hinge", margins=[1.0, 2.0, 1.0, 0.5])))

# Several labels, projections, special functions, sums of workers' changes.
f = rng.normal(size=(3, 4))
indicator = np.array([[1, 0, 1, 0], [0, 1, 0, 0], [0, 1, 1, 0]])
cases = [("entropy", {}), ("hinge", {}), ("hinge", {"k": 2}), ("smooth_hinge", {"k": 2})]
for name, more in [*cases, ("smooth_hinge", {"k": 2, "variant": "beta"})]:
    loss = losses.get(name, multilabel=True, **more)
    v = loss.dual_step(f, indicator, 0.7)
    results = [*loss.value_and_gradient(f, indicator), v, loss.conjugate(v, indicator)]
    found[f"several {name} {more}"] = [np.asarray(r).tolist() for r in results]
for name, more in [
    ("project_simplex", {}),
    ("project_topk_simplex", {"k": 2}),
    ("project_topk_simplex", {"k": 2, "variant": "printed"}),
    ("project_topk_cone", {"k": 2}),
    ("project_ordered_simplex", {"weights": [0.6, 0.4]}),
    ("prox_entropy", {"eta": 0.5}),
]:
    found[f"{name} {more}"] = [getattr(projections, name)(f, **more).tolist()]
found["lambert"] = [special.lambertw_exp(f).tolist()]
for order in "CF":
    own, weights, change = (np.array(a, order=order) for a in (2.0 * W, W, 0.0 * W))
    squares = sums.subtract(own, weights, Sigma(2.0, 3.0), change)
    _, norm = sums.add(np.stack([change, change]), weights, own)
    found[f"sums {order}"] = [change.tolist(), weights.tolist(), *squares, norm]
"""

PLAIN = {"NUMBA_DISABLE_JIT": 1, "SHORTLIST_JIT_CACHE": 0}


def losses_and_fits() -> str:
    cases = [
        (
            row.name,
            row.parameters,
            row.scores(n=3).tolist(),
            row.labels(n=3).tolist(),
        )
        for row in INSTANCES
    ]
    return LOSSES_AND_FITS.replace("CASES", repr(json.dumps(cases)))


@pytest.fixture(scope="module")
def in_python() -> tuple[dict, set]:
    """What all the runs print as plain Python, and the kernels that they call."""
    end = "print(json.dumps([found, sorted(kernels_called)]))"
    found, called = run(RECORDING + losses_and_fits() + OTHER_KERNELS + end, **PLAIN)
    return found, set(called)


def compiled(code: str) -> dict:
    scope: dict = {}
    rounds = support.ROUNDS_PER_JOINT_STEP  # the code sets it
    exec(code, scope)
    support.ROUNDS_PER_JOINT_STEP = rounds
    return scope["found"]


def check_same(found: dict, plain: dict) -> None:
    for title, expected in found.items():
        single = "float32" in title
        rtol, atol = (2e-4, 2e-4) if single or title.startswith("fit") else (1e-9, 1e-11)
        for got, wanted in zip(plain[title], expected, strict=True):
            np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=title)


def test_jit_disabled_gives_the_same_results(in_python):
    found = compiled(losses_and_fits())
    assert found.keys() <= in_python[0].keys()
    check_same(found, in_python[0])


@pytest.mark.slow
def test_jit_disabled_gives_the_same_results_everywhere(in_python):
    """Most of its time goes into compiling."""
    found = compiled(losses_and_fits() + OTHER_KERNELS)
    assert found.keys() == in_python[0].keys()
    check_same(found, in_python[0])


def test_every_kernel_runs_as_python(in_python):
    package = Path(shortlist.__file__).parent
    kernels = {
        f"{'.'.join(path.relative_to(package).with_suffix('').parts)}.{node.name}"
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
        and any("'njit'" in ast.dump(decorator) for decorator in node.decorator_list)
    }
    not_called = kernels - in_python[1]
    excused = {name for name in not_called if name in EXCEPTIONS or module_of(name) in EXCEPTIONS}
    assert not sorted(not_called - excused)
    assert {name if name in EXCEPTIONS else module_of(name) for name in excused} == {*EXCEPTIONS}


def module_of(kernel: str) -> str:
    return kernel.rpartition(".")[0]
