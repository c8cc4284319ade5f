"""A fitted model as an ONNX model of its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from shortlist import __version__
from shortlist.datasets import Reading
from shortlist.errors import ParameterError

from .answers import answers_of, classifier_for
from .graph import OLDEST_OPSET, add_classifier

# Read by every onnxruntime since 2022.
DEFAULT_OPSET = 17
# The largest protocol buffer, the format of ONNX files.
_MAX_FILE_BYTES = 2**31 - 1


def to_onnx(
    model: Any,
    *,
    k: int | None = None,
    dtype: Literal["float32", "float64"] = "float32",
    opset: int = DEFAULT_OPSET,
) -> onnx.ModelProto:
    """Export a fitted classifier to ONNX.

    The input ``X`` takes any number of examples. The outputs are

    label
        What ``predict`` answers, shape (n,): text or numbers as in ``classes_``. For a model of
        several labels the indicator matrix (n, n_classes).
    scores
        One column a class, shape (n, n_classes), also of two classes.
    probabilities
        What ``predict_proba`` answers, where the loss has probabilities; otherwise left out.
    topk_labels, topk_scores
        What ``predict_topk`` answers, and the scores, shape (n, k). Ties go to the left.

    Parameters
    ----------
    model : TopKClassifier, TopKClassifierCV or KernelTopKClassifier
        Fitted. A search answers with the model it has chosen for k.
    k : int, optional
        Length of the shortlists; by default the model's own.
    dtype : "float32" or "float64"
        Type of the input and of the scores. A model that was trained in double precision computes
        in it either way, so that rounding does not change the ranking.
    opset : int
        Version of ONNX's operators, 13 or newer.

    Returns
    -------
    onnx.ModelProto
        Its metadata hold the loss, k, C and the version of Shortlist; of a model that the command
        trained also the classes' names, if they have any. Features are taken as they are in the
        data: what scaling the model needs is part of the graph.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from shortlist import TopKClassifier, to_onnx
    >>> X, y = load_digits(return_X_y=True)
    >>> model = TopKClassifier("smooth_hinge", k=3, C=0.01, random_state=0).fit(X / 16, y)
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label', 'scores', 'topk_labels', 'topk_scores']
    """
    if dtype not in ("float32", "float64"):
        raise ValueError(f"dtype must be 'float32' or 'float64', got {dtype!r}")
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= opset <= newest:
        raise ParameterError("opset", f"must be from {OLDEST_OPSET} to {newest}, got {opset}")
    numbers = np.dtype(dtype)
    classifier, k = classifier_for(model, k)
    parts = _Parts()
    reading = _reading_of(model)
    add_classifier(parts, classifier, "X", k, numbers, reading and reading.scaling)
    if parts.n_bytes > _MAX_FILE_BYTES:
        raise ValueError(
            f"the model has {parts.n_bytes / 2**30:.1f} GiB of weights; an ONNX file holds 2 GiB"
        )
    graph = helper.make_graph(
        parts.nodes,
        type(classifier).__name__,
        [_value("X", numbers, classifier.n_features_in_)],
        [_value(*answer) for answer in answers_of(classifier, k, numbers)],
        parts.constants,
    )
    operators = [helper.make_opsetid("", opset)]
    exported = helper.make_model(
        graph,
        opset_imports=operators,
        ir_version=helper.find_min_ir_version_for(operators),
        producer_name="shortlist",
        producer_version=__version__,
    )
    helper.set_model_props(exported, _metadata(classifier, k, reading))
    onnx.checker.check_model(exported)
    return exported


class _Parts:
    """Collects the nodes and constants of a graph that holds one classifier and nothing else."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.n_bytes = 0

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> list[str]:
        self.nodes.append(helper.make_node(op_type, inputs, outputs, name=outputs[0], **attributes))
        return list(outputs)

    def constant(self, name: str, values: NDArray) -> str:
        self.n_bytes += values.nbytes
        self.constants.append(numpy_helper.from_array(values, name))
        return name


def _value(name: str, dtype: np.dtype, width: int | None) -> onnx.ValueInfoProto:
    shape: list[Any] = ["n"] if width is None else ["n", width]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def _reading_of(model: Any) -> Reading | None:
    """How the training data was read, where the command has kept it."""
    kept = (getattr(model, "data_", None) or {}).get("reading")
    return None if kept is None else Reading.from_dict(kept)


def _metadata(model: Any, k: int, reading: Reading | None) -> dict[str, str]:
    known = {name: str(getattr(model, name)) for name in ("loss", "variant", "smoothing", "C", "k")}
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        known["feature_names"] = json.dumps([str(name) for name in names], ensure_ascii=False)
    if reading is not None and reading.class_names is not None:
        known["class_names"] = json.dumps([list(pair) for pair in reading.class_names])
    if reading is not None and reading.classes is not None:
        known["classes"] = json.dumps(list(reading.classes))
    return {"shortlist": __version__, "shortlist_length": str(k), **known}
