"""The estimators of Shortlist for skl2onnx, so that pipelines that end in one convert."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper
from skl2onnx import update_registered_converter
from skl2onnx.common.data_types import (
    BooleanTensorType,
    DoubleTensorType,
    FloatTensorType,
    Int64TensorType,
    StringTensorType,
)

from .answers import ESTIMATORS, Answer, answers_of, classifier_for
from .graph import OLDEST_OPSET, add_classifier

_TYPES = {
    "bool": BooleanTensorType,
    "float32": FloatTensorType,
    "float64": DoubleTensorType,
    "int64": Int64TensorType,
    "object": StringTensorType,
}
# ``k`` is the length of the shortlists. skl2onnx gives every classifier a zipmap, which would turn
# matrices into lists of dictionaries; scores and probabilities stay matrices whatever it is.
_OPTIONS = {"k": None, "zipmap": [True, False, "columns"]}


def register() -> None:
    """Introduce the estimators to skl2onnx; importing :mod:`shortlist.onnx` has done so."""
    for estimator in ESTIMATORS:
        alias = f"Shortlist{estimator.__name__}"
        update_registered_converter(
            estimator, alias, _set_types, _convert, parser=_parser(alias), options=_OPTIONS
        )


def _parser(alias: str) -> Callable[..., list[Any]]:
    """Return what declares the outputs of an estimator for skl2onnx."""

    def parse(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> list[Any]:
        operator = scope.declare_local_operator(alias, model)
        operator.inputs = inputs
        for answer in _answers(scope, operator):
            variable = scope.declare_local_variable(answer.name, _type_of(answer))
            operator.outputs.append(variable)
        return operator.outputs

    return parse


def _set_types(operator: Any) -> None:
    """Set the types of the outputs once those of the inputs are known."""
    answers = _answers(operator.scope_inst, operator)
    if len(operator.outputs) != len(answers):
        raise ValueError(
            f"skl2onnx uses this {type(operator.raw_operator).__name__} inside another estimator "
            "that has no place for shortlists; what converts is the classifier alone, at the end "
            "of a Pipeline, or as the choice of a search such as GridSearchCV"
        )
    for variable, answer in zip(operator.outputs, answers, strict=True):
        variable.type = _type_of(answer)


def _convert(scope: Any, operator: Any, container: Any) -> None:
    if container.target_opset < OLDEST_OPSET:
        raise ValueError(
            f"the estimators of Shortlist need target_opset {OLDEST_OPSET} or newer, "
            f"got {container.target_opset}"
        )
    if len(operator.inputs) != 1:
        raise ValueError(
            f"the features must be one matrix, got {len(operator.inputs)} inputs: join them in a "
            "ColumnTransformer"
        )
    names = [answer.name for answer in _answers(scope, operator)]
    finals = dict(zip(names, (out.full_name for out in operator.outputs), strict=True))
    part = _Part(scope, container, finals)
    classifier, k = _classifier(scope, operator)
    add_classifier(part, classifier, operator.inputs[0].full_name, k, _precision(operator))


def _answers(scope: Any, operator: Any) -> list[Answer]:
    return answers_of(*_classifier(scope, operator), _precision(operator))


def _classifier(scope: Any, operator: Any) -> tuple[Any, int]:
    model = operator.raw_operator
    return classifier_for(model, scope.get_options(model, {"k": None}, fail=False)["k"])


def _precision(operator: Any) -> np.dtype:
    double = isinstance(operator.inputs[0].type, DoubleTensorType)
    return np.dtype(np.float64 if double else np.float32)


def _type_of(answer: Answer) -> Any:
    shape = [None] if answer.width is None else [None, answer.width]
    return _TYPES[answer.dtype.name](shape)


class _Part:
    """A part of a graph that skl2onnx builds; ``finals`` maps our outputs to its names."""

    def __init__(self, scope: Any, container: Any, finals: dict[str, str]) -> None:
        self._scope = scope
        self._container = container
        self._finals = finals

    def add(
        self, op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any
    ) -> list[str]:
        given = [
            self._finals.get(name) or self._scope.get_unique_variable_name(name) for name in outputs
        ]
        name = self._scope.get_unique_operator_name(op_type)
        self._container.add_node(op_type, list(inputs), given, name=name, **attributes)
        return given

    def constant(self, name: str, values: NDArray) -> str:
        given: str = self._scope.get_unique_variable_name(name)
        if values.dtype == object:
            content: Any = [text.encode("utf-8") for text in values]
            self._container.add_initializer(given, TensorProto.STRING, values.shape, content)
        else:
            tensor = numpy_helper.from_array(values)
            self._container.add_initializer(given, tensor.data_type, values.shape, tensor)
        return given
