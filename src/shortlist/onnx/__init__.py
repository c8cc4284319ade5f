"""Fitted models as ONNX graphs, which run without Python (extra ``shortlist[onnx]``).

:func:`to_onnx` exports a model. A pipeline that ends in one is exported by ``skl2onnx.to_onnx``, to
which importing this module introduces the estimators of Shortlist.
"""

try:
    import onnx as _onnx  # noqa: F401
    import skl2onnx as _skl2onnx  # noqa: F401
except ImportError as missing:
    raise ImportError(
        f"shortlist.onnx needs {missing.name}, which is not installed: "
        "pip install 'shortlist[onnx]'"
    ) from missing

from .export import to_onnx
from .pipelines import register

__all__ = ["register", "to_onnx"]

register()
