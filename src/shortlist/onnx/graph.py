"""A fitted classifier as nodes of an ONNX graph, from features to labels and scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from onnx.helper import np_dtype_to_tensor_dtype
from scipy import sparse

from shortlist.datasets.scaling import Scaling
from shortlist.estimators.normalization import normalized
from shortlist.estimators.parameters import loss_of

from .answers import label_values

# The first opset in which Softmax and ReduceSum mean what they mean today.
OLDEST_OPSET = 13


class Graph(Protocol):
    """The graph under construction. It may rename an output whose name is taken."""

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> list[str]:
        """Add a node and return the names that its outputs got."""
        ...

    def constant(self, name: str, values: NDArray) -> str:
        """Add a constant and return the name it got."""
        ...


def add_classifier(
    graph: Graph,
    model: Any,
    features: str,
    k: int,
    dtype: np.dtype,
    scaling: Scaling | None = None,
) -> None:
    """Add all that a classifier answers with, under the names of its answers.

    ``scaling`` is what the features went through before the classifier was trained on them.
    Scores are computed in the precision of the model or of ``dtype``, whichever is higher, and
    ranked in it. What goes out is of type ``dtype``.
    """
    nodes = _Nodes(graph, np.result_type(model.intercept_.dtype, dtype))
    n_classes = len(model.classes_)
    rows = nodes.cast(features, nodes.precision, "features")
    if scaling is not None:
        rows = nodes.scaled(rows, scaling)
    normalize = getattr(model, "normalize", None)  # kernels have no such parameter
    if normalize is not None or (scaling is not None and scaling.kind == "l2"):
        rows = nodes.unit_rows(rows)
    scores = nodes.scores(model, rows)
    nodes.cast(scores, dtype, "scores")
    if hasattr(model, "predict_proba"):
        # One-vs-all: every class has a probability of its own; they are scaled to sum to 1.
        logits = nodes.log_sigmoids(scores) if loss_of(model).separable else scores
        shares = nodes.node("Softmax", [logits], "shares", axis=1)
        nodes.cast(shares, dtype, "probabilities")
    best, columns = nodes.topk(scores, k)
    classes = graph.constant("classes", label_values(model.classes_))
    shortlist = nodes.node("Gather", [classes, columns], "topk_labels", axis=0)
    nodes.cast(best, dtype, "topk_scores")
    if model.multilabel_:
        # predict answers with shortlists of the model's own length.
        marked = columns if k == model.k else nodes.topk(scores, model.k)[1]
        nodes.indicator(marked, n_classes)
    else:
        # Ties go to the lower column in the shortlist, as in an argmax.
        first = graph.constant("first", np.array(0))
        nodes.node("Gather", [shortlist, first], "label", axis=1)


class _Nodes:
    """Adds nodes for numbers of one precision."""

    def __init__(self, graph: Graph, precision: np.dtype) -> None:
        self.graph = graph
        self.precision = precision

    def node(self, op_type: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        return self.graph.add(op_type, inputs, [output], **attributes)[0]

    def numbers(self, name: str, values: Any) -> str:
        return self.graph.constant(name, np.asarray(values, dtype=self.precision))

    def cast(self, numbers: str, dtype: np.dtype, output: str) -> str:
        return self.node("Cast", [numbers], output, to=np_dtype_to_tensor_dtype(dtype))

    def row_sums(self, rows: str, output: str) -> str:
        axes = self.graph.constant(f"{output}_axes", np.array([1]))
        return self.node("ReduceSum", [rows, axes], output, keepdims=1)

    def scaled(self, rows: str, scaling: Scaling) -> str:
        """Features shifted and multiplied, each by its own numbers."""
        for op_type, numbers in (("Sub", scaling.shift), ("Mul", scaling.factor)):
            if numbers is not None:
                word = f"scaling_{op_type.lower()}"
                constant = self.graph.constant(word, np.array(numbers, self.precision))
                rows = self.node(op_type, [rows, constant], f"{word}_rows")
        return rows

    def unit_rows(self, rows: str) -> str:
        """Rows divided by their Euclidean norms; rows of zeros stay as they are."""
        total = self.row_sums(self.node("Mul", [rows, rows], "row_squares"), "row_totals")
        some = self.node("Greater", [total, self.numbers("no_length", 0)], "have_length")
        squares = self.node("Where", [some, total, self.numbers("unit", 1)], "squared_lengths")
        return self.node("Div", [rows, self.node("Sqrt", [squares], "lengths")], "unit_rows")

    def topk(self, scores: str, k: int) -> tuple[str, str]:
        """The k largest scores of each row and their columns, of equal ones the lower first."""
        count = self.graph.constant(f"top_{k}", np.array([k]))
        best, columns = self.graph.add(
            "TopK", [scores, count], [f"best_{k}", f"columns_{k}"], axis=1
        )
        return best, columns

    def indicator(self, columns: str, n_classes: int) -> None:
        """What a model of several labels predicts: which of them are in the shortlist."""
        depth = self.graph.constant("n_classes", np.array(n_classes))
        values = self.graph.constant("off_on", np.array([0, 1]))
        marks = self.node("OneHot", [columns, depth, values], "marks", axis=-1)
        axes = self.graph.constant("over_shortlist", np.array([1]))
        self.node("ReduceSum", [marks, axes], "label", keepdims=0)

    def log_sigmoids(self, scores: str) -> str:
        """Logarithms of sigmoids, without overflow: -log(1 + exp(-s))."""
        negative = self.node("Neg", [scores], "negative_scores")
        return self.node("Neg", [self.node("Softplus", [negative], "softplus")], "log_sigmoids")

    def scores(self, model: Any, features: str) -> str:
        """One column a class."""
        if hasattr(model, "coef_"):
            return self.linear(features, *model._class_weights())
        support = model.support_vectors_
        if sparse.issparse(support):
            support = support.toarray()
        coef = model.dual_coef_.T.astype(self.precision)
        if len(model.support_) == 0:
            coef = np.zeros((len(coef), model.n_features_in_))
            return self.linear(features, coef, model.intercept_)
        if model.kernel == "linear":
            return self.linear(features, coef @ support, model.intercept_)
        if model.kernel == "cosine":
            units = normalized(support, "l2")
            return self.linear(self.unit_rows(features), coef @ units, model.intercept_)
        return self.linear(self.kernel(model, features, support), coef, model.intercept_)

    def linear(self, features: str, coef: NDArray, intercept: NDArray) -> str:
        weights, bias = self.numbers("coef", coef), self.numbers("intercept", intercept)
        return self.node("Gemm", [features, weights, bias], "raw_scores", transB=1)

    def kernel(self, model: Any, features: str, support: NDArray) -> str:
        """Kernel values between the examples and the support vectors."""
        if model.kernel == "precomputed":
            columns = self.graph.constant("support", model.support_.astype(np.int64))
            return self.node("Gather", [features, columns], "kernel", axis=1)
        if callable(model.kernel):
            raise ValueError(
                "a kernel given as a Python function has no form in ONNX; only 'linear', 'rbf', "
                "'poly', 'cosine' and 'precomputed' have one"
            )
        vectors = self.numbers("support_vectors", support.T)
        products = self.node("MatMul", [features, vectors], "products")
        gamma = self.numbers("gamma", model.gamma_)
        if model.kernel == "poly":
            scaled = self.node("Mul", [products, gamma], "scaled")
            shifted = self.node("Add", [scaled, self.numbers("coef0", model.coef0)], "shifted")
            return self.node("Pow", [shifted, self.numbers("degree", model.degree)], "kernel")
        squares = self.node("Mul", [features, features], "squares")
        own_norms = self.row_sums(squares, "norms")
        norms = self.numbers("support_norms", (support**2).sum(1))
        sums = self.node("Add", [own_norms, norms], "sums")
        twice = self.node("Mul", [products, self.numbers("two", 2)], "twice")
        raw = self.node("Sub", [sums, twice], "raw_distances")
        # Rounding must not make a distance negative.
        distances = self.node("Max", [raw, self.numbers("no_distance", 0)], "distances")
        minus = self.node("Neg", [gamma], "minus_gamma")
        return self.node("Exp", [self.node("Mul", [distances, minus], "exponents")], "kernel")
